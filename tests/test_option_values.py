"""What options are given: words that are none of theirs, and generators in the place of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import time
from types import ModuleType
from typing import Any, Literal

import pytest

from toolcrib.adapters.mcp_server import HttpOptions, ServerOptions
from toolcrib.approvals import AgentContext, ApprovalStore, MemoryApprovalStore, misfit
from toolcrib.approvers import ApproverRule
from toolcrib.budgets import Budgets, Limit, MemoryUsageStore
from toolcrib.calls import ApprovalRequest, Grant
from toolcrib.errors import explain_options
from toolcrib.openapi import toolset
from toolcrib.pipeline import CallLimits, Channel, Run, must_call
from toolcrib.provenance import Provenance, Rule
from toolcrib.serving import GuardPolicy
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset

Wrap = Callable[[list[Any]], Any]
REQUEST = ApprovalRequest("r1", "c1", "pay", {"cents": 5}, "digest", principal="ann")
DOCUMENT = {"openapi": "3.1.0", "info": {"title": "shop", "version": "1"}, "paths": {}}

WRONG_WORDS: Mapping[str, tuple[Callable[[], object], str]] = {
    "scope of always": (lambda: REQUEST.always("ann", scope="args"), "arguments"),  # pyright: ignore[reportArgumentType]
    "scope of grant": (lambda: Grant("pay", by="ann", scope="tools"), "tool"),  # pyright: ignore[reportArgumentType]
    "per": (lambda: Limit(calls=1, per="dya"), "day"),  # pyright: ignore[reportArgumentType]
    "over": (lambda: Limit(calls=1, over="aks"), "ask"),  # pyright: ignore[reportArgumentType]
    "hook_errors": (lambda: Channel(hook_errors="rise"), "raise"),  # pyright: ignore[reportArgumentType]
    "errors": (lambda: Channel(errors="maskd"), "masked"),  # pyright: ignore[reportArgumentType]
    "untrusted": (lambda: Rule(untrusted="alow"), "allow"),  # pyright: ignore[reportArgumentType]
    "refused": (lambda: toolset(DOCUMENT, refused="rais"), "raise"),  # pyright: ignore[reportArgumentType]
    "pages": (lambda: toolset(DOCUMENT, pages="ofer"), "offer"),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize(("give", "meant"), WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_a_word_that_is_none_of_an_option_is_refused_with_the_one_that_is_meant(
    give: Callable[[], object], meant: str
) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        give()


@pytest.mark.parametrize("scope", [None, 1, True])
def test_a_scope_that_is_no_word_is_refused(scope: Any) -> None:
    with pytest.raises(ValueError, match=r"scope is .* 'once', 'tool'"):
        Grant("pay", by="ann", scope=scope)


def test_a_stored_grant_with_an_unknown_scope_covers_nothing_and_is_shown() -> None:
    stored = {**REQUEST.always("ann").to_dict(), "scope": "args"}
    grant = Grant.from_dict(stored)
    assert "its scope is 'args'" in misfit(grant, REQUEST)
    assert (grant.standing, grant.to_dict()["scope"]) == (True, "args")
    assert grant.text().startswith("pay: nothing")


@tool
async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


def gate(call: Any) -> None:
    return None


SEVERAL: Mapping[str, Callable[[Wrap], object]] = {
    "GuardPolicy.approve": lambda wrap: GuardPolicy(approve=wrap(["pay"])).tool_names,
    "GuardPolicy.leave": lambda wrap: GuardPolicy(leave=wrap(["pay"])).tool_names,
    "CallLimits.requirements": lambda wrap: CallLimits(requirements=wrap([must_call("pay")])),
    "Limit.tools": lambda wrap: [Limit(calls=1, tools=wrap(["pay"])).counts(name) for name in ("pay", "pay", "no")],
    "Limit.by": lambda wrap: [(limit := Limit(calls=1, by=wrap(["tool"]))).shares, limit.shares],
    "Budgets": lambda wrap: Budgets(wrap([Limit(calls=1, tools=["pay"])])).limits,
    "AgentContext": lambda wrap: [
        (run := Run(deps=AgentContext(need_user_approve_tools=wrap(["pay"])))).asks_for("pay"),
        run.asks_for("pay"),
    ],
    "Run.gates": lambda wrap: [len((run := Run(gates=wrap([gate]))).gate_steps), list(run.gates), list(run.gates)],
    "Run.features": lambda wrap: [len((run := Run(features=wrap([Provenance()]))).feature_parts), len([*run.features])],
    "Run.available": lambda wrap: Run(available=wrap(["pay"])).available,
    "Rule.content": lambda wrap: Rule(content=wrap(["note"])).content,
    "Provenance.rules": lambda wrap: Provenance(rules=wrap([Rule(content=("note",))])).rules,
    "ApproverRule.tools": lambda wrap: ApproverRule(name="large", tools=wrap(["pay"])).tools,
    "Toolset": lambda wrap: list(Toolset(wrap([pay])).entries),
}


def generator(values: list[Any]) -> Iterator[Any]:
    yield from values


@pytest.mark.parametrize("kind", [iter, generator, reversed])
@pytest.mark.parametrize("read", SEVERAL.values(), ids=SEVERAL)
def test_a_generator_counts_as_the_list_of_its_values_or_is_refused(
    read: Callable[[Wrap], object], kind: Callable[[list[Any]], Iterable[Any]]
) -> None:
    expected = read(tuple)
    try:
        found = read(kind)
    except TypeError:
        return
    assert found == expected


OTHER_CLASSES: Mapping[str, tuple[Callable[[], object], str]] = {
    "a path as a store": (lambda: Budgets([], store="usage.db"), r"store is 'usage.db'; give a store, as in SqliteU"),  # pyright: ignore[reportArgumentType]
    "a class as a store": (lambda: Budgets([], store=MemoryUsageStore), "give a store"),  # pyright: ignore[reportArgumentType]
    "names as groups": (lambda: Budgets([], groups=["sales"]), r"groups is \['sales'\]; give values by name"),  # pyright: ignore[reportArgumentType]
    "a function as a clock": (
        lambda: MemoryApprovalStore(clock=time),
        "clock is <built-in function time>; give a clock",
    ),  # pyright: ignore[reportArgumentType]
    "a path as approvals": (lambda: ServerOptions(approvals="a.db"), "an approval store, as in SqliteApprovalStore"),  # pyright: ignore[reportArgumentType]
    "a number as limits": (lambda: ServerOptions(limits=5), r"limits is 5; give CallLimits\(\.\.\.\)"),  # pyright: ignore[reportArgumentType]
    "a text as a list": (
        lambda: HttpOptions(allowed_origins="https://a.test"),
        r"allowed_origins is 'https://a.test'; write allowed_origins=\['https://a.test'\]",
    ),  # pyright: ignore[reportArgumentType]
    "tools as names": (
        lambda: Limit(calls=1, tools=[pay]),
        r"tools has <Tool pay .*; give texts, as in tools=\['pay'\]",
    ),  # pyright: ignore[reportArgumentType]
    "a secret": (lambda: ServerOptions(keys="s3cret"), "keys is a value of the type str; give a list of them"),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize(("give", "said"), OTHER_CLASSES.values(), ids=OTHER_CLASSES)
def test_a_value_of_another_class_is_refused_where_it_is_given(give: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        give()


def test_an_option_of_a_room_that_is_not_loaded_is_checked_and_loads_it_for_a_value_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    class Room(ModuleType):
        def __getattr__(self, name: str) -> Any:
            loaded.append(name)
            return ApprovalStore

    def keep(*, store: object = None) -> None: ...

    keep.__annotations__["store"] = "room.ApprovalStore | None"
    monkeypatch.setitem(keep.__globals__, "room", Room("room"))
    checked = explain_options()(keep)

    checked(store=None)
    assert loaded == []
    with pytest.raises(TypeError, match=r"keep\(\): store is 'a.db'; give an approval store"):
        checked(store="a.db")


REFUSED: Mapping[str, tuple[Callable[[], object], str]] = {
    "a text as names": (lambda: AgentContext(need_user_approve_tools="i8"), r"\['i8'\]"),  # pyright: ignore[reportArgumentType]
    "approve=None": (lambda: GuardPolicy(approve=None), "leave it out"),  # pyright: ignore[reportArgumentType]
    "per_tool of None": (lambda: CallLimits(per_tool={"pay": None}), "limits nothing"),  # pyright: ignore[reportArgumentType]
    "a currency of calls": (lambda: Limit(calls=3, currency="EUR"), "spend="),
    "a total by name": (lambda: REQUEST.always("ann", total={"cents": 5}), r"\('amount', 100\)"),  # pyright: ignore[reportArgumentType]
    "nobody": (lambda: REQUEST.grant(""), "name of the person"),
    "a grant of nothing": (lambda: Grant(), r"request.grant\('ann'\)"),  # pyright: ignore[reportCallIssue]
}


@pytest.mark.parametrize(("give", "said"), REFUSED.values(), ids=REFUSED)
def test_what_would_limit_or_guard_nothing_is_refused(give: Callable[[], object], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        give()


class _Unhashable(type):
    __hash__ = None  # pyright: ignore[reportAssignmentType] -- as where a class of classes says what is equal


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"flag": True}, {"flag": "yes"}),
        ({"flag": True}, {"flagg": True}),
        ({"word": "a"}, {"word": "c"}),
        ({"names": ["a"]}, {"names": [5]}),
        ({"names": ["a"]}, {"names": "a"}),
        ({"flag": True}, {"flag": _Unhashable("Odd", (), {})()}),
    ],
)
async def test_options_that_were_right_once_are_checked_again(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    @explain_options()
    async def give(*, flag: bool = False, word: Literal["a", "b"] = "a", names: Sequence[str] = ()) -> int:
        return flag + len(word) + len(names)

    for _ in range(2):
        await give(**right)

    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match=r"flag|word|names"):
            await give(**wrong)


async def test_a_generator_is_read_once_also_where_one_was_given_before() -> None:
    @explain_options()
    async def give(*, names: Sequence[str] = ()) -> tuple[list[str], list[str]]:
        return list(names), list(names)

    given = [await give(names=(name for name in ("a", "b"))) for _ in range(3)]  # pyright: ignore[reportArgumentType]

    assert given == [(["a", "b"], ["a", "b"])] * 3
