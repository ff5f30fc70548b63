"""Validators that change their own result again: what was seen of a call is what runs, edited or stored."""

from __future__ import annotations

import json
from datetime import date
from itertools import count
from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    AliasPath,
    Base64Str,
    BaseModel,
    BeforeValidator,
    Field,
    Json,
    Strict,
    model_validator,
)

from toolcrib.calls import Completed, Failed, Outcome, RunNormally, Suspended, ToolCall
from toolcrib.errors import ApprovalError, InvalidArguments
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run, is_call
from toolcrib.rounds import ToolRoundPlan, decode
from toolcrib.testing import wire_reply
from toolcrib.tools import Tool, ez_tool, tool_input
from toolcrib.toolsets import Toolset

Cents = Annotated[int, AfterValidator(lambda euros: euros * 100)]
Words = Annotated[list[str], BeforeValidator(lambda text: text.split(","))]
DRAWS = count()
Drawn = Annotated[int, AfterValidator(lambda given: given + next(DRAWS))]
Day = Annotated[date, Strict()]


class Price(BaseModel):
    cents: Cents


def paying(**options: Any) -> Tool[..., Any]:
    @ez_tool(**options)
    async def pay(cents: Cents, note: str = "") -> str:
        return f"{cents} {note}"

    return pay


async def many(
    cents: Cents = 7,
    price: Price | None = None,
    words: Words | None = None,
    coded: Base64Str = "",
    listed: Json[list[int]] | None = None,
    day: Day = date(2026, 1, 1),
    under: Annotated[Cents, Field(alias="from")] = 0,
    note: str = "",
) -> str:
    return repr((cents, price and price.cents, words, coded, listed, day, under))


GIVEN = {
    "cents": 5,
    "price": {"cents": 6},
    "words": "a,b",
    "coded": "aGVsbG8=",
    "listed": "[1,2]",
    "day": "2026-02-03",
    "from": 8,
}
SEEN = repr((500, 600, ["a", "b"], "hello", [1, 2], date(2026, 2, 3), 800))
SHAPES = pytest.mark.parametrize("given", [json.dumps(GIVEN), "{}"])


async def seen_of(given: str) -> str:
    """Return what the tool is given where nothing looks at it."""
    return value_of(await Pipeline([ez_tool(many)]).run(ToolCall("many", given)))


def editing(name: str, **values: Any) -> HookSet:
    """A decision hook of a tool that edits these arguments, and no other."""
    hooks = HookSet()

    @hooks.on(name)
    async def edit(call: Any, given: Any) -> RunNormally:
        for name, value in values.items():
            setattr(given, name, value)
        return RunNormally(given)

    return hooks


def value_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Completed), outcome
    return outcome.value


async def stored(pipeline: Pipeline, call: ToolCall) -> dict[str, Any]:
    """Return the JSON of an admitted call."""
    made = await pipeline.admit(call)
    assert is_call(made), made
    return json.loads(json.dumps(made.to_dict()))


# --- a call that comes back


@SHAPES
async def test_a_stored_call_runs_with_what_was_seen(given: str) -> None:
    pipeline = Pipeline([ez_tool(many)])

    state = await stored(pipeline, ToolCall("many", given))
    back = await pipeline.recover(state)

    assert value_of(await pipeline.run(state)) == await seen_of(given)
    assert is_call(back)
    assert back.to_dict()["digest"] == state["digest"]


@SHAPES
async def test_an_approved_call_runs_with_what_was_seen(given: str) -> None:
    pipeline = Pipeline([ez_tool(requires_approval=True)(many)])

    asked = await pipeline.run(ToolCall("many", given))
    assert isinstance(asked, Suspended)
    outcome = await pipeline.run(json.loads(json.dumps(asked.to_dict()["call"])), grant=asked.request.grant("ann"))

    assert value_of(outcome) == await seen_of(given)


async def test_a_stored_round_runs_with_what_was_seen() -> None:
    tools = Toolset([paying()])
    plan = await decode(tools, wire_reply("openai", [ToolCall("pay", {"cents": 5}, "c1")])).apply_hooks()

    back = await ToolRoundPlan.from_json(tools, plan.to_json())

    assert back.pending[0].input.cents == 500
    assert [result.output for result in await back.run_pending()] == ["500 "]


async def test_a_hosts_call_comes_back_as_it_was_seen() -> None:
    pipeline = Pipeline([paying(requires_approval=True)])

    asked = await pipeline.run(ToolCall("pay", {"cents": 5}, origin="host"))
    assert isinstance(asked, Suspended)
    outcome = await pipeline.run(asked.to_dict()["call"], grant=asked.request.grant("ann"))

    assert asked.request.arguments["cents"] == 500
    assert value_of(outcome) == "500 "


