"""Session: a conversation with a model, to whose transcript nothing is added but by commit."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict, Unpack, cast

from pydantic import TypeAdapter, ValidationError

from toolcrib.errors import FieldProblem, InvalidOutput, RoundError
from toolcrib.formats import PROVIDERS, Item, definitions
from toolcrib.invoke import Pipeline, RunScope
from toolcrib.rounds._call import DecodedCall, RoundHooks
from toolcrib.rounds._detect import WireFormat, shape_of
from toolcrib.rounds._model import ChatModel, ChatRequest
from toolcrib.rounds._plan import ToolRoundPlan
from toolcrib.rounds._results import HandledTool, RejectedTool, ToolResult
from toolcrib.rounds._round import ToolRound, decode, gathered, pipeline_of
from toolcrib.rounds._transcript import Transcript
from toolcrib.toolsets import ToolAvailability, ToolRequirement, ToolsetLike

__all__ = ["Finished", "NeedsTools", "Session", "StepKeywords"]

Dispatch: TypeAlias = Callable[[DecodedCall[Any]], Awaitable[Any]]


class StepKeywords(TypedDict, total=False):
    """What a step may be asked to do differently from the session's defaults.

    Attributes:
        tools: The tools; none when left out.
        available: Which of them are offered.
        require: What the model is asked to do with them.
        describe: Descriptions in place of the tools' own, by selector or name.
        output: The type of the answer; text when left out.
        commit: Whether an answer is added to the transcript at once; it is unless this is False.
    """

    tools: Pipeline | ToolsetLike
    available: ToolAvailability
    require: ToolRequirement
    describe: Mapping[Any, str]
    output: Any
    commit: bool


@dataclass(frozen=True, slots=True)
class NeedsTools:
    """The model asks for tools: execute the calls and commit the round, or discard it."""

    round: ToolRound


class Finished:
    """The model answered.

    Attributes:
        result: The text, or a value of the type that was asked for.
        text: The text as it came.
        problems: What was wrong with the reply, a sentence each.
    """

    __match_args__ = ("result",)

    def __init__(self, round: ToolRound, result: Any, transcript: Transcript) -> None:
        self._round, self._transcript = round, transcript
        self.result, self.text, self.problems = result, round.text, round.problems

    async def commit(self) -> list[Item]:
        """Add the answer to the session's transcript."""
        return await self._round.commit(self._transcript)

    def discard(self) -> None:
        """Drop the answer."""
        self._round.discard()

    def __repr__(self) -> str:
        return f"Finished({self.result!r})"


