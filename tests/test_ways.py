"""The gates of the pipeline, over a way in of each kind."""

import asyncio
import json
import re
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from pydantic import AfterValidator, BaseModel, SecretStr

from tests.ways import REPRESENTATIVES, WAYS, appending, asking, brief, decides, each_representative, representatives
from toolcrib.approvals import AgentContext, MemoryApprovalStore, approve_all
from toolcrib.calls import (
    ApprovalRequest,
    Ask,
    Complete,
    Completed,
    Denial,
    Failed,
    Grant,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
    Yielded,
    outcome_from_dict,
)
from toolcrib.code import Toolkit
from toolcrib.errors import ApprovalRequired, ModelRetry, UnknownTool
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import CallLimits, Channel, Pipeline, Run, current_run
from toolcrib.results import MemoryResultStore
from toolcrib.schema import Redacted, RunContext
from toolcrib.testing import RecordingSink, Way
from toolcrib.tools import BaseTool, Tool, current_deadline, ez_tool, tool
from toolcrib.toolsets import LiveTools, Toolset
from toolcrib.turns import Agent, Turn


def long_text() -> str:
    """Return a text that is too long."""
    return "x" * 5_000


def test_each_representative_is_a_way_in() -> None:
    assert {way.title for way in WAYS}.issuperset(REPRESENTATIVES)


# --- what runs -------------------------------------------------------------------------------------------------------


@each_representative
async def test_a_table_is_shown_by_its_shape_and_ends(way: Way) -> None:
    sink = RecordingSink()

    @ez_tool
    async def sales() -> pd.DataFrame:
        """Return sales."""
        return pd.DataFrame({"n": range(100_000), "s": "text"})

    outcome = await way([sales], sinks=[sink]).call("sales")

    assert isinstance(outcome, Completed)
    assert "100000" in outcome.text()
    assert len(outcome.text()) < 1_000
    assert all(len(json.dumps(record.outcome)) < 1_000 for record in sink.records)


@each_representative
async def test_arrays_and_columns_are_lists_of_values(way: Way) -> None:
    @ez_tool
    async def totals() -> Any:
        """Return totals."""
        return {"by_city": pd.Series([3, 4], index=["Oslo", "Rome"]), "all": np.array([1.5, 2.5]), "n": np.int64(7)}

    caller = way([totals])

    outcome = await caller.call("totals")

    assert isinstance(outcome, Completed)
    [shown] = caller.shown
    found = re.findall(r"[\w.]+", shown.partition("by_city")[2])
    assert found[:8] == ["Oslo", "3", "Rome", "4", "all", "1.5", "2.5", "n"]


@each_representative
@pytest.mark.parametrize("streams", [False, True], ids=["returns", "streams"])
async def test_a_tool_that_calls_another_directly_gives_it_a_context_in_any_run(way: Way, streams: bool) -> None:
    runs: set[str] = set()

    @tool
    async def note(ctx: RunContext) -> None:
        runs.add(ctx.run_id)

    @ez_tool
    async def once() -> None:
        await note()

    @ez_tool
    async def each() -> Any:
        for _ in range(2):
            await note()
            yield None

    outcome = await way([each if streams else once]).call("each" if streams else "once")

    assert isinstance(outcome, Completed), outcome
    assert len(runs) == 1
    assert current_run() is None


@each_representative
async def test_a_sync_generator_has_one_thread(way: Way) -> None:
    threads: list[str] = []

    @ez_tool
    def rows() -> Any:
        database = sqlite3.connect(":memory:")  # which is used in the thread that opened it, or raises
        try:
            for (number,) in database.execute("select 1 union select 2 union select 3"):
                yield number
        finally:
            database.close()
            threads.append(threading.current_thread().name)

    outcome = await way([rows]).call("rows")

    assert isinstance(outcome, Completed), outcome
    assert (outcome.value, threads) == ([1, 2, 3], ["toolcrib-stream"])


@each_representative
async def test_a_sync_tool_runs_beside_the_loop(way: Way) -> None:
    @ez_tool
    def add(a: int, b: int) -> int:
        return a + b

    outcome = await way([add]).call("add", {"a": 1, "b": 2})

    assert isinstance(outcome, Completed)
    assert outcome.value == 3


async def quits() -> None:
    sys.exit(2)


def quits_in_a_thread() -> None:
    sys.exit(2)


async def quits_after_a_value() -> AsyncIterator[int]:
    yield 1
    sys.exit(2)


