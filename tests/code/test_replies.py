from __future__ import annotations

import json

import pytest

from toolcrib.calls import ApprovalRequest, Completed, Failed, Outcome, Rejected, Suspended
from toolcrib.code._host import GivenTables, reply_to
from toolcrib.errors import FieldProblem, NotAvailable, ToolTimeoutError
from toolcrib.sandbox import Raised, Reply, SuspendedReply, Value
from toolcrib.tools import ez_tool


@ez_tool
def find(city: str, limit: int = 3) -> None:
    """Find a city."""


class Late(TimeoutError):
    pass


def reply(outcome: Outcome, **arguments: object) -> Reply:
    return reply_to(outcome, arguments, find.spec, GivenTables("find", 0))


def failed(error: Exception, code: str = "tool_error") -> Failed:
    return Failed("find", "1", code, str(error), type(error).__name__, exception=error)


def misfit(*fields: str) -> Failed:
    return Failed("find", "1", "invalid_arguments", "no", problems=tuple(FieldProblem(f, "is wrong") for f in fields))


def test_a_result_is_a_value_of_json_shapes() -> None:
    assert reply(Completed("find", "1", {"a": (1, 2)})) == Value({"a": [1, 2]})


def test_a_result_is_cut_to_its_limit() -> None:
    cut = reply(Completed("find", "1", "x" * 100, max_result_chars=30))

    assert isinstance(cut, Value)
    assert cut.value.startswith("x" * 20 + "\n[...")


def test_a_result_without_a_json_form_is_an_exception_that_names_the_tool() -> None:
    told = reply(Completed("find", "1", object()))

    assert isinstance(told, Raised)
    assert told.type == "TypeError"
    assert "`find` ran, and its result of type object has no JSON form" in told.message


@pytest.mark.parametrize(
    ("source", "kind"), [("user", "PermissionError"), ("hook", "PermissionError"), ("limit", "RuntimeError")]
)
def test_a_refusal_is_an_exception_with_its_reason(source: str, kind: str) -> None:
    assert reply(Rejected("find", "1", "not today", source)) == Raised(kind, "not today")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("v"), "ValueError", "v"),
        (KeyError("k"), "KeyError", "k"),
        (KeyError(3), "KeyError", "3"),
        (Late("l"), "TimeoutError", "l"),
        (json.JSONDecodeError("bad", "{", 0), "ValueError", "bad: line 1 column 1 (char 0)"),
        (ConnectionResetError("c"), "ConnectionResetError", "c"),
        (StopIteration("s"), "RuntimeError", "s"),
        (type("Own", (Exception,), {})("o"), "RuntimeError", "o"),
    ],
)
def test_what_the_tool_raised_keeps_its_kind_and_message(error: Exception, kind: str, message: str) -> None:
    assert reply(failed(error)) == Raised(kind, message)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (failed(ToolTimeoutError("find", 1), "tool_timeout"), "TimeoutError"),
        (failed(NotAvailable("find"), "not_available"), "PermissionError"),
        (Failed("find", "1", "unknown_tool", "no"), "NameError"),
        (Failed("find", "1", "hook_error", "no"), "RuntimeError"),
        (Failed("find", "1", "something_new", "no"), "RuntimeError"),
    ],
)
def test_other_failures_are_of_a_kind_that_a_program_can_tell(outcome: Failed, kind: str) -> None:
    told = reply(outcome)

    assert isinstance(told, Raised)
    assert told.type == kind


def test_missing_and_unknown_arguments_are_type_errors_and_wrong_ones_value_errors() -> None:
    kinds = [
        reply(misfit("city")),
        reply(misfit("town"), town=1),
        reply(misfit("city", "limit"), limit="x"),
        reply(misfit("limit"), limit="x"),
        reply(misfit("limit[0].x"), limit=[{}]),
    ]

    assert [told.type for told in kinds if isinstance(told, Raised)] == ["TypeError"] * 3 + ["ValueError"] * 2


def test_a_call_that_waits_for_a_person_ends_the_program() -> None:
    request = ApprovalRequest("ask_1", "1", "find", {}, "digest")

    assert reply(Suspended("find", "1", request)) == SuspendedReply(
        "`find` is suspended until a person answers (request ask_1); it has not run."
    )
