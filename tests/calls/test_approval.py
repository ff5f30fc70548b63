"""Requests for approval as JSON shapes: what a store keeps and a person is shown."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, differences

HALF = "\ud83d"


def test_a_name_that_no_wire_takes_spoils_no_request() -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"a": HALF}, "d", metadata={HALF: 1, "seen": {HALF: 2}})

    kept = ApprovalRequest.from_dict(json.loads(json.dumps(asked.to_dict())))

    assert (kept.metadata[HALF], set(kept.metadata)) == (1, {HALF, "seen"})
    assert "refund needs approval" in kept.text()


def test_the_title_of_a_call_in_doubt_says_that_it_may_have_run_already() -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"order": 7}, "d", reason="it was begun", in_doubt=True)

    assert asked.title == "refund may have run already"
    assert asked.text() == "refund may have run already: it was begun\n  order = 7"
    assert [*DOUBT_ANSWERS.values()] == ["Do it", "It was done: this is the result", "It must not be done"]


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("approver", "by"),
        ("expires", "expires_at"),
        *((name, "override_args") for name in ("new_args", "arguments", "args", "edit", "edited")),
    ],
)
def test_an_option_that_no_grant_has_is_told_by_the_nearest(option: str, near: str) -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"order": 7}, "d")
    options: dict[str, Any] = {option: "ann"}

    with pytest.raises(TypeError, match=rf"a grant has no option `{option}`. Did you mean `{near}`\?"):
        asked.grant(**options)


@pytest.mark.parametrize("answer", ["always", "deny", "done"])
def test_every_answer_says_what_its_option_is_called_here(answer: str) -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"order": 7}, "d")
    options: dict[str, Any] = {"approver": "ann", **({"result": 1} if answer == "done" else {})}

    with pytest.raises(TypeError, match=rf"{answer}\(\) has no option `approver`. Did you mean `by`\?"):
        getattr(asked, answer)(**options)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"a": False}, {"a": 0}, "a: false -> 0"),
        ({"a": [1, 2]}, {"a": [True, 2]}, "a[0]: 1 -> true"),
        ({"a": [2, {"b": 0}]}, {"a": [2, {"b": False}]}, "a[1].b: 0 -> false"),
    ],
)
def test_a_truth_value_in_the_place_of_a_number_is_a_difference(before: Any, after: Any, line: str) -> None:
    assert [*differences(before, after)] == [line]


@pytest.mark.parametrize("given", [("ann",), ("too much", "ann")])
def test_a_denial_does_not_guess_who_is_the_person(given: tuple[Any, ...]) -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"order": 7}, "d")
    deny: Any = asked.deny

    with pytest.raises(TypeError, match=r"whether '.*' is the person or the message: write deny\(by='ann', message="):
        deny(*given)

    assert (asked.deny(by="ann").by, asked.deny(message="no").by) == ("ann", "host")


CHANGES: dict[str, Callable[[Any], object]] = {
    "set": lambda arguments: arguments.__setitem__("cents", 1),
    "delete": lambda arguments: arguments.__delitem__("cents"),
    "update": lambda arguments: arguments.update(cents=1),
    "or": lambda arguments: arguments.__ior__({"cents": 1}),
    "clear": lambda arguments: arguments.clear(),
    "pop": lambda arguments: arguments.pop("cents"),
    "popitem": lambda arguments: arguments.popitem(),
    "setdefault": lambda arguments: arguments.setdefault("to", "bob"),
    "nested": lambda arguments: arguments["order"].update(id=8),
    **{
        name: lambda arguments, name=name, given=given: getattr(arguments["order"]["items"], name)(*given)
        for name, given in {
            "append": (1,), "extend": ([1],), "insert": (0, 1), "remove": ("pen",), "pop": (), "clear": (),
            "sort": (), "reverse": (), "__setitem__": (0, 1), "__delitem__": (0,), "__iadd__": ([1],), "__imul__": (2,),
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("attribute", ["arguments", "requested"])
def test_the_arguments_of_a_request_cannot_be_changed_in_place(change: Callable[[Any], object], attribute: str) -> None:
    given = {"cents": 5, "order": {"id": 7, "items": ["pen"]}}
    asked = ApprovalRequest("ask_1", "call_1", "refund", given, "d", requested=given)

    with pytest.raises(TypeError, match="override_args"):
        change(getattr(asked, attribute))

    given["cents"] = 1
    assert asked.arguments == {"cents": 5, "order": {"id": 7, "items": ["pen"]}} == asked.requested


@pytest.mark.parametrize("is_pickled", [False, True])
def test_a_copy_of_the_arguments_of_a_request_can_be_changed(is_pickled: bool) -> None:
    asked = ApprovalRequest("ask_1", "call_1", "refund", {"order": {"items": ["pen"]}}, "d")
    copy: Any = pickle.loads(pickle.dumps(asked.arguments)) if is_pickled else deepcopy(asked.arguments)
    copy["order"]["items"].append("ink")

    assert asked.grant("ann", override_args=copy).override_args == {"order": {"items": ["pen", "ink"]}}
    assert json.loads(json.dumps(asked.arguments)) == asked.arguments == {"order": {"items": ["pen"]}}
    assert [type(part) for part in (copy, copy["order"], copy["order"]["items"])] == [dict, dict, list]
    assert type(asked.to_dict()["arguments"]["order"]) is dict
