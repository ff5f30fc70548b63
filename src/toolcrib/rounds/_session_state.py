"""State of a session: what its host sees of it, its form as JSON, and its place in a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, Self, cast

from toolcrib.calls import StoredFields, Suspended, versioned
from toolcrib.errors import RoundError
from toolcrib.formats import PROVIDERS, Item, ProviderFormat, WireCall, WireFormat, json_shape, read_stored, stored
from toolcrib.pipeline import Run
from toolcrib.rounds._chat_model import ChatModel
from toolcrib.rounds._client_model import as_chat_model
from toolcrib.rounds._recalled import count_as_read, recall_transcript
from toolcrib.rounds._round import ToolRound, asks
from toolcrib.rounds._round_json import run_from, run_of
from toolcrib.rounds._round_state import pipeline_of
from toolcrib.rounds._session_activity import SessionActivity
from toolcrib.rounds._session_keeper import SessionKeeper
from toolcrib.rounds._step import StepKeywords, what_waits
from toolcrib.rounds._transcript import ReadItems, SentItems, Transcript
from toolcrib.rounds._unkept_turns import UnkeptTurns
from toolcrib.rounds._usage import Usage


class SessionState:
    """The part of a session that asks its model nothing.

    Attributes:
        usage: The requests, tokens and cost so far.
    """

    host_run: Run
    defaults: StepKeywords
    system: str
    transcript: Transcript
    usage: Usage

    def __init__(self, model: ChatModel, format: WireFormat | None, run: Run, keeper: SessionKeeper | None) -> None:
        self.model, self.host_run, self._keeper = model, run, keeper
        self.format: WireFormat = format or getattr(model, "format", next(iter(PROVIDERS)))
        self.usage = Usage()
        self._activity = SessionActivity(model, self.format, run)
        self._staged: ToolRound | None = None
        self._sent, self._old_results = SentItems(), OldResults(PROVIDERS[self.format])
        self._container = ""
        self._is_at_work = False
        self._unanswered: list[str] = []  # what the user said since the last answer
        self._waiting: list[tuple[str, bool]] = []  # what the user said before the session was loaded, and `keep`
        self._unkept = UnkeptTurns()
        self._repeated: list[str] = []  # what may be said again, after it was loaded, and is in the transcript

    def say(self, text: str, *, keep: bool = True) -> Self:
        """Add the user's text to the transcript, and return the session.

        Of a session in a store it is added when that is loaded, by the next step or run; what was said before, and has
        no answer yet, is not added again: a process that comes back says the same.

        Args:
            text: The user's message.
            keep: Whether it is kept in the transcript. What is not kept is sent with each request until the model has
                answered, in the place where it was said (of Bedrock behind the rest of the user's turn), and with a
                question that is kept. In a process that comes back, what is said so takes the place of what was.

        Raises:
            RoundError: The session waits for a person, or for another answer; or the round or answer before was neither
                committed nor discarded.
            TypeError: It is not a text. A message with an image is appended to `transcript`, in the provider's format.
            ValueError: It is blank, which providers refuse.
        """
        if not isinstance(cast("object", text), str):
            mend = "append a message with other parts to `session.transcript`, in the format of the provider"
            raise TypeError(f"`say` takes a text, and this is {text!r:.80}: {mend}")
        if not text.strip():
            raise ValueError("the text is blank")
        if self._keeper is not None and not self._keeper.is_loaded:
            self._waiting.append((text, keep))
            return self
        if not keep:
            self._unkept.add(self.transcript, text)
            self.host_run.add_user_message(text)
            return self
        if self._repeated and self._repeated.pop(0) == text:
            return self
        self._repeated.clear()
        self._require_settled()
        PROVIDERS[self.format].add_user(self.transcript, text)
        self.host_run.add_user_message(text)
        self._unanswered.append(text)
        return self

    @property
    def open_round(self) -> ToolRound | None:
        """The round that was neither committed nor discarded, or None."""
        staged = self._staged
        return staged if staged is not None and not staged.settled and asks(staged) else None

    def to_json(self) -> str:
        """Return the session as JSON, from which `from_json` goes on, in another process perhaps.

        It has an open round, with the real arguments of its calls: keep it where you keep secrets.

        Raises:
            RoundError: An answer is staged, or the input of a call was edited since its gates were asked.
        """
        return self._to_json(is_over=True)

    def _to_json(self, *, is_over: bool) -> str:
        """Return the session as JSON; where work on it `is_over` here, an open activity of it is paused."""
        open_round = self.open_round
        if open_round is None:
            self._require_settled()
        data: dict[str, Any] = {
            "format": self.format,
            "system": self.system,
            "container": self._container,
            "usage": self.usage.to_dict(),
            "transcript": [dict(json_shape(item)) for item in self.transcript],
            "run": run_of(self.host_run),
            "round": None if open_round is None else open_round.to_json(),
            "activity": None if open_round is None else self._activity.pause(is_over=is_over),
            "unanswered": self._unanswered,
            "unkept": self._unkept.turns,
        }
        return stored(versioned("Session", data))

    async def _take_up(self, data: StoredFields) -> None:
        """Restore the session from what `to_json` described."""
        if data["format"] != self.format:
            raise ValueError(f"the session is in the format {data['format']!r}, and its model's is {self.format!r}")
        self.transcript = Transcript(data["transcript"], self.format)
        self._container = data.get("container", "")
        self.usage = Usage.from_dict(data["usage"]) if "usage" in data else Usage()
        self._unanswered = list(data.get("unanswered", ()))
        self._repeated = [] if self._keeper is None else list(self._unanswered)
        self._unkept = UnkeptTurns(data.get("unkept", ()))
        for _, text in self._unkept.turns:
            self.host_run.add_user_message(text)
        pipeline = pipeline_of(self.defaults.get("tools", ()))
        recall_transcript(self.host_run, pipeline.toolset, self.transcript, self.format)
        if data["round"] is not None:
            if "tools" not in self.defaults:
                raise ValueError("a round is open, and its calls belong to no tools: give `tools=`")
            self._activity.open(pipeline.sinks, data.get("activity"))
            self._staged = await ToolRound.from_json(pipeline, data["round"], run=self._activity.run)

    def switch(
        self,
        model: ChatModel | str | object,
        *,
        model_name: str = "",
        format: WireFormat | None = None,
        drop: bool = False,
    ) -> tuple[str, ...]:
        """Switch the session to another model, of another provider perhaps, and return what that model is not told.

        The transcript is written in the other format, as `Transcript.switched` does it. `provider_tools` of the session
        are those of the provider before, and are left out then.

        Args:
            model: The model, as for `Session`; so are `model_name` and `format`.
            drop: As for `Transcript.switched`.

        Returns:
            What is not in the transcript any more, a sentence each: thoughts, citations.

        Raises:
            RoundError: The round before was neither committed nor discarded; or the session is in a store, and was not
                loaded yet.
            ValueError: There is a part that the other provider does not take; the session is as it was.
        """
        self._require_settled()
        self._require_loaded()
        chat_model = as_chat_model(model, model_name, format)
        to: WireFormat = format or getattr(chat_model, "format", next(iter(PROVIDERS)))
        if to == self.format:
            self._go_on_with(chat_model, to, self.transcript)
            return ()
        recall_transcript(
            self.host_run, pipeline_of(self.defaults.get("tools", ())).toolset, self.transcript, self.format
        )
        transcript, dropped = self.transcript.switched(to, drop=drop)
        places = [
            len(Transcript(self.transcript[:at], self.format).switched(to, drop=drop)[0])
            for at, _ in self._unkept.turns
        ]
        self._unkept = UnkeptTurns(zip(places, (text for _, text in self._unkept.turns), strict=True))
        count_as_read(self.host_run, self.transcript, transcript)
        self._go_on_with(chat_model, to, transcript)
        if self.defaults.pop("provider_tools", ()):
            dropped += ("`provider_tools` of the provider before were left out",)
        return dropped

    # --- a store

    async def load(self) -> Self:
        """Read the session from its store, so that its transcript and open round can be seen, and return it.

        A step or run does so by itself. What was loaded before stays as it is.

        Raises:
            RoundError: Another process went on with the session after it was loaded here; or words were said while a
                round waits, and they are others than before.
            ValueError: The session is not in the format of its model, or a round is open without tools.
        """
        keeper = self._keeper
        stored = None if keeper is None else await keeper.load()
        if stored is not None:
            data = StoredFields(type(self), read_stored(stored.state))
            is_new = self.host_run.run is self.host_run  # of one that nobody gave, the id stays the same
            run, store = None if is_new else self.host_run, self.host_run.durability.store
            conversation = self.host_run.channel.conversation_id
            run = run_from(data["run"], run, "session")
            self.host_run = run.view(store=store, approvals=store, conversation_id=conversation)
            self._activity = SessionActivity(self.model, self.format, self.host_run)
            self.system = self.system or data["system"]
            await self._take_up(data)
        if keeper is not None:
            keeper.is_loaded = True
        waiting, self._waiting = self._waiting, []
        unkept = [text for text, keep in waiting if not keep]
        if unkept and self._unkept.turns:
            self._unkept.replace(unkept)
            waiting = [(text, keep) for text, keep in waiting if keep]
            for text in unkept:
                self.host_run.add_user_message(text)
        for text, keep in waiting:
            self.say(text, keep=keep)
        return self

    async def save(self) -> None:
        """Save the session in its store, where a loop of the host's own has committed or discarded a round.

        A step or run does so by itself.

        Raises:
            RoundError: Another process went on with the session meanwhile, or deleted it.
            ResultNotSerializable: A tool's result in the open round has no JSON form; commit first.
        """
        await self._save()

    async def delete(self) -> bool:
        """Remove the session from its store, and return whether it was there; the requests of its calls stay.

        Raises:
            RoundError: It is worked on, by another process or task.
        """
        if self._keeper is None:
            return False
        async with self._keeper.claim():
            return await self._keeper.delete()

    async def _save(self, *, is_over: bool = False) -> None:
        """Save the session; one with a staged answer stays as it was saved before that."""
        if self._keeper is None or not self._keeper.is_loaded:
            return
        is_open = self.open_round is not None
        if is_open or self._staged is None or self._staged.settled:
            await self._keeper.save(self._to_json(is_over=is_over), is_open=is_open)

    # --- inside

    @asynccontextmanager
    async def _at_work(self) -> AsyncGenerator[None]:
        """Work on the session in the body, as the only one here and in other processes; RoundError where it is not."""
        if self._is_at_work:
            mend = "await that first, or ask a `session.copy()`"
            raise RoundError((f"another step or run of this session is under way: {mend}",))
        self._is_at_work = True
        try:
            async with nullcontext() if self._keeper is None else self._keeper.claim():
                await self.load()
                self._repeated.clear()
                await self._save()
                yield
        finally:
            self._is_at_work = False

    def _require_loaded(self) -> None:
        if self._keeper is not None and not self._keeper.is_loaded:
            raise RoundError(("the session was not loaded from its store: `await session.load()` first",))

    def _go_on_with(self, model: ChatModel, format: WireFormat, transcript: Transcript) -> None:
        """Switch to another model, from a transcript in its format."""
        self.model, self.format, self.transcript = model, format, transcript
        self._activity = SessionActivity(model, format, self.host_run)
        self._sent, self._old_results = SentItems(), OldResults(PROVIDERS[format])
        self._container = ""

    def _require_settled(self) -> None:
        staged = self._staged
        if staged is not None and not staged.settled:
            requests = [call.outcome.request for call in staged.tool_calls if isinstance(call.outcome, Suspended)]
            if asks(staged) and (requests or staged.unhandled):
                problem, mend = what_waits(requests, staged.unhandled)
                raise RoundError((f"{problem}: {mend}; `session.open_round.discard()` drops the round",))
            unfinished = "round" if asks(staged) else "answer"
            raise RoundError((f"the {unfinished} before was neither committed nor discarded: do one or the other",))
        self._staged = None


# --- old results


class OldResults(ReadItems):
    """The items of a transcript as they are sent when they are old; each is read once, as long as it stands there.

    Attributes:
        format: The rules that they are read by.
        short: For each item what is sent of it when it is old.
        begins: The place of the first result of each round.
        calls: The calls in the items, by what their results name.
        is_after_result: Whether the last item has results.
    """

    __slots__ = ("begins", "calls", "format", "is_after_result", "short")

    def __init__(self, format: ProviderFormat) -> None:
        self.format = format
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.format,))

    def forget(self) -> None:
        self.items, self.short, self.begins = [], list[Item](), list[int]()
        self.calls: dict[str, WireCall] = {}
        self.is_after_result = False

    def sent(self, messages: tuple[Item, ...], rounds: int) -> tuple[Item, ...]:
        """Return the messages with a line in the place of each result that is older than so many rounds."""
        for item in self.rest_of(messages):
            self._read(item)
        if len(self.begins) <= rounds:
            return messages
        begin = self.begins[-rounds]
        return (*self.short[:begin], *messages[begin:])

    def _read(self, item: Item) -> None:
        shape = json_shape(item)
        is_result = bool(self.format.raw_results(shape))
        if is_result and not self.is_after_result:
            self.begins.append(len(self.items))
        self.is_after_result = is_result
        self.short.append(self._shortened(item, shape) if is_result else item)
        self.items.append(item)
        self.calls |= {call.id or call.name: call for call in self.format.calls_of(shape)}

    def _shortened(self, item: Item, shape: Mapping[str, Any]) -> Item:
        """Return an item with a line in the place of each result of a tool that is longer than that."""
        rules, raw = self.format, list[Item]()
        results = zip(rules.results_of(shape), rules.raw_results(shape), strict=True)
        for result, before in results:
            call = self.calls.get(result.call.id or result.call.name)
            if call is None or call.kind != "function":  # what answers another call has fields of its own
                raw.append(before)
                continue
            line = f"The result of `{call.name}` was left out here, because it is old."
            [answer] = rules.answer([replace(result, call=call, content=line)])
            [after] = rules.raw_results(answer)
            raw.append(after if len(str(after)) < len(str(before)) else before)
        shortened = rules.pack(raw, rules.rest_of(shape))
        is_valid = len(shortened) == 1 and rules.result_keys(shortened[0]) == rules.result_keys(shape)
        return shortened[0] if is_valid and shortened[0] != shape else item
