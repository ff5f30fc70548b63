"""Doors through a loop that its host owns: a round in each wire format, and a session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from toolcrib.calls import Outcome, Suspended, outcome_from_dict
from toolcrib.formats import PROVIDERS
from toolcrib.invoke import RunScope
from toolcrib.rounds import NeedsTools, Session, ToolRound, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.testing._doors import Ability, Door, Visit
from toolcrib.testing._fakes import RecordingSink
from toolcrib.testing._replies import wire_reply
from toolcrib.testing._scripted import ScriptedModel

__all__ = ["round_doors"]


class RoundDoor(Door):
    """A reply with one call, decoded, decided on, run and committed.

    Args:
        format: The wire format of the reply and of the transcript.
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset({"model", "run", "id", "concurrent", "cancel"})

    def __init__(self, format: WireFormat) -> None:
        self._format: WireFormat = format
        self.title = f"{format} round"

    async def carry(self, visit: Visit) -> Outcome:
        begun = await self._begin(visit)
        return await begun.go_on()

    async def _begin(self, visit: Visit) -> Begun:
        watch = RecordingSink()
        scope = replace(visit.scope, sinks=(*visit.scope.sinks, watch))
        transcript = Transcript(PROVIDERS[self._format].user("go"), self._format)
        return Begun(await self._round(visit, scope).apply_hooks(), transcript, watch)

    def _round(self, visit: Visit, scope: RunScope) -> ToolRound:
        reply = wire_reply(self._format, [visit.new])
        return decode(visit.pipeline, reply, format=self._format, scope=scope)


class TextRoundDoor(RoundDoor):
    """The same in a format whose provider hands a model's JSON on as it is, malformed or not."""

    abilities: ClassVar[frozenset[Ability]] = RoundDoor.abilities.union({"json"})


class SessionDoor(TextRoundDoor):
    """A session whose model makes one call."""

    def __init__(self) -> None:
        super().__init__("openai")
        self.title = "session"

    async def _begin(self, visit: Visit) -> Begun:
        watch = RecordingSink()
        scope = replace(visit.scope, sinks=(*visit.scope.sinks, watch))
        session = Session(ScriptedModel(visit.new), scope=scope, tools=visit.pipeline).say("go")
        made = await session.step()
        if not isinstance(made, NeedsTools):
            raise AssertionError("the session took a reply with a call for an answer")
        return Begun(await made.round.apply_hooks(), session.transcript, watch)


@dataclass(frozen=True, slots=True)
class Begun:
    """A round of one call whose gates were asked."""

    plan: ToolRoundPlan
    transcript: Transcript
    watch: RecordingSink

    async def go_on(self) -> Outcome:
        """Take it to its end, unless a person is needed, and return what came of the call."""
        results = await self.plan.run_pending()
        for waiting in self.plan.awaiting:
            return Suspended(waiting.call.name, waiting.call.id, waiting.request)
        await self.plan.commit(self.transcript, results)
        problems = self.transcript.check()
        if problems:
            raise AssertionError(f"the round left a transcript that its provider refuses: {problems}")
        return outcome_from_dict(self.watch.records[-1].outcome)


round_doors: tuple[Door, ...] = (
    TextRoundDoor("openai"),
    TextRoundDoor("openai_responses"),
    RoundDoor("anthropic"),
    RoundDoor("gemini"),
    TextRoundDoor("mistral"),
    SessionDoor(),
)