@each_representative
@pytest.mark.parametrize("fn", [quits, quits_in_a_thread, quits_after_a_value])
async def test_a_tool_that_exits_is_a_failed_call(way: Way, fn: Callable[..., Any]) -> None:
    ran: list[Any] = []
    caller = way([ez_tool(fn), appending(ran)])

    outcome = await caller.call(fn.__name__)
    following = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert "it raised SystemExit(2), which ends a process and not a call" in outcome.message
    assert isinstance(following, Completed)


@each_representative
@pytest.mark.parametrize("streams", [False, True], ids=["returns", "streams"])
async def test_a_tool_is_not_run_once_more_for_a_turn_inside_it_that_is_suspended(way: Way, streams: bool) -> None:
    charged: list[int] = []

    @ez_tool(requires_approval=True)
    async def refund(cents: int) -> None: ...

    @ez_tool
    async def once(cents: int) -> None:
        charged.append(cents)
        await Turn(refund, args=[cents]).returning()

    @ez_tool
    async def each(cents: int) -> Any:
        charged.append(cents)
        await Turn(refund, args=[cents]).returning()
        yield cents

    name = "each" if streams else "once"
    outcome = await way([each if streams else once]).call(name, {"cents": 5})

    assert isinstance(outcome, Failed), outcome
    assert "`refund` was not allowed: it needs approval" in outcome.message
    assert charged == [5]


# --- what the caller is given --------------------------------------------------------------------------------------


class Labels(BaseModel):
    of: dict[Any, Any]


@representatives("run")
async def test_a_result_is_read_by_its_principal_alone(way: Way) -> None:
    tools = Toolset([ez_tool(long_text)], results=MemoryResultStore(max_result_chars=100))
    outcome = await Pipeline(tools).run(ToolCall("long_text", {}), Run(principal="ann"))
    assert isinstance(outcome, Completed)
    assert outcome.kept is not None
    arguments = {"handle": outcome.kept.handle}

    own, other = way(tools, principal="ann"), way(tools, principal="bob")
    await own.call("read_result", arguments)
    refused = await other.call("read_result", arguments)
    unknown = await other.call("read_result", {"handle": "res_of_no_one"})

    assert "x" * 100 in own.shown[0]
    assert "x" * 100 not in other.shown[0]
    assert "call the tool again" in other.shown[0]
    assert refused.text() == unknown.text()


@representatives("run")
@pytest.mark.parametrize("error", [KeyError("the key hunter2 is wrong"), UnknownTool("hunter2")], ids=["any", "ours"])
async def test_a_masked_error_shows_a_reference_that_the_record_has(way: Way, error: Exception) -> None:
    @ez_tool
    async def broken() -> None:
        raise error

    caller = way([broken], channel=Channel(errors="masked"))

    outcome = await caller.call("broken")

    assert isinstance(outcome, Failed)
    [shown] = caller.shown
    assert "hunter2" not in shown
    assert type(error).__name__ not in shown
    assert outcome.reference in shown
    kept = caller.records[0]["outcome"]
    assert (kept["reference"], type(error).__name__ in kept["traceback"]) == (outcome.reference, True)


# --- resolve and validate --------------------------------------------------------------------------------------------


class Withheld(BaseTool):
    """Append for others."""

    name = "append_all"

    def is_available(self, ctx: RunContext) -> bool:
        return False

    async def call(self, ctx: RunContext) -> str:
        return "appended"


@representatives("model")
async def test_an_error_for_an_unknown_tool_names_none_that_is_withheld(way: Way) -> None:
    caller = way([appending([]), Withheld(), ez_tool(name="append_off", default=False)(long_text)])

    outcome = await caller.call("append_al")

    assert isinstance(outcome, Failed)
    assert "append_all" not in outcome.message
    assert "append_off" not in outcome.message


@representatives("run")
async def test_a_tool_outside_the_available_set_cannot_be_called(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran)], available=frozenset({"other"}))

    outcome = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert outcome.code in ("not_available", "unknown_tool")
    assert ran == []


@each_representative
async def test_an_availability_check_that_fails_shuts_the_tool(way: Way) -> None:
    ran: list[str] = []

    class Broken(BaseTool):
        def is_available(self, ctx: RunContext) -> bool:
            raise ConnectionError("no answer")

        async def call(self, ctx: RunContext) -> None:
            ran.append("x")

    outcome = await way([Broken]).call("broken")

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


