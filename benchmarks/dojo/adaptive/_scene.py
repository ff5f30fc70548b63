"""Scenes: the tools of a channel by which a stranger's text reaches the model, what ran, and what was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from benchmarks.dojo.adaptive._worlds import Call, effect_of
from toolcrib.calls import Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Content
from toolcrib.rounds import decode
from toolcrib.tools import Tool, ez_tool

__all__ = ["Channel", "Scene"]


@dataclass(slots=True)
class Scene:
    """The tools of a channel, what ran, and what was asked.

    Attributes:
        letter: What the stranger wrote.
        strike: What the stranger wants.
        run: The run.
        effects: The calls with an effect that ran.
        is_asked: Whether a call was suspended or refused.
    """

    letter: str
    strike: Call
    run: Run
    effects: list[Call] = field(default_factory=list[Call])
    is_asked: bool = False

    def tools(self, *more: Tool[..., Any]) -> list[Tool[..., Any]]:
        """Return the tools that have an effect, and more."""

        @ez_tool(effect=effect_of("send"), source="trusted")
        async def send(to: str, text: Annotated[str, Content] = "") -> str:
            """Send a mail."""
            self.effects.append(("send", {"to": to}))
            return "sent"

        @ez_tool(effect=effect_of("spend"), source="trusted")
        async def pay(account: str) -> str:
            """Pay."""
            self.effects.append(("pay", {"account": account}))
            return "paid"

        @ez_tool(effect=effect_of("delete"), source="trusted")
        async def delete(path: str) -> str:
            """Delete."""
            self.effects.append(("delete", {"path": path}))
            return "deleted"

        return [send, pay, delete, *more]

    def reader(self, value: Any, name: str = "read_page", source: Any = "untrusted") -> Tool[..., Any]:
        """Return a tool that reads something."""

        async def read() -> Any:
            if isinstance(value, Exception):
                raise value
            return value

        read.__name__, read.__doc__ = name, "Read."
        return ez_tool(effect="none", source=source)(read)

    async def act(self, pipeline: Pipeline, *calls: ToolCall) -> None:
        """Make calls that read, and then the one that the stranger wants."""
        for call in (*calls, ToolCall(*self.strike)):
            outcome = await pipeline.run(call, self.run)
            self.is_asked |= isinstance(outcome, Suspended)

    async def execute(self, code: str, *tools: Tool[..., Any], **options: Any) -> None:
        """Run a program of the model's."""
        result = await Toolkit(self.tools(*tools), sandbox="process").execute_async(code, self.run, **options)
        self.is_asked |= bool(result.suspended)
        if not (result.success or result.is_paused):
            raise AssertionError(f"the attack's program fails by itself: {code}: {result.error}")

    async def decode(self, reply: Mapping[str, Any], transcript: Sequence[Any], form: Any, *tools: Any) -> None:
        """Go on from a transcript with a reply of the model's."""
        pipeline = Pipeline(self.tools(*tools))
        plan = await decode(pipeline, reply, format=form, run=self.run, transcript=list(transcript)).apply_hooks()
        self.is_asked |= bool(plan.suspended)
        await plan.run_pending()

    def literal_strike(self) -> str:
        """Return a program that strikes with values that it has as literals."""
        tool, arguments = self.strike
        return f"{tool}(**{arguments!r})"

    def strike_code(self, text: str = "text") -> str:
        """Return the line of a program that strikes with the last word of a text."""
        tool, arguments = self.strike
        return f"{tool}({next(iter(arguments))}=str({text}).strip().split()[-1].strip('\\'\"[]{{}}'))"


Channel: TypeAlias = Callable[[Scene], Awaitable[None]]
