"""Ways in through a loop that its host owns: a round in each wire format, and a session."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from toolcrib.calls import Denial, Grant, Outcome, Suspended, outcome_from_dict
from toolcrib.formats import PROVIDERS
from toolcrib.pipeline import Run
from toolcrib.rounds import NeedsTools, Session, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.testing._fakes import RecordingSink
from toolcrib.testing._replies import wire_reply
from toolcrib.testing._scripted import ScriptedModel
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

_SAVED = "round"  # where a call that waits has the JSON of its round


class RoundWay(Way):
    """A reply with one call, decoded, decided on, run and committed; one that is suspended is resumed from its JSON.

    Args:
        format: The wire format of the reply and of the transcript.
    """

    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - {"json"}

    def __init__(self, format: WireFormat) -> None:
        self._format: WireFormat = format
        self.title = f"{format} round"

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        if not isinstance(request.call, Suspended):
            return await (await self._begin(request, run, watch)).go_on()
        begun = await self._take_up(request, request.call, run, watch)
        match request.answer:
            case Grant() as grant:
                await begun.plan.resolve([grant])
            case Denial() as denial:
                await begun.plan.resolve(denials=[denial])
            case None:
                await begun.plan.resolve()
        return await begun.go_on()

    async def _begin(self, request: WayRequest, run: Run, watch: RecordingSink) -> Begun:
        reply = wire_reply(self._format, [request.new])
        round = decode(request.pipeline, reply, format=self._format, run=run)
        return self._begun(request, await round.apply_hooks(), watch)

    async def _take_up(self, request: WayRequest, waiting: Suspended, run: Run, watch: RecordingSink) -> Begun:
        text = json.dumps(_with_call(_saved(waiting), waiting))
        return self._begun(request, await ToolRoundPlan.from_json(request.pipeline, text, run=run), watch)

    def _begun(self, request: WayRequest, plan: ToolRoundPlan, watch: RecordingSink) -> Begun:
        transcript = Transcript(PROVIDERS[self._format].user("go"), self._format)
        return Begun(request, plan, transcript, watch, plan.to_json)


class TextRoundWay(RoundWay):
    """The same in a format whose provider hands a model's JSON on as it is, malformed or not."""

    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities


class OpenAIRoundWay(TextRoundWay):
    """The same in OpenAI's older format and Cohere's, whose tool messages are text."""

    abilities: ClassVar[frozenset[Ability]] = TextRoundWay.abilities - {"media"}


class SessionWay(OpenAIRoundWay):
    """A session whose model makes one call."""

    def __init__(self) -> None:
        super().__init__("openai")
        self.title = "session"

    async def _begin(self, request: WayRequest, run: Run, watch: RecordingSink) -> Begun:
        session = Session(ScriptedModel(request.new), run=run, tools=request.pipeline).say("go")
        step = await session.step()
        if not isinstance(step, NeedsTools):
            raise AssertionError("the session took a reply with a call for an answer")
        return await self._opened(request, session, watch)

    async def _take_up(self, request: WayRequest, waiting: Suspended, run: Run, watch: RecordingSink) -> Begun:
        saved = _saved(waiting)
        saved["round"] = json.dumps(_with_call(json.loads(saved["round"]), waiting))
        model = ScriptedModel()
        session = await Session.from_json(model, json.dumps(saved), run=run, tools=request.pipeline)
        return await self._opened(request, session, watch)

    async def _opened(self, request: WayRequest, session: Session, watch: RecordingSink) -> Begun:
        if session.open_round is None:
            raise AssertionError("the session has lost its round")
        return Begun(request, await session.open_round.apply_hooks(), session.transcript, watch, session.to_json)


@dataclass(frozen=True, slots=True)
class Begun:
    """A round of one call whose gates were asked."""

    request: WayRequest
    plan: ToolRoundPlan
    transcript: Transcript
    watch: RecordingSink
    save: Callable[[], str]

    async def go_on(self) -> Outcome:
        """Run it to its end, unless a person is needed, and return the outcome of the call."""
        results = await self.plan.run_pending()
        if self.plan.suspended:
            [call] = json.loads(self.plan.to_json())["calls"]
            outcome = call["outcome"]
            return outcome_from_dict({**outcome, "call": {**outcome["call"], _SAVED: self.save()}})
        await self.plan.commit(self.transcript, results)
        self.request.shown.append(json.dumps(list(self.transcript), default=_base64))
        problems = self.transcript.check()
        if problems:
            raise AssertionError(f"the round left a transcript that its provider refuses: {problems}")
        return outcome_from_dict(self.watch.records[-1].outcome)


def _base64(data: bytes) -> str:
    """Return the bytes of an image that a provider's SDK writes out itself."""
    return b64encode(data).decode()


def _saved(waiting: Suspended) -> dict[str, Any]:
    """Return the data that the suspended call was saved with, as JSON shapes."""
    return json.loads(waiting.to_dict()["call"][_SAVED])


def _with_call(round: dict[str, Any], waiting: Suspended) -> dict[str, Any]:
    """Return a saved round with its call as the test gives it, which may have changed it."""
    [call] = round["calls"]
    return {**round, "calls": [{**call, "outcome": waiting.to_dict()}]}


round_ways: tuple[Way, ...] = (
    OpenAIRoundWay("openai"),
    TextRoundWay("openai_responses"),
    RoundWay("anthropic"),
    RoundWay("gemini"),
    TextRoundWay("mistral"),
    RoundWay("bedrock"),
    RoundWay("ollama"),
    OpenAIRoundWay("cohere"),
    RoundWay("gemini_interactions"),
    SessionWay(),
)
