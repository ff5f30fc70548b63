"""ToolRound: a provider's reply as `decode` reads it, with its calls checked against a toolset."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Never, TypeAlias, TypedDict, Unpack, cast

from toolcrib._numbers import count_text
from toolcrib._run_sync import run_sync
from toolcrib._short_repr import kind_of
from toolcrib.calls import Failed, Suspended
from toolcrib.errors import NotCallable, RoundError, explain_missing, explain_options, refuse_unknown_options
from toolcrib.formats import (
    FINISHED,
    PROVIDERS,
    Item,
    ProviderFormat,
    WireCall,
    WireFormat,
    WireReply,
    detected,
    json_shape,
    refuse_part,
    text_delta,
)
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.rounds._call import Answer, DecodedCall, HandledTool, RejectedTool, RoundHooks, readable_call
from toolcrib.rounds._call_progress import CallListener, CallWatcher
from toolcrib.rounds._plan import ToolRoundPlan, TranscriptLike, functionless, suggestion
from toolcrib.rounds._recalled import read_reply, recall_transcript
from toolcrib.rounds._results import ToolCallIssue, ToolResult
from toolcrib.rounds._round_json import StoredRound
from toolcrib.rounds._round_state import RoundState, pipeline_of
from toolcrib.rounds._transcript import taken_ids
from toolcrib.rounds._unhandled import Unhandled, unhandled_in
from toolcrib.toolsets import ToolAvailability, Toolset, ToolsetLike

Dispatch: TypeAlias = Callable[[DecodedCall[Any]], Any]

_ENDS_WITH_CALLS = (
    "the messages end with calls that have no results: commit adds the model's turn itself, so leave it out of the "
    "list before you decode its reply; where a run was cut off, `Transcript(messages, format).repair()` gives results"
)
_OF_RUNS = {  # what is given to a run of a round, and belongs to what it was decoded with
    "run": "`decode(..., run=...)`",
    **dict.fromkeys(("approve", "approver", "on_approval"), "`decode(..., run=Run(approver=...))`"),
    **dict.fromkeys(("context", "deps"), "`decode(..., run=Run(deps=...))`"),
    **dict.fromkeys(("principal", "store", "approvals", "limits"), "an option of the run: `decode(..., run=Run(...))`"),
    **dict.fromkeys(("denials", "grants"), "`await plan.resolve(grants, denials)`"),
}


@explain_missing(
    {
        **dict.fromkeys(
            ("done", "finished", "is_done", "is_finished"), "`not round`; `settled` says whether it was committed"
        ),
        **dict.fromkeys(("calls", "function_calls"), "`tool_calls`, and `recoverable_issues` for those of no tool"),
        **dict.fromkeys(("content", "output", "output_text"), "`text`"),
        **dict.fromkeys(("finish_reason", "stop_reason"), "`stop`, or `stop_kind` in one vocabulary"),
        **dict.fromkeys(("execute", "invoke"), "`await round.run(messages)`, or `round.run_sync(messages)`"),
    }
)
class ToolRound(StoredRound):
    """An assistant's turn and the calls in it, of which nothing has been executed or committed.

    It is true while the model has more to say: it made calls, mistyped ones too, or waits for another answer, or its
    provider paused the reply. It is false when the model has answered, or its reply ended for another reason: see
    `stop_kind`.

    Attributes:
        text: The model's text besides its calls.
        problems: The faults of the reply, a sentence each: a cut stream, an id used twice.
        stop: The provider's word for why the reply ended.
        stop_kind: The same in one vocabulary for all providers; see `StopKind`.
        items: The turn as it will stand in the transcript.
        format: The name of the wire format.
        container: The id of the provider's sandbox in which a program waits; the next request has to name it.
        host_run: The run that the calls belong to.
    """

    def __init__(self, state: RoundState) -> None:
        super().__init__(state)
        self.format, self.host_run = state.format.title, state.run
        reply = state.reply
        self.text, self.problems, self.stop = reply.text, reply.problems, reply.stop
        self.stop_kind, self.container = reply.stop_kind, reply.container
        self.items: tuple[Item, ...] = reply.items
        read = [(call, readable_call(call) is not None) for call in state.calls]
        self._calls = [call for call, is_read in read if is_read]
        self._unread = [(call.metadata, call.outcome) for call, is_read in read if not is_read]

    def __bool__(self) -> bool:
        return asks(self) or self.stop_kind == "paused"

    @property
    def settled(self) -> bool:
        """True if the round was committed or discarded."""
        return bool(self._state.ended)

    @property
    def has_calls(self) -> bool:
        """True if the model made any call, also one that cannot be read."""
        return bool(self._state.calls)

    @property
    def tool_calls(self) -> list[DecodedCall[Any]]:
        """The calls that could be read, in the assistant's order."""
        return list(self._calls)

    @property
    def recoverable_issues(self) -> list[ToolCallIssue]:
        """The calls that cannot be made: of unknown or unavailable tools, or with arguments that do not fit."""
        return [ToolCallIssue(metadata, failed) for metadata, failed in self._unread if isinstance(failed, Failed)]

    @property
    def unhandled(self) -> list[Unhandled]:
        """The requests in the reply besides calls of tools: a shell command, a request for approval."""
        return unhandled_in(self._state.others, self._state.reply, self._state.format)

    @property
    def waits(self) -> bool:
        """True if something waits for an answer and is not a call of a tool.

        It may be something that did not come whole in a reply that was finished: the commit refuses it, it is not in
        `unhandled`, and the model has not answered either.
        """
        return self.stop_kind in FINISHED and bool(_others(self._state))

    @property
    def continue_suggestion(self) -> str | None:
        """The reason to ask the model to go on, when calls of it could not be made."""
        return suggestion(self.recoverable_issues)

    def expect_one(self) -> DecodedCall[Any]:
        """Return the only call; RoundError without one, several, or one that could not be read."""
        call = self._only("one")
        if call is None:
            raise RoundError(("the model made no call, and one was expected",))
        return call

    def expect_at_most_one(self) -> DecodedCall[Any] | None:
        """Return the only call, or None without one; RoundError for several, or one that could not be read."""
        return self._only("at most one")

    def _only(self, expected: str) -> DecodedCall[Any] | None:
        issues = self.recoverable_issues
        if issues:
            raise RoundError(tuple(issue.reason for issue in issues))
        if others := _others(self._state):
            raise RoundError((f"`{others[0].kind}` waits for an answer, and {expected} call was expected",))
        if len(self._calls) > 1:
            names = ", ".join(f"`{call.name}`" for call in self._calls)
            raise RoundError(
                (f"the model made {count_text(len(self._calls), 'call')} ({names}), and {expected} was expected",)
            )
        return self._calls[0] if self._calls else None

    async def apply_hooks(self, hooks: RoundHooks = None) -> ToolRoundPlan:
        """Ask every gate of every call, and return what is to be done for each.

        Args:
            hooks: Decision hooks that are asked before the toolset's own: a hook set, or an async closure that is given
                each call and returns `call.handled(...)`, `call.reject(...)`, a decision, or the call itself.

        Raises:
            InvalidArguments: The host edited the input of a call to what its tool does not take.
        """
        return await ToolRoundPlan(self._state).apply_hooks(hooks)

    async def commit(self, transcript: TranscriptLike, results: Iterable[Answer] = ()) -> list[Item]:
        """Ask the toolset's own gates, unless they were asked before, and commit as the plan does."""
        plan = await self.apply_hooks()
        return await plan.commit(transcript, results)

    async def run(
        self,
        transcript: TranscriptLike,
        dispatch: Dispatch | None = None,
        *,
        hooks: RoundHooks = None,
        **unknown: Never,
    ) -> ToolRoundPlan:
        """Ask every gate, execute the calls, and add their results to the transcript: the whole of a usual round.

        Calls that were suspended before are asked about again, in the run's store and of its approver, so that a round
        that waits for a person goes on when it is run again.

        Args:
            transcript: The provider's message list, or a session.
            dispatch: Executes a call, as for `Session.run`; the tools' own functions when None.
            hooks: Decision hooks, as for `apply_hooks`.

        Returns:
            The plan. Where calls are suspended or something is unhandled, it is not committed, and the round is not
            `settled`: answer, then go on as with the plan of `apply_hooks`.

        Raises:
            NotCallable: There is no `dispatch`, and a tool has no function; nothing of the round was executed.
            CommitError: The transcript would not be valid; it is as it was.
            RoundError: The round is over, or a `dispatch` that raised has begun its calls: it is not known which of
                them are done. Or another round over the same messages still waits for an answer; this one is discarded.
            TypeError: An option is unknown; a run, an approver or `deps` are given to `decode(..., run=Run(...))`.
        """
        refuse_unknown_options("round.run()", unknown, ("dispatch", "hooks"), _OF_RUNS)
        require_dispatch("round.run()", dispatch, "decode")
        self._state.require_open()
        if self._state.dispatched:
            raise RoundError(("`dispatch` has begun its calls: commit what they came to, or discard the round",))
        self._state.require_none_waits(transcript)
        waited = any(isinstance(call.outcome, Suspended) for call in self._state.calls)
        plan = await self.apply_hooks(hooks)
        if waited:
            await plan.resolve()
        if plan.suspended or plan.unhandled:
            self._state.wait(transcript)
            return plan
        if dispatch is None and (names := functionless(plan)):
            raise NotCallable(names[0])
        self._state.dispatched = dispatch is not None
        results: list[Any] = (
            [*await plan.run_pending()] if dispatch is None else [await _dispatched(c, dispatch) for c in plan.pending]
        )
        if plan.suspended:  # a tool may ask itself
            self._state.wait(transcript)
        else:
            await plan.commit(transcript, results)
        return plan

    def run_sync(
        self,
        transcript: TranscriptLike,
        dispatch: Dispatch | None = None,
        *,
        hooks: RoundHooks = None,
        **unknown: Never,
    ) -> ToolRoundPlan:
        """Run the round as `run` does, from plain code; RuntimeError where an event loop runs already."""
        return run_sync(self.run(transcript, dispatch, hooks=hooks, **unknown), instead="await round.run(...)")

    def __repr__(self) -> str:
        return f"<ToolRound of {count_text(len(self._calls), 'call')} and {count_text(len(self._unread), 'issue')}>"


