"""Session: a conversation with a model. Only a commit adds to its transcript."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable
from contextlib import aclosing
from inspect import isawaitable
from pathlib import Path
from typing import Any, Never, TypeVar, Unpack, cast, overload

from toolcrib._numbers import count_text, require_number
from toolcrib._run_sync import run_sync
from toolcrib.approvals import ApprovalStore
from toolcrib.calls import StoredFields
from toolcrib.errors import InvalidOutput, RoundError, explain_missing, explain_options
from toolcrib.formats import FINISHED, PROVIDERS, WireFormat, read_stored
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.rounds._call import RoundHooks
from toolcrib.rounds._chat_model import ChatModel, ChatRequest, closed_stream, joined_tools
from toolcrib.rounds._client_model import as_chat_model
from toolcrib.rounds._plan import ToolRoundPlan
from toolcrib.rounds._retry import Retry
from toolcrib.rounds._round import (
    DecodeKeywords,
    Dispatch,
    ReplyListeners,
    ReplyWatcher,
    ToolRound,
    asks,
    decode,
    decode_stream,
    reply_listeners,
    require_dispatch,
)
from toolcrib.rounds._round_json import run_from
from toolcrib.rounds._round_state import pipeline_of
from toolcrib.rounds._session_activity import ModelRequest
from toolcrib.rounds._session_keeper import session_keeper
from toolcrib.rounds._session_state import SessionState
from toolcrib.rounds._step import (
    Continue,
    Finished,
    NeedsTools,
    SessionResult,
    StepKeywords,
    StepOptions,
    Stopped,
    Waiting,
    require_known,
)
from toolcrib.rounds._transcript import Transcript
from toolcrib.rounds._typed_answer import answer_schema, typed_answer
from toolcrib.rounds._unkept_turns import UnkeptTurns
from toolcrib.rounds._usage import Usage, UsageCounter
from toolcrib.toolsets import ToolRequirement, Toolset

T = TypeVar("T")


@explain_missing(
    {
        **dict.fromkeys(
            ("ainvoke", "ask", "chat", "invoke", "iter", "kickoff", "query", "send"),
            "`await session.run()`, after `session.say(text)`",
        ),
        **dict.fromkeys(
            ("astream", "run_stream", "run_streamed", "stream"),
            "`await session.run(on_text=...)`, piece by piece",
        ),
        **dict.fromkeys(("all_messages", "history", "memory", "messages"), "`session.transcript`"),
        **dict.fromkeys(("output", "result", "text"), "that of what `await session.run()` returns"),
        **dict.fromkeys(("__enter__", "__aenter__"), "`session = Session(...)`, which nothing has to close"),
        "instructions": "`session.system`",
        **dict.fromkeys(("abatch", "batch"), "`await session.copy().say(text).run()` for each text"),
        **dict.fromkeys(("aget_state", "get_state"), "`session.transcript`, and `session.to_json()`"),
        **dict.fromkeys(("configure", "with_config"), "an option of `Session(...)`, or of `session.run(...)`"),
        **dict.fromkeys(
            ("add_tool", "bind_tools", "register_tool", "tool", "tool_plain"), "Session(..., tools=[...]), with `@tool`"
        ),
    }
)
@explain_options(further="The name of a client's model is Session(client, model_name='gpt-5', tools=[...])")
class Session(SessionState):
    """A conversation: its transcript, its model, and the run that its calls belong to.

    Args:
        model: The model by its name, `"openai:gpt-5"` or `"anthropic:claude-opus-5"`; or a client of these providers;
            or any `ChatModel`.
        model_name: The model's name, where `model` is a client.
        format: The wire format that the transcript and the requests are in, and the model's replies. The model's own
            when None, or `openai`.
        system: The instructions.
        transcript: The messages before.
        run: The run; a new one when None.
        store: Where the session is kept, with the requests, answers and executions of its calls: an approval store, or
            the path of a SQLite file. It is saved after each step, and a session of the same id goes on from there, in
            another process perhaps. None keeps nothing.
        id: The session's id in the store; whoever gives it has the conversation.
        defaults: Options of every step, unless the step has others.

    Attributes:
        usage: The requests, tokens and cost so far.

    Raises:
        TypeError: The model is not a model, an option is unknown, or the store keeps no sessions.
        ToolConstraintError: A gate of the run, as its limits, is about a name that is nearly that of a tool.
        ValueError: A client without the model's name, or a name of no known provider; one of store and id is missing;
            or the run has an approval store that is another one.
        MissingExtraError: The provider's package is not installed.
    """

    def __init__(
        self,
        model: ChatModel | str | object,
        *,
        model_name: str = "",
        format: WireFormat | None = None,
        system: str = "",
        transcript: Iterable[Any] = (),
        run: Run | None = None,
        store: ApprovalStore | str | Path | None = None,
        id: str = "",
        **defaults: Unpack[StepKeywords],
    ) -> None:
        require_known("a session", defaults)
        reply_listeners(defaults)
        if "tools" in defaults and not isinstance(tools := defaults["tools"], Pipeline | Toolset | type):
            defaults["tools"] = Toolset.of(tools)  # what is wrong with them is said here, and not in the first step
        chat_model, keeper = as_chat_model(model, model_name, format), session_keeper(store, id, run)
        of_store: dict[str, Any] = {} if keeper is None else {"store": keeper.store, "approvals": keeper.store}
        if keeper is not None and (run is None or run.channel.conversation_id is None):
            of_store["conversation_id"] = keeper.id
        super().__init__(chat_model, format, run_for(run, "session", **of_store), keeper)
        if "tools" in defaults:
            pipeline_of(defaults["tools"]).check_run(self.host_run)
        self.system, self.defaults = system, defaults
        self.transcript = Transcript(transcript, self.format)
        self._took = Usage()

    @overload
    async def step(
        self, *, output: type[T], **keywords: Unpack[StepOptions]
    ) -> NeedsTools | Continue | Finished[T] | Stopped: ...
    @overload
    async def step(self, **keywords: Unpack[StepKeywords]) -> NeedsTools | Continue | Finished[Any] | Stopped: ...
    async def step(self, **keywords: Unpack[StepKeywords]) -> NeedsTools | Continue | Finished[Any] | Stopped:
        """Ask the model once, and return what it wants: tools, to go on, or to have answered; or why its reply ended.

        Args:
            keywords: Options in the place of the session's defaults: see `StepOptions`.

        Raises:
            TypeError: There is no such keyword; nothing was sent.
            ToolConstraintError: A required tool is not offered; nothing was sent.
            RoundError: The round before was neither committed nor discarded, or another step or run of the session is
                under way; nothing was sent.
            InvalidOutput: The answer is not of the type that was asked for; nothing was committed.
        """
        async with self._at_work():
            result = await self._step(keywords)
            await self._save()
            return result

    async def _step(self, keywords: StepKeywords) -> NeedsTools | Continue | Finished[Any] | Stopped:
        self._require_settled()
        self._unkept.require_question(self.transcript)
        require_known("a step", keywords)
        options = cast("StepKeywords", {**self.defaults, **keywords})
        pipeline = pipeline_of(options.get("tools", ()))
        pipeline.check_run(self.host_run)
        request = await self._request(pipeline, options)
        self._activity.open(pipeline.sinks)
        listeners = reply_listeners(options)
        with self._activity.request(json=request.output is not None) as sent:
            self._took = Usage()
            round = await self._ask(pipeline, request, options, listeners, sent)
        self._container = round.container or self._container
        return await self._read(round, options)

    async def _ask(
        self,
        pipeline: Pipeline,
        request: ChatRequest,
        options: StepKeywords,
        listeners: ReplyListeners,
        sent: ModelRequest,
    ) -> ToolRound:
        """Ask the model, again where it fails and the step has a `retry`, and return its reply as a round."""
        retry, number = options.get("retry") or Retry(times=0), 0
        while True:
            counter, round, failure = UsageCounter(self.format), None, None
            try:
                round = sent.round = await self._ask_once(pipeline, request, options, listeners, counter)
            except Exception as error:  # the model is the code of others
                failure = error
            finally:
                took = counter.usage()
                self._took += took
                self.usage += took
                sent.usage, sent.answered_by = self._took, counter.model
            if round is not None and round.stop_kind != "error":
                return round
            is_shown = counter.counted_any and any(listeners.values())
            pause = None if is_shown else retry.pause_after(failure, number)
            if pause is None and round is not None:
                return round
            if pause is None:
                raise failure or RuntimeError("the model did not answer")
            if round is not None:
                round.discard()
            number += 1
            await retry.clock.sleep(pause)

    async def _ask_once(
        self,
        pipeline: Pipeline,
        request: ChatRequest,
        options: StepKeywords,
        listeners: ReplyListeners,
        counter: UsageCounter,
    ) -> ToolRound:
        available, strict = options.get("available"), options.get("strict", False)
        reading = DecodeKeywords(
            format=self.format,
            run=self._activity.run,
            transcript=self.transcript,
            strict=strict,
            repair=options.get("repair", False),
        )
        reply: object = self.model.reply(request)
        if isawaitable(reply):  # an async generator is a stream as it is
            reply = await reply
        if not isinstance(reply, AsyncIterable):
            counter.count(reply)
            round = decode(pipeline, reply, available, **reading)
            ReplyWatcher(pipeline, self.format, listeners, strict=strict).close(round)
            return round
        stream = cast("AsyncIterable[object]", reply)
        async with closed_stream(stream), aclosing(counter.counted(stream)) as chunks:
            return await decode_stream(pipeline, chunks, available, **listeners, **reading)

    async def _read(self, round: ToolRound, options: StepKeywords) -> NeedsTools | Continue | Finished[Any] | Stopped:
        """Return the next step that a reply asks for."""
        if asks(round):
            self._staged = round
            return NeedsTools(round)
        if round.stop_kind == "paused":
            await round.commit(self.transcript)
            return Continue(round)
        if round.stop_kind not in FINISHED:
            self._activity.close("failed", f"the reply ended without an answer: {round.stop_kind}")
            return Stopped(round, self.transcript, self._took)
        try:
            answer = Finished(round, typed_answer(round.text, options.get("output")), self.transcript, self._took)
        except InvalidOutput as error:
            self._activity.broken_off(error)
            raise
        self._activity.close("completed")
        self._unanswered.clear()
        self._unkept.turns.clear()
        if options.get("commit", True):
            await answer.commit()
        else:
            self._staged = round
        return answer

    @overload
    async def run(
        self,
        dispatch: Dispatch | None = None,
        *,
        output: type[T],
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepOptions],
    ) -> SessionResult[T]: ...
    @overload
    async def run(
        self,
        dispatch: Dispatch | None = None,
        *,
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepKeywords],
    ) -> SessionResult[Any]: ...
    async def run(
        self,
        dispatch: Dispatch | None = None,
        *,
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepKeywords],
    ) -> SessionResult[Any]:
        """Ask the model until it has answered, and execute the calls that it makes.

        A session with an open round goes on with that one first: a session that waited for a person, perhaps in another
        process, is simply run again. Calls that are still suspended are looked for in the run's store, and its approver
        is asked.

        Args:
            dispatch: Executes a call, and returns its output, `call.reject(...)`, or another answer; it may be async.
                What it raises ends the run, with the round left open. Without it the tools' own functions are executed.
            max_rounds: How often the model may ask for tools, or to go on.
            hooks: Decision hooks for every round.
            keywords: As for `step`.

        Returns:
            The answer, a `Finished`, whose `result` it is; a `Stopped`, when a reply ended without one; or a `Waiting`,
            the plan of a round that waits for the host: calls are suspended until a person answers, or something is
            `unhandled`. Where a gate suspended them or something is unhandled, nothing of the round was executed. Run
            again when there is an answer. Each of them has `result`, which says what to do without one, and
            `waits_for`.

        Raises:
            RoundError: The model still asks for tools after so many rounds, and the last round was discarded; an answer
                is staged; a `dispatch` that raised has begun the calls of the open round; nothing was said in the
                session; or another step or run of it is under way.
            NotCallable: There is no `dispatch`, and a tool has no function; nothing of the round, which is left open,
                was executed.
        """
        require_known("session.run()", keywords, "dispatch", "hooks", "max_rounds")
        require_dispatch("session.run()", dispatch, "Session")
        async with self._at_work():
            result = await self._run(dispatch, max_rounds, hooks, keywords)
            await self._save(is_over=True)
            return result

    async def _run(
        self, dispatch: Dispatch | None, max_rounds: int, hooks: RoundHooks, keywords: StepKeywords
    ) -> SessionResult[Any]:
        require_number("Session.run", "max_rounds", max_rounds, least=1)
        took, round = Usage(), self.open_round
        if round is None and not self.transcript:
            lacking = "" if self._keeper is None else f"; no session is kept as {self._keeper}"
            raise RoundError((f"nothing was said in this session: call `session.say(...)` first{lacking}",))
        for number in range(max_rounds + 1):
            if round is not None:
                plan = await self.follow(round.run(self, dispatch, hooks=hooks))
                if not round.settled:
                    return Waiting.of(plan)
                await self._save()
            step = await self._step(keywords)
            took += self._took
            if isinstance(step, Finished | Stopped):
                step.usage = took
                return step
            round = step.round if isinstance(step, NeedsTools) else None
            if round is not None and number == max_rounds:
                round.discard()
            await self._save()
        error = RoundError((f"the model still asks for tools, or to go on, after {count_text(max_rounds, 'round')}",))
        self._activity.broken_off(error)
        raise error

    async def follow(self, work: Awaitable[ToolRoundPlan]) -> ToolRoundPlan:
        """Await what takes a round on, in a loop of the host's own: its calls are a part of the session's activity.

        If the round is still open then, sinks receive an event that says for whom it waits. What `work` raises ends the
        activity.
        """
        with self._activity.within():
            plan = await work
        if self.open_round is not None:
            self._activity.suspend(call.request for call in plan.suspended)
        return plan

    def break_off(self, error: BaseException) -> None:
        """End the session's activity with an error of the host's own loop, so that sinks receive its end."""
        self._activity.broken_off(error)

    @overload
    def run_sync(
        self,
        dispatch: Dispatch | None = None,
        *,
        output: type[T],
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepOptions],
    ) -> SessionResult[T]: ...
    @overload
    def run_sync(
        self,
        dispatch: Dispatch | None = None,
        *,
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepKeywords],
    ) -> SessionResult[Any]: ...
    def run_sync(
        self,
        dispatch: Dispatch | None = None,
        *,
        max_rounds: int = 10,
        hooks: RoundHooks = None,
        **keywords: Unpack[StepKeywords],
    ) -> SessionResult[Any]:
        """Run the session as `run` does, from plain code; RuntimeError where an event loop runs already."""
        work = self.run(dispatch, max_rounds=max_rounds, hooks=hooks, **keywords)
        return run_sync(work, instead="await session.run(...)")

    def __repr__(self) -> str:
        waits = "" if self.open_round is None else f", {self.open_round!r} is open"
        return f"<Session of {count_text(len(self.transcript), 'message')} in the format {self.format}{waits}>"

    def __aiter__(self) -> Never:
        mend = "`await session.run(on_text=...)` gives the answer piece by piece"
        raise TypeError(f"a session is not a stream: {mend}")

    def copy(self) -> Session:
        """Return another session that goes on from here: in the same run, with a transcript of its own."""
        self._require_settled()
        copied = Session(
            self.model,
            format=self.format,
            system=self.system,
            transcript=self.transcript,
            run=self.host_run,
            **self.defaults,
        )
        copied._container, copied.usage = self._container, self.usage
        copied._unkept = UnkeptTurns(self._unkept.turns)
        return copied

    # --- another process

    @classmethod
    async def from_json(
        cls,
        model: ChatModel | str | object,
        text: str | bytes,
        *,
        model_name: str = "",
        run: Run | None = None,
        **defaults: Unpack[StepKeywords],
    ) -> Session:
        """Return the session that `to_json` described; `open_round` has the round that was open, if there was one.

        Decision hooks are not asked about its calls a second time; see `ToolRoundPlan.from_json`.

        Args:
            model: The model, as for `Session`, and `model_name` with it.
            text: The result of `to_json`.
            run: The run that goes on; what was counted in it before is added. One of the same id when None.
            defaults: As for `Session`; the tools have to be among them when a round is open.

        Raises:
            ValueError: The text is not a session, the client is not of its format, or a round is open without tools.
        """
        data = StoredFields(cls, read_stored(text))
        run = run_from(data["run"], run, "session")
        session = cls(model, model_name=model_name, format=data["format"], system=data["system"], run=run, **defaults)
        await session._take_up(data)
        return session

    # --- inside

    async def _request(self, pipeline: Pipeline, options: StepKeywords) -> ChatRequest:
        toolset = pipeline.toolset
        require = options.get("require") or ToolRequirement.optional()
        available = options.get("available")
        require.check(toolset.offered(available))
        describe = {**await toolset.description_overrides(), **options.get("describe", {})}
        tools = toolset.definitions(
            available,
            format=self.format,
            strict=options.get("strict", False),
            return_schemas=options.get("return_schemas", False),
            describe=describe,
            revealed=self.host_run.revealed,
        )
        output, rounds = options.get("output"), options.get("full_results")
        messages = self._sent.messages(self.transcript)
        if rounds is not None:
            messages = self._old_results.sent(messages, rounds)
        rules, cache = PROVIDERS[self.format], options.get("cache", False)
        messages, offered = self._unkept.sent(messages, rules), joined_tools(tools, options.get("provider_tools", ()))
        if cache:
            messages, offered = rules.cached_messages(messages), rules.cached_tools(offered)
        return ChatRequest(
            format=self.format,
            messages=messages,
            system=self.system,
            tools=offered,
            tool_choice=require.tool_choice(self.format) if tools else None,
            output=answer_schema(output),
            parallel=require.parallel,
            container=self._container,
            cache=cache,
            stream=any(reply_listeners(options).values()),
            run=self.host_run,
        )
