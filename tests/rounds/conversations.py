"""A conversation in which moves are made, and each transcript that comes of them is checked."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from random import Random
from typing import Any

from tests.rounds.endings import stopped, words_of
from tests.rounds.moves import (
    DECISIONS,
    SENT,
    Commit,
    CommitAtOnce,
    Damage,
    Decide,
    Discard,
    Mend,
    Move,
    Reply,
    Resolve,
    Say,
    moves_of,
)
from tests.rounds.provider_rules import is_about_items, is_about_pairing, refused
from tests.rounds.replies import ReadFile, WebSearch
from tests.rounds.streams import failure, pieces, whole
from toolcrib.calls import Ask, Complete, Reject, RunNormally
from toolcrib.errors import CommitError, RoundError
from toolcrib.formats import PROVIDERS
from toolcrib.hooks import HookSet
from toolcrib.rounds import DecodedCall, ToolResult, ToolRound, ToolRoundPlan, Transcript, WireFormat, decode
from toolcrib.tools import ez_tool
from toolcrib.toolsets import ToolAvailability, Toolset, off, use


@ez_tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    if b == 0:
        raise ValueError("nothing to add")
    return a + b


@ez_tool(requires_approval=True)
async def wipe(path: str) -> str:
    """Remove a file."""
    return path


class Tools(Toolset):
    add = use(add)
    wipe = use(wipe)
    web_search = use(WebSearch)
    read_file = off(ReadFile)


AVAILABLE = {
    "default": None,
    "all": ToolAvailability.all(),
    "some": ToolAvailability.only(Tools.add, Tools.read_file),
}


@dataclass(slots=True)
class Counts:
    """What came of the moves of some conversations.

    Attributes:
        decoded: The replies that were decoded, each of them a round.
        cut: Those of them that were streams that never came to their end.
        committed: The rounds whose turn was added to a transcript.
        answered: Those of them with results.
        refused: The commits that were refused; each left the transcript as it was.
    """

    decoded: int = 0
    cut: int = 0
    committed: int = 0
    answered: int = 0
    refused: int = 0

    def add(self, other: Counts) -> None:
        """Add what came of others."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __str__(self) -> str:
        told = [f"{getattr(self, field.name):,} {field.name}" for field in fields(self)]
        return ", ".join(told)


