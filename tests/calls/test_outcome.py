"""Outcomes: frozen, pickled, to JSON and back, and what a model is shown of each."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.calls import (
    CHANGED_ON_SERVER,
    ApprovalRequest,
    Completed,
    Failed,
    Outcome,
    Rejected,
    Suspended,
    ToolCall,
    Yielded,
    new_call_id,
    outcome_from_dict,
    render,
)
from toolcrib.errors import FieldProblem, NoResult

words = st.text(max_size=20)
names = st.text("abcdefghij_", min_size=1, max_size=10)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(names, json_values, max_size=3)
requests = st.builds(
    ApprovalRequest,
    id=names,
    call_id=names,
    tool=names,
    arguments=mappings,
    digest=names,
    requested=st.none() | mappings,
    reason=words,
    metadata=mappings,
    run_id=names,
    principal=st.none() | words,
)
problems = st.builds(FieldProblem, names, words)
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(
        Completed, names, names, json_values, st.sampled_from(["tool", "hook"]), st.none() | st.integers(1, 10**6)
    ),
    st.builds(Rejected, names, names, words, st.sampled_from(["hook", "user", "limit"])),
    st.builds(Failed, names, names, names, words, names, st.tuples(problems) | st.just(()), st.booleans()),
    st.builds(Suspended, names, names, requests, mappings),
)


@given(outcomes)
def test_an_outcome_survives_json(outcome: Outcome) -> None:
    text = json.dumps(outcome.to_dict())

    again = outcome_from_dict(json.loads(text))

    assert again == outcome
    assert again.to_dict() == outcome.to_dict()


@given(outcomes)
def test_an_outcome_survives_pickling(outcome: Outcome) -> None:
    again = pickle.loads(pickle.dumps(outcome))

    assert again == outcome
    assert again.to_dict() == outcome.to_dict()


@given(outcomes)
def test_an_outcome_can_be_shown_to_a_model(outcome: Outcome) -> None:
    assert isinstance(outcome.text(), str)


@pytest.mark.parametrize(
    "value",
    [ToolCall("a", '{"x": 1}'), Yielded(1), replace(Completed("a", "c", 1), value=2)],
    ids=lambda v: type(v).__name__,
)
def test_values_that_are_made_on_every_call_pickle_and_hash_and_have_nothing_else(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))

    assert (again, hash(again)) == (value, hash(value))
    with pytest.raises(AttributeError):
        value.other = 1


def test_a_failure_keeps_its_exception_out_of_pickle_and_json() -> None:
    failed = Failed("find", "c1", "tool_error", "no", exception=OSError("no"))

    again = pickle.loads(pickle.dumps(failed))

    assert again.exception is None
    assert again == failed
    assert "exception" not in failed.to_dict()


def test_a_kind_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match="'lost'"):
        outcome_from_dict({"kind": "lost"})


@pytest.mark.parametrize(
    ("value", "text"), [("plain", "plain"), ({"a": "é"}, '{"a": "é"}'), (None, "null"), ([1, 2], "[1, 2]")]
)
def test_a_result_is_shown_as_text(value: Any, text: str) -> None:
    assert Completed("find", "c1", value).text() == text


def test_a_result_without_json_form_is_an_error_and_recorded() -> None:
    outcome = Completed("find", "c1", object())

    shown = render(outcome)

    assert shown.is_error
    assert shown.text.startswith("ResultNotSerializable: `find` ran")
    assert "object" in outcome.to_dict()["value"]


def test_what_a_model_is_shown_of_the_others() -> None:
    request = ApprovalRequest("ask_1", "c1", "pay", {}, "d")

    assert Rejected("pay", "c1", "too much").text() == "Rejected: too much"
    assert Failed("pay", "c1", "tool_error", "no money", "OSError").text() == "OSError: no money"
    assert Failed("pay", "c1", "tool_error", "TimeoutError", "TimeoutError").text() == "TimeoutError"
    assert "ask_1" in Suspended("pay", "c1", request).text()


@pytest.mark.parametrize(("in_doubt", "since"), [(False, "it has not run"), (True, "it may have been done")])
def test_a_suspended_call_says_what_is_known_of_it(in_doubt: bool, since: str) -> None:
    request = ApprovalRequest("ask_1", "c1", "pay", {}, "d", in_doubt=in_doubt)

    text = Suspended("pay", "c1", request).text()

    assert text == f"`pay` is suspended until a person answers (request ask_1); {since}."


@pytest.mark.parametrize("changed", [{"replaces": "ask_0"}, {"metadata": {CHANGED_ON_SERVER: "description"}}])
def test_a_suspended_call_says_that_its_tool_has_changed(changed: dict[str, Any]) -> None:
    request = ApprovalRequest("ask_1", "c1", "pay", {}, "d", **changed)

    text = Suspended("pay", "c1", request).text()

    assert (
        "it has not run. The definition of the tool is not the one that a person accepted before: they accept" in text
    )


def test_the_arguments_of_a_suspended_call_are_not_in_its_repr() -> None:
    request = ApprovalRequest("ask_1", "c1", "login", {"password": "[redacted]"}, "d")

    assert "hunter2" not in repr(Suspended("login", "c1", request, {"arguments": {"password": "hunter2"}}))


def test_call_ids_do_not_repeat() -> None:
    assert len({new_call_id() for _ in range(1000)}) == 1000
    assert ToolCall("a").id != ToolCall("a").id


REQUEST = ApprovalRequest("r1", "c1", "pay", {}, "d")
OUTCOMES: dict[str, tuple[Outcome, str]] = {
    "rejected": (Rejected("pay", "c1", "too much"), "it was refused (too much)"),
    "failed": (Failed("pay", "c1", "tool_error", "no money", "ValueError"), "it failed (ValueError: no money)"),
    "suspended": (
        Suspended("pay", "c1", REQUEST),
        "a person has to answer its `request` first",
    ),
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_the_value_of_an_outcome_without_one_says_why(kind: str) -> None:
    outcome, reason = OUTCOMES[kind]

    with pytest.raises(NoResult) as raised:
        outcome.value  # noqa: B018 -- the property raises

    assert (raised.value.what, raised.value.reason) == ("the call of `pay`", reason)


@pytest.mark.parametrize("outcome", [Completed("pay", "c1", 1), OUTCOMES["rejected"][0], OUTCOMES["failed"][0]])
def test_an_outcome_that_waits_for_nobody_has_no_request(outcome: Outcome) -> None:
    with pytest.raises(NoResult, match="the request of `pay`: there is none, because it"):
        outcome.request  # noqa: B018 -- the property raises