@representatives("json")
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
@pytest.mark.parametrize("text", ['{"amounts": [N]}', '{"amounts": [], "limit": {"most": N}}'])
async def test_a_number_that_is_not_finite_never_reaches_the_tool(way: Way, text: str, number: str) -> None:
    ran: list[Any] = []

    @ez_tool
    async def pay(amounts: list[float], limit: Any = None) -> None:
        ran.append(amounts)

    outcome = await way([pay]).call("pay", text.replace("N", number))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("invalid_arguments", [])
    assert "must be a finite number" in outcome.message


def paying(**options: Any) -> Tool[..., Any]:
    """Return a tool whose validator makes cents of euros, also of what are cents already."""

    @ez_tool(**options)
    async def pay(cents: Annotated[int, AfterValidator(lambda euros: euros * 100)], note: str = "") -> str:
        return f"{cents} {note}"

    return pay


@representatives("answer")
@pytest.mark.parametrize("edit", [{}, {"note": "edited"}], ids=["as asked", "edited"])
async def test_what_a_person_saw_is_not_validated_once_more(way: Way, edit: dict[str, Any]) -> None:
    tools = way([paying(requires_approval=True)])
    waiting = await tools.call("pay", {"cents": 5})
    assert isinstance(waiting, Suspended)

    edited = {**waiting.request.arguments, **edit} if edit else None
    outcome = await tools.answer(waiting, waiting.request.grant("ann", override_args=edited))

    assert waiting.request.arguments["cents"] == 500
    assert isinstance(outcome, Completed)
    assert outcome.value == f"500 {edit.get('note', '')}"


@representatives("answer")
async def test_a_secret_that_an_approver_leaves_as_it_was_shown_keeps_its_value(way: Way) -> None:
    ran: list[Any] = []

    @ez_tool(requires_approval=True)
    async def pay(cents: int, token: SecretStr, pin: Annotated[str, Redacted] = "") -> None:
        ran.append((cents, token.get_secret_value(), pin))

    tools = way([pay])
    waiting = await tools.call("pay", {"cents": 5, "token": "hunter2", "pin": "4711"})
    assert isinstance(waiting, Suspended)

    edited = {**waiting.request.arguments, "cents": 3}
    outcome = await tools.answer(waiting, waiting.request.grant("ann", override_args=edited))

    assert isinstance(outcome, Completed), outcome
    assert ran == [(3, "hunter2", "4711")]


@each_representative
async def test_what_a_hook_does_not_edit_is_not_validated_once_more(way: Way) -> None:
    hooks = HookSet()

    @hooks.on("pay")
    async def edit(call: Any, given: Any) -> RunNormally:
        given.note = f"{given.cents} seen"
        return RunNormally(given)

    outcome = await way(Toolset([paying()], hooks=hooks)).call("pay", {"cents": 5})

    assert isinstance(outcome, Completed)
    assert outcome.value == "500 500 seen"


@representatives("answer")
async def test_an_iterable_keeps_its_values_while_a_sink_listens_and_a_person_is_asked(way: Way) -> None:
    @ez_tool(requires_approval=True)
    async def total(numbers: Iterable[int]) -> int:
        return sum(numbers)

    tools = way([total], sinks=[RecordingSink()])

    one = await tools.call("total", {"numbers": [1, 2, 3]})
    assert isinstance(one, Suspended)
    done = await tools.answer(one, one.request.grant("ann"))
    other = await tools.call("total", {"numbers": [4]})
    assert isinstance(other, Suspended)

    assert [one.request.arguments, other.request.arguments] == [{"numbers": [1, 2, 3]}, {"numbers": [4]}]
    assert one.request.digest != other.request.digest
    assert isinstance(done, Completed)
    assert done.value == 6


@representatives("model")
async def test_a_fixed_argument_is_the_hosts_alone(way: Way) -> None:
    ran: list[str] = []

    @ez_tool(key="host's")
    async def fetch(url: str, key: str = "") -> None:
        ran.append(key)

    refused = await way([fetch]).call("fetch", {"url": "u", "key": "model's"})
    done = await way([fetch]).call("fetch", {"url": "u"})

    assert isinstance(refused, Failed)
    assert refused.code == "invalid_arguments"
    assert "key" in refused.message
    assert isinstance(done, Completed)
    assert ran == ["host's"]


@representatives("model")
async def test_an_injected_parameter_cannot_be_named_by_a_model(way: Way) -> None:
    @ez_tool
    async def whoami(ctx: RunContext) -> str:
        return ctx.tool_name

    refused = await way([whoami]).call("whoami", {"ctx": {"deps": 1}})
    done = await way([whoami]).call("whoami")

    assert isinstance(refused, Failed)
    assert refused.code == "invalid_arguments"
    assert isinstance(done, Completed)
    assert done.value == "whoami"