def asks(round: ToolRound) -> bool:
    """Return whether a reply asks for tools; an error of the provider's is for the host, and not for the model."""
    return round.stop_kind != "error" and (round.has_calls or round.waits)


def require_dispatch(who: str, dispatch: Any, maker: str) -> None:
    """Raise TypeError for what is not a function, and say where it belongs.

    Args:
        who: The function that gets it.
        maker: The function with the option `run`.
    """
    if dispatch is None or callable(dispatch):
        return
    mend = "leave it out, and the tools' own functions are executed"
    if isinstance(dispatch, Run):
        mend = f"give the run by name where the calls are made, `{maker}(..., run=...)`"
    elif isinstance(dispatch, str):
        mend = "`session.say(text)` adds what the user says, before the session is run"
    elif isinstance(dispatch, Pipeline | Toolset) or type(dispatch) in (list, tuple):
        mend = "give the tools by name, `tools=...`, to a session; a round has those of `decode`"
    raise TypeError(f"`dispatch` of {who} must be a function that executes a call, not {kind_of(dispatch)}: {mend}")


async def _dispatched(call: DecodedCall[Any], dispatch: Dispatch) -> ToolResult | HandledTool[Any] | RejectedTool[Any]:
    """Return the answer that the host's own code gives to a call."""
    result = dispatch(call)
    if isawaitable(result):
        result = await result
    if isinstance(result, ToolResult | HandledTool | RejectedTool):
        return cast("ToolResult | HandledTool[Any] | RejectedTool[Any]", result)
    return call.complete(result)