async def test_a_call_that_comes_back_otherwise_is_refused_by_name() -> None:
    @ez_tool
    async def draw(number: Drawn, pin: str = "4711") -> int:
        return number

    state = await stored(Pipeline([draw]), ToolCall("draw", {"number": 5}))
    outcome = await Pipeline([draw]).run(state)

    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"
    assert "`draw` cannot take these arguments: number: " in outcome.message
    assert "a validator has to leave its own result as it is" in str(outcome.exception)
    assert "pin" not in outcome.message


# --- an edit


@SHAPES
async def test_a_decision_hook_leaves_what_it_does_not_edit(given: str) -> None:
    pipeline = Pipeline(Toolset([ez_tool(many)]).with_hooks(editing("many", note="edited")))

    assert value_of(await pipeline.run(ToolCall("many", given))) == await seen_of(given)


async def test_further_hooks_and_a_stored_call_leave_it_too() -> None:
    pipeline = Pipeline(
        Toolset([ez_tool(many)]).with_hooks(editing("many", note="a")).with_hooks(editing("many", note="b"))
    )

    state = await stored(pipeline, ToolCall("many", json.dumps(GIVEN)))

    assert state["arguments"]["note"] == "a"
    assert value_of(await pipeline.run(state)) == SEEN


@pytest.mark.parametrize("origin", ["model", "host"])
async def test_a_pre_hook_leaves_what_it_does_not_edit(origin: Any) -> None:
    def edit(ctx: Any, args: dict[str, Any], metadata: Any) -> dict[str, Any]:
        return {**args, "note": "edited"}

    pipeline = Pipeline(Toolset([paying()], pre_hooks={"pay": edit}))

    assert value_of(await pipeline.run(ToolCall("pay", {"cents": 5}, origin=origin))) == "500 edited"


async def test_a_host_of_a_round_leaves_what_it_does_not_edit() -> None:
    tools = Toolset([paying()])
    plan = await decode(tools, wire_reply("openai", [ToolCall("pay", {"cents": 5}, "c1")])).apply_hooks()

    plan.pending[0].input.note = "edited"

    assert [result.output for result in await plan.run_pending()] == ["500 edited"]


@SHAPES
@pytest.mark.parametrize("key", ["from", "under"])
async def test_an_approver_leaves_what_they_do_not_edit_of_any_type(given: str, key: str) -> None:
    pipeline = Pipeline([ez_tool(requires_approval=True)(many)])
    asked = await pipeline.run(ToolCall("many", given))
    assert isinstance(asked, Suspended)

    edited: dict[str, Any] = {**asked.request.arguments, "note": "edited", "coded": "d29ybGQ="}
    edited[key] = edited.pop("from")
    outcome = await pipeline.run(asked, grant=asked.request.grant("ann", override_args=edited))

    assert value_of(outcome) == (await seen_of(given)).replace("'hello'", "'world'").replace("''", "'world'")


@pytest.mark.parametrize("written", [False, True])
async def test_an_approver_leaves_what_they_do_not_edit(written: bool) -> None:
    pipeline = Pipeline([paying(requires_approval=True)])
    asked = await pipeline.run(ToolCall("pay", {"cents": 5}))
    assert isinstance(asked, Suspended)

    edited = {**asked.request.arguments, "note": "edited"}
    state = asked.to_dict()["call"] if written else asked
    outcome = await pipeline.run(state, grant=asked.request.grant("ann", override_args=edited))

    assert value_of(outcome) == "500 edited"


async def test_an_edit_to_the_value_that_a_type_reads_from_another_form_is_taken() -> None:
    pipeline = Pipeline(
        Toolset([ez_tool(many)]).with_hooks(editing("many", coded="world", listed=[3], day=date(2026, 5, 6)))
    )

    value = value_of(await pipeline.run(ToolCall("many", json.dumps({**GIVEN, "day": "2026-02-03"}))))

    assert value == repr((500, 600, ["a", "b"], "world", [3], date(2026, 5, 6), 800))


@pytest.mark.parametrize(("name", "value"), [("cents", 300), ("price", Price(cents=3)), ("words", ["c"]), ("under", 2)])
async def test_an_edit_that_a_validator_would_change_is_refused_by_name(name: str, value: Any) -> None:
    pipeline = Pipeline(Toolset([ez_tool(many)]).with_hooks(editing("many", **{name: value})))

    outcome = await pipeline.run(ToolCall("many", json.dumps(GIVEN)))

    assert isinstance(outcome, Failed)
    said = str(outcome.exception)
    assert f"{'from' if name == 'under' else name}: its validator changes its own result again" in said