# --- decisions -------------------------------------------------------------------------------------------------------


@each_representative
async def test_a_hook_may_answer_for_the_tool(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)], hooks=decides(lambda given: Complete("cached"))).call("append", {"text": "x"})

    assert isinstance(outcome, Completed)
    assert (outcome.value, outcome.source, ran) == ("cached", "hook", [])


@each_representative
async def test_an_edit_by_a_hook_reaches_the_tool(way: Way) -> None:
    ran: list[Any] = []
    hooks = decides(lambda given: RunNormally(given.model_copy(update={"text": "y"})))

    await way([appending(ran)], hooks=hooks).call("append", {"text": "x", "times": 2})

    assert ran == [("y", 2)]


@representatives("model")
async def test_an_edit_by_a_hook_is_validated_again(way: Way) -> None:
    ran: list[Any] = []
    hooks = decides(lambda given: RunNormally({"text": "y", "times": "many"}))

    outcome = await way([appending(ran)], hooks=hooks).call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


@each_representative
async def test_a_hook_may_have_a_person_asked(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)], hooks=decides(lambda given: Ask("it is late"))).call("append", {"text": "x"})

    assert isinstance(outcome, Suspended)
    assert (outcome.request.reason, ran) == ("it is late", [])


@each_representative
async def test_a_decision_hook_that_fails_shuts_the_tool(way: Way) -> None:
    ran: list[Any] = []

    def fail(given: Any) -> None:
        raise ZeroDivisionError("oops")

    outcome = await way([appending(ran)], hooks=decides(fail)).call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])
    assert "oops" not in outcome.message


# --- middleware ------------------------------------------------------------------------------------------------------


@each_representative
async def test_pre_and_post_hooks_stand_around_the_tool_in_order(way: Way) -> None:
    seen: list[str] = []
    tools = Toolset(
        [appending([])],
        pre_hooks={"append": lambda ctx, args, metadata: seen.append("pre") or args},
        post_hooks={"append": lambda ctx, result, metadata: seen.append("post") or result},
        global_hooks=GlobalHooks(
            pre=lambda ctx, name, args, metadata: seen.append("global pre") or args,
            post=lambda ctx, name, result, metadata: seen.append("global post") or result,
        ),
    )

    await way(tools).call("append", {"text": "x"})

    assert seen == ["global pre", "pre", "post", "global post"]


@each_representative
async def test_a_pre_hook_edits_what_the_tool_gets(way: Way) -> None:
    ran: list[Any] = []
    tools = Toolset([appending(ran)], pre_hooks={"append": lambda ctx, args, metadata: {**args, "times": 3}})

    await way(tools).call("append", {"text": "x"})

    assert ran == [("x", 3)]


@representatives("model")
async def test_what_a_pre_hook_made_of_the_arguments_is_validated_again(way: Way) -> None:
    ran: list[Any] = []
    tools = Toolset([appending(ran)], pre_hooks={"append": lambda ctx, args, metadata: {**args, "times": "many"}})

    outcome = await way(tools).call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


@each_representative
async def test_a_pre_hook_that_fails_shuts_the_tool(way: Way) -> None:
    ran: list[Any] = []
    tools = Toolset([appending(ran)], pre_hooks={"append": lambda ctx, args, metadata: args["nothing"]})

    outcome = await way(tools).call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


@each_representative
async def test_a_post_hook_recovers_from_an_error(way: Way) -> None:
    @ez_tool
    async def read() -> str:
        raise OSError("disk on fire")

    tools = Toolset([read], post_hooks={"read": lambda ctx, result, metadata: f"none ({result})"})

    outcome = await way(tools).call("read")

    assert isinstance(outcome, Completed)
    assert outcome.value == "none (disk on fire)"


# --- approval --------------------------------------------------------------------------------------------------------


@representatives("run")
async def test_the_contexts_list_makes_a_tool_wait(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran)], deps=AgentContext(need_user_approve_tools=["append"]))

    outcome = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Suspended)
    assert ran == []


@each_representative
async def test_approval_may_depend_on_the_arguments(way: Way) -> None:
    ran: list[Any] = []
    tools = [appending(ran, requires_approval=lambda args, ctx: args["times"] > 1 and "more than one")]

    few = await way(tools).call("append", {"text": "x", "times": 1})
    many = await way(tools).call("append", {"text": "x", "times": 2})

    assert isinstance(few, Completed)
    assert isinstance(many, Suspended)
    assert (many.request.reason, ran) == ("more than one", [("x", 1)])