def _others(state: RoundState) -> tuple[WireCall, ...]:
    """Return the parts of a reply that wait for an answer, or may, and are not calls of a tool."""
    return (*state.others, *state.reply.unknown)


class DecodeKeywords(TypedDict, total=False):
    """The keyword arguments of `decode`."""

    format: WireFormat | ProviderFormat | None
    run: Run | None
    transcript: Sequence[Any]
    strict: bool
    repair: bool


_OF_OTHERS = {  # what others call an option, and where it is here
    **dict.fromkeys(("approve", "approver", "on_approval"), "`run=Run(approver=...)`"),
    **dict.fromkeys(("context", "deps"), "`run=Run(deps=...)`"),
    **dict.fromkeys(("history", "messages"), "transcript"),
    **dict.fromkeys(("on_delta", "on_token"), "on_text"),
}


@explain_options(_OF_OTHERS)
def decode(
    tools: Pipeline | ToolsetLike,
    reply: object,
    available: ToolAvailability | None = None,
    *,
    format: WireFormat | ProviderFormat | None = None,
    run: Run | None = None,
    transcript: Sequence[Any] = (),
    strict: bool = False,
    repair: bool = False,
) -> ToolRound:
    """Return the calls in a provider's reply, read and checked against a toolset. No tool is run and no gate asked.

    Args:
        tools: The toolset; or a pipeline of it, with hooks, sinks or an executor of its own.
        reply: The reply of the provider's SDK, the same as a dict, a list of a stream's chunks, or a `WireReply`.
        available: Which tools were offered; the default ones when None.
        format: The wire format; detected from the reply when None. Or the rules of one that is not in the table.
        run: The run that the calls belong to; a new one when None.
        transcript: The messages before. A call whose id is in it gets another.
        strict: Whether the tools were defined with `strict=True`: a null in the place of what is optional is left out.
        repair: Whether arguments that are nearly JSON are read as what they nearly are, of calls that came whole.

    Raises:
        TypeError: The reply is neither a dict nor an SDK's object.
        ValueError: It is in no known format, or plainly in another one than `format`.
        ToolConstraintError: `available` names a tool that is not in the toolset, or a gate of the run nearly one.
        RoundError: Another round over the same messages still waits for an answer; this one is discarded. Or the
            messages end with calls, as after the model's own turn was appended, which commit does.
    """
    if isinstance(reply, Toolset):
        raise TypeError("the reply is a toolset: the toolset comes first: decode(tools, reply)")
    name = format or detected(_sample(reply))
    rules = PROVIDERS[name] if isinstance(name, str) else name
    if transcript and rules.call_ids(json_shape(transcript[-1])):
        raise RoundError((_ENDS_WITH_CALLS,))
    used_ids = taken_ids(rules, transcript)
    reader = rules.repairing() if repair else rules
    wire = reply if isinstance(reply, WireReply) else _read(reader, reply, used_ids)
    if not wire.items:
        if isinstance(format, str):
            _require_format(format, reply)
        if wire is not reply and (isinstance(cast("Any", reply), list) or not rules.recognises(json_shape(reply))):
            refuse_part(reply)
    pipeline = pipeline_of(tools)
    run = run_for(run, "round")
    pipeline.check_run(run)
    recall_transcript(run, pipeline.toolset, transcript, rules)
    if wire is not reply:
        read_reply(run, reply)
    if available is not None:
        run = run.view(available=pipeline.toolset.offered(available))
    state = RoundState(rules, wire, pipeline, run, strict=strict)
    state.require_none_waits(transcript)
    return ToolRound(state)