class Conversation:
    """A transcript, to which rounds are committed in whatever way a host may come upon."""

    def __init__(self, format: WireFormat) -> None:
        self.format: WireFormat = format
        self.transcript = Transcript(PROVIDERS[format].user("go"), format)
        self.round: ToolRound | None = None
        self.plan: ToolRoundPlan | None = None
        self.counts = Counts()
        self.spoilt = False

    async def make(self, move: Move) -> None:
        """Make a move; AssertionError when the provider would not take the transcript that it leads to."""
        before = list(self.transcript)
        match move:
            case Reply():
                self._reply(move)
            case Decide(decision):
                await self._try(self._decide(HOOKS[decision]))
            case Resolve(yes):
                await self._resolve(yes)
            case Discard():
                await self._try(self._discard())
            case Say():
                self._say()
            case Damage(seed):
                damage(self.transcript, Random(seed))
                self.spoilt = True
            case Mend():
                self.transcript.repair()
                self._must_be_valid(mended=True)
            case Commit() | CommitAtOnce():
                done = await self._try(self._commit(move))
                assert done or self.transcript == before, "a refused commit changed the transcript"
                if len(self.transcript) != len(before):
                    self._must_be_valid()

    def _must_be_valid(self, mended: bool = False) -> None:
        wrong = refused(self.format, self.transcript, SENT)
        found = self.transcript.check()
        if self.spoilt:  # which results answer which calls is still to be right; other things the host has spoilt
            wrong = list(filter(is_about_items if mended else is_about_pairing, wrong))
            found = [problem for problem in found if mended or problem.kind != "order"]
        assert not wrong, f"the provider refuses the transcript: {wrong}"
        assert not found, f"the provider takes the transcript, and check() does not: {found}"

    def _reply(self, move: Reply) -> None:
        if (self.format, self.transcript[-1].get("role")) in (("gemini", "model"), ("bedrock", "assistant")):
            self._say()  # they are not asked to go on from their own word
        reply: Any = whole(self.format, move.calls, move.text, move.thinks)
        if move.size:
            chunks = pieces(self.format, move.calls, move.text, move.thinks, move.size)
            reply = chunks[: len(chunks) * move.kept // 100] + [failure(self.format)] * move.failed
            self.counts.cut += move.kept < 100
        if move.other:
            add_other(self.format, reply)
        if move.early:
            reply = stopped(self.format, reply, words_of(self.format, "length", "content_filter", "error", "cut")[0])
        seen = self.transcript if move.known else ()
        try:
            self.round = decode(Tools, reply, AVAILABLE[move.offer], format=self.format, transcript=seen)
        except RoundError:
            assert self.spoilt, "a transcript that only commit wrote ends with calls"
            return
        self.plan = None
        self.counts.decoded += 1
        if move.early or (move.size and len(reply) < len(chunks) - 1):
            assert not self.round.tool_calls, "a call may run that did not come whole"

    def _say(self) -> None:
        rules = PROVIDERS[self.format]
        last = self.transcript[-1].get("role")
        # Mistral takes no word of the user's right after a result, and Bedrock none after another.
        if (self.format, last) in (("mistral", "tool"), ("bedrock", "user")):
            self.transcript.extend(rules.assistant("So."))
        self.transcript.extend(rules.user("go on"))

    async def _decide(self, hooks: HookSet) -> None:
        if self.round is not None:
            self.plan = await (self.plan or self.round).apply_hooks(hooks)

    async def _resolve(self, yes: bool) -> None:
        if self.plan is not None and self.plan.suspended:
            asked = [waiting.request for waiting in self.plan.suspended]
            grants, denials = [one.grant("ada") for one in asked if yes], [one.deny() for one in asked if not yes]
            await self._try(self.plan.resolve(grants, denials))

    async def _discard(self) -> None:
        if self.plan is not None:
            self.plan.discard()

    async def _commit(self, move: Commit | CommitAtOnce) -> None:
        if self.round is None or (self.plan is None and isinstance(move, Commit)):
            return
        try:
            if self.plan is None or isinstance(move, CommitAtOnce):
                results = [ToolResult(call.id, call.name, "text") for call in self.round.tool_calls]
                added = await self.round.commit(self.transcript, results)
            else:
                added = await self.plan.commit(self.transcript, await _answers(self.plan, move.answers))
        except CommitError:
            self.counts.refused += 1
            raise
        self.counts.committed += 1
        self.counts.answered += len(added) > len(self.round.items)

    async def _try(self, work: Awaitable[object]) -> bool:
        """Return whether `work` went through; what a host is told it did wrong is no matter here."""
        try:
            await work
        except (RoundError, ValueError):
            return False
        return True


def add_other(format: WireFormat, reply: Any) -> None:
    """Have a whole reply ask for something that is no call of a tool, where the provider has such a thing."""
    match format:
        case "openai_responses":
            reply["output"].append({"type": "shell_call", "call_id": "sh_1", "action": {"commands": ["ls"]}})
        case "openai":
            [choice] = reply["choices"]
            custom = {"id": "cu_1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
            choice["message"].setdefault("tool_calls", []).append(custom)
        case "anthropic":
            click = {"type": "tool_use", "id": "toolu_9", "name": "click", "input": {}, "toolset_name": "browser"}
            reply["content"].append(click)
        case _:
            pass


def damage(transcript: list[Any], random: Random) -> None:
    """Take an item, a block or a part away, put it in twice, or change places with the one after it."""
    at = random.randrange(1, len(transcript)) if len(transcript) > 1 else 0
    where, place = transcript, at
    inner: list[Any] | str | None = transcript[at].get("content", transcript[at].get("parts"))
    if isinstance(inner, list) and len(inner) > 1 and random.random() < 0.5:
        where, place = [*inner], random.randrange(len(inner))
        transcript[at] = {**transcript[at], "content" if "content" in transcript[at] else "parts": where}
    match random.choice(("drop", "double", "swap")):
        case "drop" if len(where) > 1:
            del where[place]
        case "double":
            where.insert(place, deepcopy(where[place]))
        case _:
            where[place : place + 2] = reversed(where[place : place + 2])


async def _answers(plan: ToolRoundPlan, answers: Sequence[str]) -> list[Any]:
    ran = {result.call_id: result for result in await plan.run_pending()} if "run" in answers else {}
    results: list[Any] = []
    for number, call in enumerate(plan.pending):
        results += _answer(call, ran.get(call.id), answers[number % len(answers)])
    if "skip" not in answers:
        results += [one.refuse("not here") for one in plan.unhandled]
    if "stray" in answers:
        results.append(ToolResult("z", "add", 1))
    if "issue" in answers:
        results += [issue.complete("explained") for issue in plan.issues]
    return results


def _answer(call: DecodedCall[Any], ran: ToolResult | None, answer: str) -> list[Any]:
    match answer:
        case "fail":
            return [call.fail(OSError("broken"))]
        case "reject":
            return [call.reject("not now")]
        case "skip":
            return []
        case "twice":
            return [ToolResult(call.id, call.name, 1)] * 2
        case "other name":
            return [ToolResult(call.id, "other", 1)]
        case _:
            return [ran or ToolResult(call.id, call.name, "text")]


def _hooks(decision: str) -> HookSet:
    made = HookSet()

    @made.register
    async def policy(call: Any, given: Any) -> Any:
        match decision:
            case "complete":
                return Complete("done")
            case "reject":
                return Reject("no")
            case "ask":
                return Ask("sure?")
            case "nonsense":
                return "nonsense"
            case "raise":
                raise ValueError("the hook is broken")
            case "edit":
                return RunNormally(given.model_copy())
            case "misfit":
                return RunNormally({"a": "x", "no": 1})
            case _:
                return RunNormally(given)

    return made


HOOKS = {decision: _hooks(decision) for decision in DECISIONS}

# --- whole conversations


async def converse(format: WireFormat, moves: Sequence[Move]) -> Counts:
    """Make the moves of one conversation; AssertionError as `Conversation.make` raises it."""
    conversation = Conversation(format)
    for move in moves:
        await conversation.make(move)
    return conversation.counts


async def drive(format: WireFormat, rounds: int, seed: int = 0) -> Counts:
    """Make conversations until this many rounds were decoded; AssertionError has the fewest moves that go wrong."""
    total = Counts()
    while total.decoded < rounds:
        moves = moves_of(seed)
        try:
            total.add(await converse(format, moves))
        except Exception as error:  # of the library under test, whatever it is
            short, told = await _shortest(format, moves, error)
            listed = "\n".join(map(repr, short))
            raise AssertionError(f"{format}, seed {seed}: {type(told).__name__}: {told}\n{listed}") from told
        seed += 1
    return total


async def _shortest(format: WireFormat, moves: list[Move], error: Exception) -> tuple[list[Move], Exception]:
    """Return as few of the moves as still go wrong, and how they do."""
    place = 0
    while place < len(moves):
        fewer = moves[:place] + moves[place + 1 :]
        try:
            await converse(format, fewer)
            place += 1
        except Exception as other:  # as in `drive`
            moves, error = fewer, other
    return moves, error