@each_representative
async def test_an_approval_policy_that_fails_shuts_the_tool(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran, requires_approval=lambda args, ctx: args["nothing"])]).call(
        "append", {"text": "x"}
    )

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


@representatives("answer")
@pytest.mark.parametrize(
    "change",
    [
        {"digest": "0" * 64},
        {"call_id": "call_other"},
        {"tool": "other"},
        {"call_id": None},
        {"digest": None},
    ],
    ids=["other arguments", "other call", "other tool", "no call", "no arguments"],
)
async def test_a_grant_for_something_else_opens_nothing(way: Way, change: dict[str, Any]) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    outcome = await caller.answer(waiting, replace(waiting.request.grant(), **change))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("approval_error", [])


@representatives("answer", "stored")
async def test_arguments_that_changed_after_the_grant_do_not_run(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    stored = json.loads(json.dumps(waiting.to_dict()))
    stored["call"]["arguments"]["text"] = "y"

    outcome = await caller.answer(outcome_from_dict(stored), waiting.request.grant())

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("approval_error", [])
    assert "changed" in outcome.message


@representatives("answer", "stored")
async def test_a_secret_that_changed_after_the_grant_does_not_run(way: Way) -> None:
    ran: list[str] = []

    @ez_tool(requires_approval=True)
    async def login(password: SecretStr) -> None:
        ran.append("ran")

    caller = way([login])
    given = "hunter2" if "model" in way.abilities else SecretStr("hunter2")
    waiting = await caller.call("login", {"password": given})
    assert isinstance(waiting, Suspended)
    stored = json.loads(json.dumps(waiting.to_dict()))
    stored["call"]["arguments"]["password"] = "swordfish"

    outcome = await caller.answer(outcome_from_dict(stored), waiting.request.grant())

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("approval_error", [])


@representatives("answer", "run", "id")
async def test_the_old_request_of_a_call_whose_tool_has_changed_is_closed(way: Way) -> None:
    store = MemoryApprovalStore()
    waiting = await way([brief(requires_approval=True)], approvals=store).call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    caller = way([appending([], requires_approval=True)], approvals=store)
    again = await caller.answer(waiting, waiting.request.grant("ann"))

    assert isinstance(again, Suspended)
    assert [entry.request for entry in await store.list(pending=True)] == [again.request]


@representatives("answer", "id")
async def test_a_store_answers_once(way: Way) -> None:
    ran: list[Any] = []
    store = MemoryApprovalStore()
    caller = way([appending(ran, requires_approval=True)], approvals=store)
    waiting = await caller.call("append", {"text": "x"}, id="c1")
    assert isinstance(waiting, Suspended)
    await store.answer(waiting.request.grant("ann"))

    done = await caller.call("append", {"text": "x"}, id="c1")
    again = await caller.call("append", {"text": "x"}, id="c1")

    assert isinstance(done, Completed)
    assert isinstance(again, Suspended)
    assert ran == [("x", 1)]


@each_representative
@pytest.mark.parametrize(
    "wrap",
    [
        str,
        lambda text: {"note": text},
        lambda text: [text],
        lambda text: {text: 1},
        lambda text: {"in": ({text: 1},)},
        lambda text: Labels(of={text: 1}),
    ],
    ids=["text", "object", "list", "key", "inner key", "key in a model"],
)
async def test_half_a_surrogate_pair_in_a_result_is_repaired(way: Way, wrap: Callable[[str], Any]) -> None:
    ran: list[int] = []

    @ez_tool
    def pay() -> Any:
        ran.append(1)
        return wrap("thanks \ud83d")

    caller = way([pay])

    outcome = await caller.call("pay")

    assert isinstance(outcome, Completed)
    assert ran == [1]
    assert "thanks \ufffd" in outcome.text()


@representatives("run")
async def test_an_approver_that_fails_shuts_the_tool(way: Way) -> None:
    ran: list[Any] = []

    async def asleep(request: Any) -> Any:
        raise TimeoutError("nobody is there")

    caller = way([appending(ran, requires_approval=True)], approver=asleep)

    outcome = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])
    assert "nobody is there" not in outcome.text()
    record = caller.records[-1]["outcome"]
    assert (record["code"], "nobody is there" in record["traceback"]) == ("hook_error", True)


# --- execution -------------------------------------------------------------------------------------------------------