async def decode_stream(
    tools: Pipeline | ToolsetLike,
    chunks: AsyncIterable[object],
    available: ToolAvailability | None = None,
    *,
    on_chunk: Callable[[object], None] | None = None,
    on_text: Callable[[str], None] | None = None,
    on_call: CallListener | None = None,
    **keywords: Unpack[DecodeKeywords],
) -> ToolRound:
    """Return the calls in a streamed reply when it has ended, as `decode` does.

    Args:
        tools: As for `decode`, and so are the other arguments that are not here.
        chunks: The chunks as the provider's SDK gives them.
        available: Which tools were offered.
        on_chunk: Is given each chunk.
        on_text: Is given each piece of the answer.
        on_call: Is given what came so far of each call, while it comes and when the round has it; see `CallProgress`.
        keywords: As for `decode`.

    Raises:
        TypeError: An option is unknown, or the stream is not async; nothing of it was read.
    """
    if not isinstance(cast("object", chunks), AsyncIterable):
        mend = "await the request that returns it, or use `decode(tools, list(stream))` for a stream of a sync client"
        if isinstance(chunks, AbstractAsyncContextManager):
            mend = "enter it by `async with ... as stream`, and give the stream"
        elif isinstance(chunks, AbstractContextManager) and not isinstance(chunks, Iterable):
            mend = "enter it by `with ... as stream`, and use `decode(tools, list(stream))`"
        raise TypeError(f"{kind_of(chunks)} is not an async stream: {mend}")
    known = {*DecodeKeywords.__optional_keys__, *ReplyListeners.__required_keys__}
    refuse_unknown_options("decode_stream()", keywords, known, _OF_OTHERS)
    pipeline = pipeline_of(tools)
    listeners = reply_listeners({"on_chunk": on_chunk, "on_text": on_text, "on_call": on_call})
    watcher = ReplyWatcher(pipeline, keywords.get("format"), listeners, strict=keywords.get("strict", False))
    chunks_read: list[object] = []
    async for chunk in chunks:
        if isinstance(chunk, str):
            raise TypeError("a stream of text has no calls: give the stream itself, and on_text=... has its text")
        chunks_read.append(chunk)
        watcher.add(chunk)
    round = decode(pipeline, chunks_read, available, **keywords)
    watcher.close(round)
    return round