class Session:
    """A conversation: its transcript, its model, and the run that its calls are part of.

    Args:
        model: The model.
        format: The wire format that the transcript and the requests are in, and the model's replies.
        system: The instructions.
        transcript: What came before.
        scope: The run; one of its own when None.
        defaults: What every step is asked to do, unless it says otherwise.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        format: WireFormat = "openai",
        system: str = "",
        transcript: Iterable[Any] = (),
        scope: RunScope | None = None,
        **defaults: Unpack[StepKeywords],
    ) -> None:
        self.model, self.system = model, system
        self.format: WireFormat = format
        self.transcript = Transcript(transcript, format)
        self.scope = scope or RunScope(door="session")
        self.defaults: StepKeywords = defaults
        self._staged: ToolRound | None = None

    def say(self, text: str) -> Session:
        """Add what the user says to the transcript, and return the session."""
        self._require_settled()
        self.transcript.extend(PROVIDERS[self.format].user(text))
        return self

    async def step(
        self, *, on_chunk: Callable[[object], None] | None = None, **keywords: Unpack[StepKeywords]
    ) -> NeedsTools | Finished:
        """Ask the model once, and return what it wants: tools, or to have answered.

        Args:
            on_chunk: Is given each chunk of a reply that is streamed.
            keywords: What to do differently from the session's defaults.

        Raises:
            ToolConstraintError: What is required is not offered; nothing was sent.
            RoundError: The round before was neither committed nor discarded.
            InvalidOutput: The answer is not of the type that was asked for; nothing was committed.
        """
        self._require_settled()
        asked = cast("StepKeywords", {**self.defaults, **keywords})
        pipeline = pipeline_of(asked.get("tools", ()))
        offered = asked.get("available")
        request = await self._request(pipeline, asked)
        reply = await self.model.reply(request)
        if isinstance(reply, AsyncIterable):
            chunks = cast("AsyncIterable[object]", reply)
            reply = await gathered(chunks, on_chunk)
        round = decode(pipeline, reply, offered, format=self.format, scope=self.scope, transcript=self.transcript)
        if round.tool_calls or round.recoverable_issues:
            self._staged = round
            return NeedsTools(round)
        made = Finished(round, _typed(round.text, asked.get("output")), self.transcript)
        if asked.get("commit", True):
            await made.commit()
        else:
            self._staged = round
        return made

    async def run(
        self,
        dispatch: Dispatch | None = None,
        *,
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepKeywords],
    ) -> Finished | ToolRoundPlan:
        """Go on until the model has answered, executing what it asks for.

        Args:
            dispatch: Executes a call, and returns its output, `call.reject(...)`, or another answer. Without it the
                tools' own functions are executed.
            max_rounds: How often the model may ask for tools.
            hooks: Decision hooks for every round.
            keywords: As for `step`.

        Returns:
            The answer; or the plan of a round in which calls wait for a person, before anything of it was executed.
            Resolve and commit it, and run again.

        Raises:
            RoundError: The model still asks for tools after so many rounds; the last round was discarded.
        """
        for _ in range(max_rounds):
            made = await self.step(**keywords)
            if isinstance(made, Finished):
                return made
            plan = await made.round.apply_hooks(hooks)
            if plan.awaiting:
                return plan
            results = await _results(plan, dispatch)
            if plan.awaiting:  # a tool asked itself
                return plan
            await plan.commit(self, results)
        made = await self.step(**keywords)
        if isinstance(made, Finished):
            return made
        made.round.discard()
        raise RoundError((f"the model still asks for tools after {max_rounds} rounds",))

    def copy(self) -> Session:
        """Return another session that goes on from here: with the same model, its own transcript and its own counts."""
        self._require_settled()
        run = self.scope
        scope = replace(
            run,
            id=RunScope().id,
            retries={**run.retries},
            calls={**run.calls},
            completed={*run.completed},
            revealed={**run.revealed},
        )
        return Session(
            self.model,
            format=self.format,
            system=self.system,
            transcript=self.transcript,
            scope=scope,
            **self.defaults,
        )

    # --- inside

    def _require_settled(self) -> None:
        if self._staged is not None and not self._staged.settled:
            raise RoundError(("the round before was neither committed nor discarded",))
        self._staged = None

    async def _request(self, pipeline: Pipeline, asked: StepKeywords) -> ChatRequest:
        toolset, format = pipeline.toolset, PROVIDERS[self.format]
        require = asked.get("require") or ToolRequirement.optional()
        available = asked.get("available")
        require.check(toolset.offered(available))
        describe = {**await toolset.description_overrides(), **asked.get("describe", {})}
        told = toolset.definitions(available, describe=describe, revealed=self.scope.revealed)
        output = asked.get("output")
        return ChatRequest(
            format=self.format,
            messages=tuple(dict(shape_of(item)) for item in self.transcript),
            system=self.system,
            tools=tuple(definitions(told, self.format)),
            tool_choice=format.tool_choice(require.kind, require.name) if told else None,
            output=None if output is None else TypeAdapter(output).json_schema(),
        )


async def _results(plan: ToolRoundPlan, dispatch: Dispatch | None) -> list[Any]:
    if dispatch is None:
        return [*await plan.run_pending()]
    return [await _dispatched(call, dispatch) for call in plan.pending]


async def _dispatched(call: DecodedCall[Any], dispatch: Dispatch) -> ToolResult | HandledTool[Any] | RejectedTool[Any]:
    """Return the answer that the host's own code gives to a call."""
    made: Any = await dispatch(call)
    if isinstance(made, ToolResult | HandledTool | RejectedTool):
        return cast("ToolResult | HandledTool[Any] | RejectedTool[Any]", made)
    return call.complete(made)


def _typed(text: str, output: Any) -> Any:
    """Return an answer as a value of the type that was asked for."""
    if output is None:
        return text
    try:
        return TypeAdapter(output).validate_json(text)
    except ValidationError as error:
        problems = tuple(FieldProblem(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors(include_url=False))
    raise InvalidOutput("the answer", problems)  # out here, so that it does not carry pydantic's error along