@each_representative
async def test_a_deadline_stops_the_tool(way: Way) -> None:
    reached: list[str] = []

    @ez_tool(timeout=0.02)
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reached.append("stopped")
        reached.append("went on")

    outcome = await way([hang]).call("hang")

    assert isinstance(outcome, Failed)
    assert (outcome.code, reached) == ("tool_timeout", ["stopped"])


@each_representative
async def test_a_deadline_stops_a_stream(way: Way) -> None:
    reached: list[str] = []

    @ez_tool(timeout=0.02)
    async def drip() -> Any:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            reached.append("stopped")

    outcome = await way([drip]).call("drip")

    assert isinstance(outcome, Failed)
    assert (outcome.code, reached) == ("tool_timeout", ["stopped"])


@each_representative
async def test_a_tools_own_timeout_error_is_its_own(way: Way) -> None:
    @ez_tool(timeout=10)
    async def fetch() -> None:
        raise TimeoutError("the server is slow")

    outcome = await way([fetch]).call("fetch")

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.error_type) == ("tool_error", "TimeoutError")


def crowding(most: int, **options: Any) -> tuple[Tool[..., Any], list[int]]:
    """Return a tool that waits until it runs `most` times at once, and the numbers of executions that it found."""
    inside = 0
    seen: list[int] = []
    full = asyncio.Event()

    @ez_tool(**options)
    async def crowd(n: int) -> None:
        nonlocal inside
        inside += 1
        seen.append(inside)
        if inside == most:
            full.set()
        await full.wait()
        for _ in range(3):  # time for one too many
            await asyncio.sleep(0)
        inside -= 1

    return crowd, seen


@representatives("concurrent")
@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 4), ({"lock": True}, 1), ({"max_concurrency": 2}, 2), ({"lock": lambda args: args["n"] % 2}, 2)],
    ids=["free", "lock", "cap", "lock by key"],
)
async def test_lock_and_cap_hold_calls_apart(way: Way, options: dict[str, Any], most: int) -> None:
    crowd, seen = crowding(most, **options)
    caller = way([crowd])

    await asyncio.gather(*(caller.call("crowd", {"n": n}) for n in range(4)))

    assert (len(seen), max(seen)) == (4, most)


@representatives("concurrent", "run")
async def test_the_runs_own_cap_holds_calls_apart(way: Way) -> None:
    crowd, seen = crowding(2)
    caller = way([crowd], limits=CallLimits(concurrency=2))

    await asyncio.gather(*(caller.call("crowd", {"n": n}) for n in range(4)))

    assert (len(seen), max(seen)) == (4, 2)


@representatives("run")
async def test_a_runs_calls_are_counted(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran)], limits=CallLimits(total=2))

    outcomes = [await caller.call("append", {"text": text}) for text in "abc"]

    assert [type(outcome) for outcome in outcomes] == [Completed, Completed, Rejected]
    assert outcomes[2].source == "limit"  # type: ignore[union-attr]
    assert len(ran) == 2


@representatives("run", "model")
async def test_retryable_answers_run_out(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, max_retries=1)])

    first = await caller.call("append", {})
    second = await caller.call("append", {})

    assert isinstance(first, Failed)
    assert isinstance(second, Failed)
    assert (first.code, first.retryable) == ("invalid_arguments", True)
    assert (second.code, second.retryable) == ("retries_exhausted", False)


@each_representative
async def test_a_tool_may_have_the_model_try_again(way: Way) -> None:
    @ez_tool
    async def find(name: str) -> None:
        raise ModelRetry("write the full name")

    outcome = await way([find]).call("find", {"name": "A."})

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable, outcome.message) == ("model_retry", True, "write the full name")


@representatives("cancel", "run")
@pytest.mark.parametrize("where", ["decision", "pre", "approver", "post"])
async def test_cancelling_while_a_gate_is_asked_closes_the_record(way: Way, where: str) -> None:
    asked = asyncio.Event()

    async def wait(*args: Any) -> Any:
        asked.set()
        return await asyncio.Event().wait()

    hooks = HookSet()
    if where == "decision":
        hooks.register(wait)
    pre, post = ({"append": [wait]} if where == name else {} for name in ("pre", "post"))
    tools = Toolset([appending([], requires_approval=where == "approver")], pre_hooks=pre, post_hooks=post)
    caller = way(tools, hooks=hooks, approver=wait)
    task = asyncio.create_task(caller.call("append", {"text": "x"}))
    await asked.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record["outcome"]["kind"] for record in caller.records] == ["cancelled"]


