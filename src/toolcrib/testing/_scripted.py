"""ScriptedModel: a model whose replies a test writes down."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias, cast

from toolcrib._numbers import count_text
from toolcrib.calls import ToolCall
from toolcrib.errors import refuse_coroutine, require_result
from toolcrib.rounds import ChatRequest
from toolcrib.testing._replies import wire_reply

Step: TypeAlias = "str | ToolCall | Sequence[ToolCall] | dict[str, Any] | Exception | Callable[[ChatRequest], Step]"
"""A step of the script: say a text, make calls, send a reply or (as a list of dicts) chunks as they are, or raise."""


class ScriptedModel:
    """A chat model that plays a script, one step for each request.

    A request after the last step is an error, and so are steps that are left over: `model.finish()` raises it, and
    so does the end of `with ScriptedModel(...) as model:`.

    Attributes:
        requests: The requests so far.

    Raises:
        TypeError: One is not a step, or a list has several.
    """

    def __init__(self, *steps: Step) -> None:
        for step in steps:
            _require_step(step)
        self._steps = list(steps)
        self.requests: list[ChatRequest] = []

    async def reply(self, request: ChatRequest) -> object:
        """Play the next step; AssertionError without one."""
        self.requests.append(request)
        if len(self.requests) > len(self._steps):
            raise AssertionError(
                f"the script has {count_text(len(self._steps), 'step')}, and this is request {len(self.requests)}"
            )
        return self._play(self._steps[len(self.requests) - 1], request)

    def finish(self) -> None:
        """Raise AssertionError when there are steps left."""
        steps = self._steps[len(self.requests) :]
        if steps:
            raise AssertionError(f"{len(steps)} of the script's steps were not asked for; the next is {steps[0]!r}")

    def _play(self, step: Any, request: ChatRequest) -> object:
        match step:
            case str():
                return wire_reply(request.format, text=step)
            case ToolCall():
                return wire_reply(request.format, [step])
            case dict():
                return step  # pyright: ignore[reportUnknownVariableType] -- a reply as the test has it
            case Exception():
                raise step
            case list() | tuple():
                steps: list[Any] = list(step)  # pyright: ignore[reportUnknownArgumentType] -- checked in the next line
                calls = [call for call in steps if isinstance(call, ToolCall)]
                return wire_reply(request.format, calls) if len(calls) == len(steps) else _stream(steps)
            case _ if callable(step):
                return self._play(step(request), request)
            case _:
                raise TypeError(f"a script has no step of type {type(step).__name__}")

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self.finish()


async def _stream(chunks: list[Any]) -> AsyncGenerator[Any]:
    for chunk in chunks:
        yield chunk


def _require_step(step: Any) -> None:
    if isinstance(step, list | tuple):
        parts = [*cast("Sequence[Any]", step)]
        if any(isinstance(part, str | Exception | list) or callable(part) for part in parts):
            raise TypeError("steps are given one by one, as in ScriptedModel(*steps); a list is calls of one reply")
    elif callable(step):
        refuse_coroutine("step", step, "a step")
        require_result("step", step, "a step, such as a text or a ToolCall", takes_none=False)
    elif not isinstance(step, str | ToolCall | dict | Exception):
        raise TypeError(f"a script has no step of type {type(step).__name__}")
