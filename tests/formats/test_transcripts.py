"""What each provider refuses in a transcript is found, and mended with as little as it takes."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.formats.histories import answers, asks, calls_in, histories, says
from tests.formats.replies import NAMES, sdk_accepts
from toolcrib.formats import PROVIDERS, WireFormat

each_provider = pytest.mark.parametrize("provider", NAMES)
UNIQUE: tuple[WireFormat, ...] = ("openai_responses", "gemini_interactions")
A, B, C = "aaaaaaaa1", "aaaaaaaa2", "aaaaaaaa3"


def kinds(provider: WireFormat, transcript: list[dict[str, object]]) -> list[tuple[str, str]]:
    """Return what is wrong with calls and results; the order of turns has tests of its own."""
    found = PROVIDERS[provider].check(transcript)
    return [(problem.kind, problem.call_id) for problem in found if problem.kind != "order"]


@each_provider
def test_answered_calls_are_fine_in_any_order(provider: WireFormat) -> None:
    first = [says(provider, "user"), *asks(provider, A, B), *answers(provider, B, A, after="And?")]
    second = [says(provider, "user"), *asks(provider, C), *answers(provider, C)]
    transcript = [*first, says(provider, "assistant"), *second]

    assert PROVIDERS[provider].check(transcript) == []
    assert PROVIDERS[provider].repair(transcript) == (transcript, [])


@each_provider
def test_a_call_without_a_result_gets_one(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *asks(provider, A, B), *answers(provider, A), says(provider, "assistant")]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("missing", B)]
    assert len(done) == 1
    assert done[0].startswith("added a result for the call of `look`")
    assert PROVIDERS[provider].check(mended) == []
    results = [result for item in mended for result in PROVIDERS[provider].results_of(item)]
    assert ["was not answered" in result.content for result in results] == [False, True]


@each_provider
def test_a_call_at_the_end_waits_for_its_result(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *asks(provider, A)]

    assert kinds(provider, transcript) == [("missing", A)]


@each_provider
def test_a_result_without_its_call_is_dropped(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *answers(provider, A), says(provider, "assistant")]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("orphan", A)]
    assert mended == [transcript[0], transcript[2]]
    assert done == [f"dropped the result of `{A}` in item 1, which answers no call"]


@each_provider
def test_a_second_result_is_dropped(provider: WireFormat) -> None:
    good = [says(provider, "user"), *asks(provider, A), *answers(provider, A)]
    transcript = [*good, *answers(provider, A), says(provider, "assistant")]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("duplicate", A)]
    assert mended == [*good, says(provider, "assistant")]
    assert done == [f"dropped the result of `{A}` in item {len(good)}, which was there twice"]


@each_provider
def test_a_result_before_its_call_answers_no_call(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *answers(provider, A), *asks(provider, A)]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("orphan", A), ("missing", A)]
    assert done[0] == f"dropped the result of `{A}` in item 1, which answers no call"
    assert [was_answered(provider, item) for item in mended if PROVIDERS[provider].results_of(item)] == [False]


def was_answered(provider: WireFormat, item: dict[str, object]) -> bool:
    return all("was not answered" not in result.content for result in PROVIDERS[provider].results_of(item))


@pytest.mark.parametrize("provider", ["openai", "mistral", "anthropic", "gemini", "ollama"])
def test_a_result_after_something_else_is_moved(provider: WireFormat) -> None:
    says_hi = says(provider, "assistant")
    transcript = [says(provider, "user"), *asks(provider, A), says_hi, *answers(provider, A), says_hi]

    mended, _ = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("misplaced", A)]
    assert mended == [says(provider, "user"), *asks(provider, A), *answers(provider, A), says_hi, says_hi]


def test_an_output_of_a_response_may_come_later() -> None:
    transcript = [*asks("openai_responses", A), says("openai_responses", "user"), *answers("openai_responses", A)]

    assert PROVIDERS["openai_responses"].check(transcript) == []


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_results_come_before_the_text_of_their_message(provider: WireFormat) -> None:
    asked = [says(provider, "user"), *asks(provider, A)]
    transcript = [*asked, *answers(provider, A, before="Here:")]

    mended, _ = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("misplaced", A)]
    assert mended == [*asked, *answers(provider, A), *answers(provider, before="Here:")]


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "bedrock"])
def test_results_come_in_one_message(provider: WireFormat) -> None:
    asked = [says(provider, "user"), *asks(provider, A, B)]
    transcript = [*asked, *answers(provider, A), *answers(provider, B)]

    mended, _ = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("misplaced", B)]
    assert mended == [*asked, *answers(provider, A, B)]


@each_provider
def test_an_id_that_two_calls_of_a_reply_share_is_replaced(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *asks(provider, A, A), *answers(provider, A, A)]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("duplicate", A)]
    assert len({call.id for call in calls_in(provider, mended)}) == 2
    assert done[0].endswith(f"in place of `{A}`")
    assert PROVIDERS[provider].check(mended) == []


@pytest.mark.parametrize(
    ("provider", "expected"),
    [*((name, 0) for name in NAMES if name not in UNIQUE), *((name, 1) for name in UNIQUE)],
)
def test_an_id_may_come_again_in_a_later_reply_where_the_place_tells(provider: WireFormat, expected: int) -> None:
    twice = [*asks(provider, A), *answers(provider, A)] * 2
    transcript = [says(provider, "user"), *twice]

    mended, _ = PROVIDERS[provider].repair(transcript)

    assert kinds(provider, transcript) == [("duplicate", A)] * expected
    assert PROVIDERS[provider].check(mended) == []


@pytest.mark.parametrize("provider", ["openai", "mistral", "anthropic", "openai_responses", "bedrock"])
def test_a_call_without_an_id_gets_one(provider: WireFormat) -> None:
    transcript = [says(provider, "user"), *asks(provider, "")]

    mended, done = PROVIDERS[provider].repair(transcript)

    assert [problem.message for problem in PROVIDERS[provider].check(transcript)] == [
        "the call of `look` in item 1 has no id, so that nothing can answer it"
    ]
    assert len(done) == 2
    assert calls_in(provider, mended)[0].id


def test_geminis_calls_without_ids_are_answered_in_order() -> None:
    transcript = [says("gemini", "user"), *asks("gemini", "", ""), *answers("gemini", "", "")]

    assert PROVIDERS["gemini"].check(transcript) == []


def test_a_problem_reads_as_its_sentence() -> None:
    [problem] = PROVIDERS["openai"].check(asks("openai", A))

    assert str(problem) == f"the call of `look` in item 0 (`{A}`) has no result"


@each_provider
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_what_was_repaired_is_fine(provider: WireFormat, data: st.DataObject) -> None:
    transcript = data.draw(histories(provider))
    before = copy.deepcopy(transcript)

    mended, done = PROVIDERS[provider].repair(transcript)

    assert PROVIDERS[provider].check(mended) == []
    assert PROVIDERS[provider].repair(mended) == (mended, [])
    assert bool(done) == bool(PROVIDERS[provider].check(transcript))
    assert [c.name for c in calls_in(provider, mended)] == [c.name for c in calls_in(provider, transcript)]
    assert transcript == before


@each_provider
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_what_follows_what_is_fine_can_be_read_alone(provider: WireFormat, data: st.DataObject) -> None:
    rules = PROVIDERS[provider]
    before, _ = rules.repair(data.draw(histories(provider)))
    after = data.draw(histories(provider))

    alone = rules.unanswered(after, {call.id for call in calls_in(provider, before)})

    found = [problem for problem in rules.check([*before, *after]) if problem.kind != "order"]
    assert (alone == []) <= (found == [])


@each_provider
def test_the_calls_at_the_end_wait(provider: WireFormat) -> None:
    rules = PROVIDERS[provider]
    transcript = [says(provider, "user"), *asks(provider, A, B)]

    assert rules.unanswered(transcript) == [rules.key_of(call) for call in calls_in(provider, transcript)]
    assert rules.unanswered([*transcript, says(provider, "user")]) != []


@each_provider
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_the_sdk_accepts_a_repaired_transcript(provider: WireFormat, data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.sampled_from([A, B, C]), max_size=6))
    transcript = [
        item for id in groups for item in (*asks(provider, id), says(provider, "user"), *answers(provider, id))
    ]

    mended, _ = PROVIDERS[provider].repair(transcript)

    sdk_accepts(provider, mended)