# --- the record ------------------------------------------------------------------------------------------------------


# --- one run, one execution ------------------------------------------------------------------------------------------


@representatives("run")
async def test_always_is_asked_once_in_a_run(way: Way) -> None:
    ran: list[Any] = []
    asked: list[str] = []

    async def always(request: ApprovalRequest) -> Grant:
        asked.append(request.tool)
        return request.always("ann")

    principal = f"ann {uuid4()}"  # where runs share a store, what she said holds for her alone
    caller = way([appending(ran, requires_approval=True)], approver=always, principal=principal)

    outcomes = [await caller.call("append", {"text": text}) for text in "abc"]

    assert [type(outcome) for outcome in outcomes] == [Completed] * 3
    assert (asked, len(ran)) == (["append"], 3)


@representatives("answer")
async def test_a_call_that_is_answered_twice_with_always_is_executed_once(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)], principal=f"ann {uuid4()}")
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    always = waiting.request.always("ann")

    first, second = [await caller.answer(waiting, always) for _ in range(2)]

    assert isinstance(first, Completed)
    assert ran == [("x", 1)]
    if isinstance(second, Failed):
        assert second.code == "approval_error"
    else:  # as the store knows what came of it
        assert second.text() == first.text()


@representatives("answer", "concurrent")
async def test_a_call_that_is_answered_twice_at_a_time_is_executed_once(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    grant = waiting.request.grant("ann")

    outcomes = await asyncio.gather(*(caller.answer(waiting, grant) for _ in range(2)))

    assert sorted(outcome.kind for outcome in outcomes) == ["completed", "failed"]
    assert ran == [("x", 1)]


@each_representative
@pytest.mark.parametrize("streams", [False, True], ids=["returns", "streams"])
async def test_a_call_completes_whose_tools_are_renewed_meanwhile(way: Way, streams: bool) -> None:
    live = LiveTools()

    @ez_tool
    async def report() -> str:
        live.renew([other])
        return "the report"

    @ez_tool
    async def reports() -> AsyncIterator[str]:
        live.renew([other])
        yield "the report"

    live.renew([report, reports])
    async with Toolset([Source(live)]).open() as tools:
        caller = way(tools)
        outcome = await caller.call("reports" if streams else "report")

    assert isinstance(outcome, Completed)
    assert outcome.value == (["the report"] if streams else "the report")
    assert [record["outcome"]["kind"] for record in caller.records] == ["completed"]


@ez_tool(name="report")
async def other() -> str:
    """Take the place of another tool."""
    return "another"


class Source:
    """A source that may have other tools while a call runs, as a server that announces its tools anew."""

    def __init__(self, live: LiveTools) -> None:
        self._live = live

    @asynccontextmanager
    async def open_source(self, ctx: RunContext[Any]) -> AsyncIterator[LiveTools]:
        yield self._live


@representatives("run")
async def test_a_stream_that_asks_for_approval_after_a_value_has_failed_and_ran_once(way: Way) -> None:
    ran: list[str] = []

    @ez_tool
    async def pay(ctx: RunContext) -> AsyncIterator[str]:
        ran.append("paid")
        yield "paid"
        if not ctx.approved:
            raise ApprovalRequired
        yield "sent"

    caller = way([pay], approver=approve_all)

    outcome = await caller.call("pay")

    assert isinstance(outcome, Failed)
    assert "raise ApprovalRequired before the first `yield`" in outcome.message
    assert ran == ["paid"]
    assert [record["outcome"]["kind"] for record in caller.records] == ["failed"]


@each_representative
@pytest.mark.parametrize("name", ["wait", "waits"])
async def test_a_tool_that_awaits_a_cancelled_task_has_failed(way: Way, name: str) -> None:
    ran: list[Any] = []

    @ez_tool
    async def wait() -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    @ez_tool
    async def waits() -> AsyncIterator[int]:
        yield 1
        await wait()

    caller = way([wait, waits, appending(ran)])

    outcome = await caller.call(name)
    after = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, after.kind, ran) == ("tool_cancelled", "completed", [("x", 1)])
    assert [record["outcome"]["kind"] for record in caller.records] == ["failed", "completed"]


