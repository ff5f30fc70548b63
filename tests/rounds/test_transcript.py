"""What was committed is not read again at the next commit; whatever a host does to its list is found all the same."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.rounds.replies import FORMATS, adding
from toolcrib.calls import ToolCall
from toolcrib.errors import CommitError
from toolcrib.formats import PROVIDERS
from toolcrib.rounds import Transcript, WireFormat, decode
from toolcrib.testing import wire_reply
from toolcrib.toolsets import Toolset

each_format = pytest.mark.parametrize("format", FORMATS)
CRIB = Toolset([adding([])])


async def commit(transcript: Any, number: int, format: WireFormat = "openai") -> None:
    """Commit a round of two calls whose ids are made of a number."""
    calls = [ToolCall("add", '{"a": 1}', f"call{number}{letter}xxx") for letter in "ab"]
    round = decode(CRIB, wire_reply(format, calls), format=format)
    await round.commit(transcript, [call.complete(2) for call in round.tool_calls])


async def conversation(format: WireFormat, rounds: int = 3) -> Transcript:
    transcript = Transcript(format=format)
    for number in range(rounds):
        transcript.extend(PROVIDERS[format].assistant("Done.") if number else ())
        transcript.extend(PROVIDERS[format].user("go on"))
        await commit(transcript, number, format)
    return transcript


@each_format
async def test_a_round_after_many_is_committed(format: WireFormat) -> None:
    transcript = await conversation(format, 5)

    assert transcript.check() == []
    assert sum(len(PROVIDERS[format].calls_of(item)) for item in transcript) == 10


class Counted(dict[str, Any]):
    """An item that counts how often anything is read from it."""

    reads = 0

    def get(self, *asked: Any) -> Any:
        Counted.reads += 1
        return super().get(*asked)


@each_format
async def test_what_was_committed_is_not_read_again(format: WireFormat) -> None:
    transcript = Transcript([Counted(PROVIDERS[format].user("hi")[0])], format)
    await commit(transcript, 0, format)
    before = Counted.reads

    await commit(transcript, 1, format)
    decode(CRIB, wire_reply(format, [ToolCall("add", '{"a": 1}', "call9")]), format=format, transcript=transcript)

    assert (before > 0, Counted.reads) == (True, before)


EDITS: dict[str, Callable[[Transcript, int], Any]] = {
    "pop": lambda transcript, at: transcript.pop(at),
    "delete": lambda transcript, at: transcript.__delitem__(at),
    "remove": lambda transcript, at: transcript.remove(transcript[at]),
    "replace": lambda transcript, at: transcript.__setitem__(at, PROVIDERS[transcript.format].user("no result")[0]),
    "insert": lambda transcript, at: transcript.insert(at, PROVIDERS[transcript.format].user("between")[0]),
    "slice": lambda transcript, at: transcript.__setitem__(slice(at, None), transcript[at + 1 :]),
    "past the list's own methods": lambda transcript, at: list[Any].__delitem__(transcript, at),
}


@each_format
@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit != "insert"])
async def test_a_result_that_the_host_took_away_is_missed_at_the_next_commit(format: WireFormat, edit: str) -> None:
    transcript = await conversation(format)
    first_result = next(at for at, item in enumerate(transcript) if PROVIDERS[format].results_of(item))

    EDITS[edit](transcript, first_result)

    edited = list(transcript)
    with pytest.raises(CommitError, match="has no result"):
        await commit(transcript, 9, format)
    assert list(transcript) == edited


@pytest.mark.parametrize("format", [name for name in FORMATS if PROVIDERS[name].layout.place != "later"])
async def test_what_the_host_put_between_a_call_and_its_result_is_found(format: WireFormat) -> None:
    transcript = await conversation(format)
    first_result = next(at for at, item in enumerate(transcript) if PROVIDERS[format].results_of(item))

    EDITS["insert"](transcript, first_result)

    with pytest.raises(CommitError):
        await commit(transcript, 9, format)


@each_format
@pytest.mark.parametrize("at", ["start", "end"])
async def test_an_orphan_that_the_host_put_in_is_found(format: WireFormat, at: str) -> None:
    transcript = await conversation(format)
    orphan = next(item for item in transcript if PROVIDERS[format].results_of(item))

    transcript.insert(0 if at == "start" else len(transcript), copy.deepcopy(orphan))

    with pytest.raises(CommitError, match=r"answers no call|second time|not where"):
        await commit(transcript, 9, format)
    transcript.repair()
    await commit(transcript, 9, format)
    assert transcript.check() == []


@each_format
async def test_rounds_that_the_host_took_back_are_forgotten(format: WireFormat) -> None:
    transcript = await conversation(format, 1)
    length = len(transcript)
    await commit(transcript, 7, format)

    del transcript[length:]
    await commit(transcript, 7, format)

    assert transcript.check() == []


@pytest.mark.parametrize("format", ["gemini_interactions", "openai_responses"])
async def test_an_id_of_a_round_before_is_known_where_it_may_not_come_again(format: WireFormat) -> None:
    transcript = await conversation(format)

    with pytest.raises(CommitError, match="of an earlier one"):
        await commit(transcript, 0, format)


@each_format
async def test_decode_knows_the_ids_of_committed_and_of_added_rounds(format: WireFormat) -> None:
    transcript = await conversation(format, 2)
    other = await conversation(format, 1)
    transcript.extend((await conversation(format, 4))[-len(other) :])
    calls = [ToolCall("add", '{"a": 1}', f"call{number}axxx") for number in range(5)]

    round = decode(CRIB, wire_reply(format, calls), format=format, transcript=transcript)

    assert [call.id == sent.id for call, sent in zip(round.tool_calls, calls, strict=True)] == [
        False, False, True, False, True
    ]  # fmt: skip


async def test_an_edit_inside_a_committed_item_is_found_by_check() -> None:
    transcript = await conversation("openai")

    transcript[2]["tool_call_id"] = "other"

    assert [problem.kind for problem in transcript.check()] == ["missing", "orphan"]


async def test_a_change_of_format_has_all_of_it_read_again() -> None:
    transcript = await conversation("openai")

    transcript.format = "mistral"
    await commit(transcript, 9, "mistral")

    assert transcript.check() == []


def pickled(transcript: Transcript) -> Transcript:
    return pickle.loads(pickle.dumps(transcript))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled, Transcript.copy])
async def test_a_copy_reads_for_itself(copied: Callable[[Transcript], Transcript]) -> None:
    transcript = await conversation("anthropic")

    other = copied(transcript)
    other.pop()
    await commit(transcript, 8, "anthropic")

    assert transcript.check() == []
    with pytest.raises(CommitError, match="has no result"):
        await commit(other, 9, "anthropic")


@each_format
async def test_a_plain_list_is_read_whole(format: WireFormat) -> None:
    messages: list[Any] = list(await conversation(format))
    await commit(messages, 8, format)

    result = next(item for item in messages if PROVIDERS[format].results_of(item))
    messages.remove(result)

    with pytest.raises(CommitError, match="has no result"):
        await commit(messages, 9, format)


@pytest.mark.parametrize("other", FORMATS)
@each_format
async def test_calls_in_another_providers_format_are_misplaced(format: WireFormat, other: WireFormat) -> None:
    alike = ("openai", "mistral", "ollama", "cohere")  # in the shape of their calls
    same = {format, other} <= {*alike} or format == other
    transcript = Transcript(await conversation(other, 1), format)
    before = [*transcript]

    problems = transcript.check()

    assert (problems == []) is same
    if not same:
        assert problems[0].kind == "misplaced"
        assert f"in the format `{'openai' if other in alike else other}`" in problems[0].message
        with pytest.raises(ValueError, match=f"the transcript is in `{format}`"):
            transcript.repair()
        assert transcript == before