class ReplyListeners(TypedDict):
    """The listeners to a reply, by the options of `decode_stream` and of a session's step."""

    on_chunk: Callable[[object], None] | None
    on_text: Callable[[str], None] | None
    on_call: CallListener | None


def reply_listeners(options: Mapping[str, Any]) -> ReplyListeners:
    """Return the listeners among the options of a step; TypeError for an async one, which would never be awaited."""
    listeners: Any = {name: options.get(name) for name in ReplyListeners.__required_keys__}
    for name, listener in listeners.items():
        if listener is not None and not callable(listener):
            raise TypeError(f"`{name}` is {listener!r:.80}: give a function, which is called while the reply comes")
        if iscoroutinefunction(listener):
            raise TypeError(f"`{name}` is called while the reply comes, and never awaited: give a plain function")
    return listeners


class ReplyWatcher:
    """Reports a reply to its listeners: while it is streamed, and when the round has it.

    The text of a reply that came whole is one piece.

    Args:
        pipeline: The pipeline that takes the calls.
        format: The wire format of the chunks; detected when None.
        listeners: The functions that are given the reports.
        strict: Whether the tools were defined in the provider's strict mode.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        format: WireFormat | ProviderFormat | None,
        listeners: ReplyListeners,
        *,
        strict: bool,
    ) -> None:
        self._format = PROVIDERS[format] if isinstance(format, str) else format
        self._listeners, self._shown = listeners, False
        on_call = listeners["on_call"]
        self._calls = None if on_call is None else CallWatcher(on_call, format, pipeline.toolset, strict=strict)

    def add(self, chunk: object) -> None:
        """Report the next chunk."""
        if (on_chunk := self._listeners["on_chunk"]) is not None:
            on_chunk(chunk)
        if self._listeners["on_text"] is not None:
            self._show(text_delta(chunk) if self._format is None else self._format.text_delta(json_shape(chunk)))
        if self._calls is not None:
            self._calls.add(chunk)

    def close(self, round: ToolRound) -> None:
        """Report what the round has: its calls, whole, and its text if none of it was shown."""
        if not self._shown:
            self._show(round.text)
        if self._calls is not None:
            self._calls.close(round.tool_calls)

    def _show(self, text: str) -> None:
        on_text = self._listeners["on_text"]
        if text and on_text is not None:
            self._shown = True
            on_text(text)


def _sample(reply: object) -> object:
    """Return a part from which the format can be detected."""
    if isinstance(reply, list | tuple):
        if not reply:
            raise ValueError("the stream has no chunks; say which format it is in: decode(..., format='openai')")
        return cast("object", reply[0])
    return reply


def _read(format: ProviderFormat, reply: object, taken: Collection[str] = ()) -> WireReply:
    if isinstance(reply, list | tuple):
        return format.gather(cast("Sequence[object]", reply), taken)
    return format.parse(reply, taken)


def _require_format(name: WireFormat, reply: object) -> None:
    """Raise ValueError for a reply in which nothing was found, when it is plainly in another format."""
    try:
        found = detected(_sample(reply))
    except (TypeError, ValueError):  # it has the shape of no format, and `problems` say what is wrong with it
        return
    if found != name and _read(PROVIDERS[found], reply).items:
        raise ValueError(f"the reply is in the format {found!r}, and was taken for {name!r}: write format={found!r}")