@representatives("run")
async def test_what_a_tool_runs_inside_belongs_to_its_run(way: Way) -> None:
    ran: list[Any] = []
    append = appending(ran)

    @ez_tool
    async def outer() -> None:
        for text in "abc":
            await Turn(append, kwargs={"text": text}).returning()

    sink = RecordingSink()
    caller = way([outer, append], limits=CallLimits(total=2), principal="ann", sinks=[sink])

    outcome = await caller.call("outer")

    assert isinstance(outcome, Failed)
    assert ran == [("a", 1)]
    assert [(one.tool, one.outcome["kind"], one.principal) for one in sink.records] == [
        ("append", "completed", "ann"),
        ("append", "rejected", "ann"),
        ("outer", "failed", "ann"),
    ]
    assert caller.run.calls == {"outer": 1, "append": 1}


@each_representative
async def test_a_registered_tool_is_called_like_any_other(way: Way) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    outcome = await way([add]).call("add", {"a": 1, "b": 2})

    assert isinstance(outcome, Completed)
    assert outcome.value == 3


def test_a_denial_is_no_grant() -> None:
    assert not isinstance(Denial("append"), Grant)


# --- a stream and its consumer ---------------------------------------------------------------------------------------


async def consume_pipeline(tools: list[Any], run: Run, work: Callable[[], Any]) -> None:
    async for item in Pipeline(tools).stream(ToolCall("count"), run):
        if isinstance(item, Yielded):
            await work()


async def consume_turn(tools: list[Any], run: Run, work: Callable[[], Any]) -> None:
    async for _ in Turn(tools[0]).yielding(run=run):
        await work()


async def consume_agent(tools: list[Any], run: Run, work: Callable[[], Any], most: int = 1) -> None:
    agent = Agent("counts", "", tools, register=False)
    await agent.put(Turn(tools[0]))
    async for _ in agent.run(run=run, max_concurrency=most):
        await work()


async def consume_agent_at_once(tools: list[Any], run: Run, work: Callable[[], Any]) -> None:
    await consume_agent(tools, run, work, 2)


async def consume_program(tools: list[Any], run: Run, work: Callable[[], Any]) -> None:
    result = await Toolkit(tools).execute_async("for number in count():\n    double(number)", run)
    assert result.success, result.error


@pytest.mark.parametrize(
    "consume",
    [
        *(consume_pipeline, consume_turn, consume_agent, consume_agent_at_once),
        pytest.param(consume_program, marks=pytest.mark.processes),
    ],
)
async def test_the_slot_of_a_stream_is_held_by_no_consumer(consume: Callable[..., Any]) -> None:
    worked: list[int] = []

    @ez_tool
    async def count() -> AsyncIterator[int]:
        """Count."""
        yield 1
        yield 2

    @ez_tool
    async def double(number: int = 1) -> int:
        """Double a number."""
        worked.append(number)
        return number * 2

    tools, run = [count, double], Run(limits=CallLimits(concurrency=1))

    async def work() -> None:
        outcome = await Pipeline(tools).run(ToolCall("double"), run)
        assert isinstance(outcome, Completed)

    async with asyncio.timeout(60):
        await consume(tools, run, work)

    assert len(worked) == 2


# --- what a tool asks during its call


@representatives("run")
async def test_a_question_that_no_person_can_answer_names_the_tool_and_the_mend(way: Way) -> None:
    got: list[Any] = []

    if way.title == "mcp over stdio":
        pytest.skip("the client is told which capability it lacks")

    outcome = await way([asking(got)], channel=Channel(question_wait=0)).call("ask", {"text": "Sure?"})

    assert isinstance(outcome, Failed), outcome
    assert got == []
    assert "`ask` asks for the answer of a person" in outcome.message


def pass_time() -> None:
    """Have the time of all deadlines around this code be over, unless their clocks stand."""
    innermost = current_deadline()
    assert innermost is not None
    for deadline in innermost.around():
        deadline.expire()


@representatives("run")
async def test_the_time_in_which_a_person_is_asked_is_no_time_of_the_tool(way: Way) -> None:
    got: list[Any] = []

    async def slow(request: ApprovalRequest) -> Grant:
        pass_time()
        await asyncio.sleep(0)
        return request.grant("ann")

    outcome = await way([asking(got, timeout=60)], approver=slow).call("ask", {"text": "Sure?"})

    assert isinstance(outcome, Completed), outcome
    assert got == [True]


@each_representative
async def test_a_wrong_answer_is_asked_for_again_and_then_named(way: Way) -> None:
    got: list[Any] = []

    outcome = await way([asking(got, int)], approver=approve_all).call("ask", {"text": "How many?"})

    assert isinstance(outcome, Failed), outcome
    assert got == []
    assert "does not fit what `ask` asked for: value" in outcome.message