@pytest.mark.parametrize(("edit", "kind"), [({"note": "edited"}, "completed"), ({"cents": 300}, "failed")])
async def test_an_edit_is_taken_or_refused_where_a_value_comes_from_inside_another(edit: Any, kind: str) -> None:
    @ez_tool
    async def pay(cents: Annotated[Cents, Field(validation_alias=AliasPath("price", 0))], note: str = "") -> str:
        return f"{cents} {note}"

    outcome = await Pipeline(Toolset([pay]).with_hooks(editing("pay", **edit))).run(ToolCall("pay", {"price": [5]}))

    assert outcome.kind == kind
    shown = str(outcome.exception) if isinstance(outcome, Failed) else outcome.text()
    assert "500 edited" in shown or "cannot take these arguments: cents: " in shown


async def test_a_value_that_no_validator_has_changed_yet_may_not_be_edited_into_one() -> None:
    pipeline = Pipeline(Toolset([paying()]).with_hooks(editing("pay", cents=3)))

    outcome = await pipeline.run(ToolCall("pay", {"cents": 0}))

    assert isinstance(outcome, Failed)
    assert "a validator has to leave its own result as it is" in str(outcome.exception)


async def test_a_host_of_a_round_is_refused_an_edit_that_a_validator_would_change() -> None:
    tools = Toolset([paying()])
    plan = await decode(tools, wire_reply("openai", [ToolCall("pay", {"cents": 5}, "c1")])).apply_hooks()

    plan.pending[0].input.cents = 300

    with pytest.raises(InvalidArguments, match="`pay` cannot take these arguments: cents: its validator changes"):
        await plan.run_pending()


async def test_an_approver_is_refused_an_edit_that_a_validator_would_change() -> None:
    pipeline = Pipeline([paying(requires_approval=True)])
    asked = await pipeline.run(ToolCall("pay", {"cents": 5}))
    assert isinstance(asked, Suspended)

    with pytest.raises(ApprovalError, match="`pay` cannot take these arguments: cents: "):
        await pipeline.run(asked, grant=asked.request.grant("ann", override_args={"cents": 300, "note": ""}))


@pytest.mark.parametrize(("count", "value"), [("7", 7), ("many", None)])
async def test_an_object_that_a_hook_changed_is_checked_again(count: Any, value: Any) -> None:
    class Line(BaseModel):
        count: int

    @ez_tool
    async def order(lines: list[Line]) -> Any:
        return lines[0].count

    def edit(ctx: Any, args: dict[str, Any], metadata: Any) -> dict[str, Any]:
        args["lines"][0].__dict__["count"] = count
        return args

    outcome = await Pipeline(Toolset([order], pre_hooks={"order": edit})).run(
        ToolCall("order", {"lines": [{"count": 1}]})
    )

    assert getattr(outcome, "value", None) == value
    assert isinstance(outcome, Completed) or "lines[0].count: must be an integer" in str(outcome.exception)


# --- validators that make one value of others


@tool_input(name="order", output=str)
class Order(BaseModel):
    count: int
    each: int
    total: int = 0

    @model_validator(mode="after")
    def add_up(self) -> Order:
        self.total = self.count * self.each
        return self


async def test_a_hooks_edit_makes_the_others_of_it_anew() -> None:
    hooks = HookSet()

    @hooks.on("order")
    async def double(call: Any, given: Any) -> RunNormally:
        given.count = given.count * 2
        return RunNormally(given)

    made = await Pipeline(Toolset([Order], hooks=hooks)).admit(ToolCall("order", {"count": 1, "each": 5}))

    assert is_call(made)
    assert made.arguments == {"count": 2, "each": 5, "total": 10}


async def test_an_approvers_edit_makes_no_other_value_that_they_did_not_see() -> None:
    pipeline = Pipeline(Toolset([Order]).with_approval())
    asked = await pipeline.run(ToolCall("order", {"count": 1, "each": 5}))
    assert isinstance(asked, Suspended)

    edited = {**asked.request.arguments, "count": 2}
    with pytest.raises(ApprovalError, match="total: it comes to another value with this edit"):
        await pipeline.admit(asked, Run(), grant=asked.request.grant("ann", override_args=edited))
    taken = await pipeline.admit(asked, grant=asked.request.grant("ann", override_args={**edited, "total": 10}))

    assert is_call(taken)
    assert taken.arguments["total"] == 10


# --- values without a JSON form


class Handle:
    """What only its own process has."""


async def test_an_object_of_the_host_is_kept_with_what_was_seen_beside_it() -> None:
    handle = Handle()

    @ez_tool
    async def use(handle: Annotated[Any, AfterValidator(lambda given: given)], cents: Cents, note: str = "") -> Any:
        return handle, cents, note

    def edit(ctx: Any, args: dict[str, Any], metadata: Any) -> dict[str, Any]:
        return {**args, "note": "edited"}

    pipeline = Pipeline(Toolset([use], pre_hooks={"use": edit}))

    outcome = await pipeline.run(ToolCall("use", {"handle": handle, "cents": 5}, origin="host"))

    assert value_of(outcome) == (handle, 500, "edited")
