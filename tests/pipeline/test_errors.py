"""Exceptions that were not made for a model: logged once, in the record, and shown as the run says."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from toolcrib import openapi
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.budgets import Budgets, Limit
from toolcrib.calls import Failed, ToolCall, error_of, outcome_from_dict
from toolcrib.errors import (
    ApprovalDenied,
    CredentialError,
    FieldProblem,
    HookError,
    InvalidArguments,
    ModelRetry,
    RemoteToolError,
    ToolcribError,
    register_signal,
)
from toolcrib.hooks import HookSet, per_value
from toolcrib.pipeline import Channel, Durability, ErrorPolicy, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.results import MemoryResultStore
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, Cost, ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Turn

SAID = "the key hunter2 is wrong"


@ez_tool
async def broken() -> None:
    raise KeyError(SAID)


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


async def failed(tools: Any, run: Run, name: str = "broken") -> Failed:
    outcome = await Pipeline(tools).run(ToolCall(name, "{}"), run)
    assert isinstance(outcome, Failed)
    return outcome


@pytest.mark.parametrize("errors", ["message", "masked"])
async def test_an_exception_is_logged_once_with_its_traceback(
    errors: ErrorPolicy, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await failed([broken], Run(channel=Channel(errors=errors)))

    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert (record.name, outcome.reference in record.getMessage()) == ("toolcrib.tools", True)
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


async def test_the_model_is_shown_the_message() -> None:
    outcome = await failed([broken], Run())

    assert outcome.text() == f"KeyError: {SAID!r}"


async def test_or_a_reference_alone() -> None:
    outcome = await failed([broken], Run(channel=Channel(errors="masked")))

    assert re.fullmatch(r"e_[0-9a-f]{12}", outcome.reference)
    assert outcome.text() == f"Error: `broken` failed (reference {outcome.reference}); the operator can look it up"
    assert isinstance(outcome.exception, KeyError)


@pytest.mark.parametrize("errors", ["message", "masked"])
async def test_the_record_has_the_traceback_and_no_transcript_has(errors: ErrorPolicy) -> None:
    sink = ListSink()

    outcome = await failed([broken], Run(channel=Channel(errors=errors), sinks=(sink,)))

    kept = sink.records[0].outcome
    assert kept["traceback"] == outcome.traceback
    assert kept["reference"] == outcome.reference
    assert outcome.traceback.splitlines()[1].endswith("in broken")
    assert outcome.traceback.endswith(f"KeyError: {SAID!r}\n")
    shown = outcome.text() + json.dumps(outcome.to_dict()) + repr(outcome)
    assert "Traceback" not in shown
    assert ("hunter2" in shown) == (errors == "message")


async def test_a_failure_crosses_processes_with_its_traceback_and_json_with_its_reference() -> None:
    outcome = await failed([broken], Run())

    pickled = pickle.loads(pickle.dumps(outcome))
    again = outcome_from_dict(json.loads(json.dumps(outcome.to_dict())))

    assert (pickled.traceback, pickled.reference) == (outcome.traceback, outcome.reference)
    assert isinstance(again, Failed)
    assert (again.traceback, again.reference) == ("", outcome.reference)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ModelRetry("write the full name"), "ModelRetry: write the full name"),
        (ApprovalDenied("pay", "not today"), "ApprovalDenied: `pay` was not allowed: not today"),
        (RemoteToolError("bank", "no such account"), "RemoteToolError: no such account"),
    ],
)
async def test_what_was_made_for_the_model_is_shown_and_not_logged(
    error: Exception, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    @ez_tool
    async def find() -> None:
        raise error

    outcome = await failed([find], Run(channel=Channel(errors="masked")), "find")

    assert (outcome.text(), outcome.reference, outcome.traceback) == (text, "", "")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@ez_tool
async def connect(dsn: int) -> str:
    return ""


async def invalid_in_a_turn() -> Any:
    return await Turn(connect, kwargs={"dsn": SAID}).returning(run=Run(sinks=(ListSink(),)))


async def unknown() -> Any:
    return Toolset([connect])[SAID]


async def one_of_ours() -> Any:
    raise ToolcribError(SAID)


@pytest.mark.parametrize("errors", ["message", "masked"])
@pytest.mark.parametrize("inner", [invalid_in_a_turn, unknown, one_of_ours])
async def test_what_a_tool_met_inside_is_as_unexpected_as_any_exception(
    errors: ErrorPolicy, inner: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @ez_tool
    async def report() -> Any:
        return await inner()

    outcome = await failed([report], Run(channel=Channel(errors=errors)), "report")

    assert (outcome.code, outcome.retryable) == ("tool_error", False)
    assert ("hunter2" in outcome.text()) == (errors == "message")
    assert f"in {inner.__name__}" in outcome.traceback
    [logged] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert outcome.reference in logged.getMessage()


async def test_the_deadline_of_a_tool_is_shown_and_that_of_another_tool_in_it_is_not() -> None:
    @ez_tool(timeout=0.01)
    async def slow() -> None:
        await asyncio.sleep(60)

    @ez_tool
    async def report() -> None:
        await Turn(slow).returning()

    own = await failed([slow], Run(channel=Channel(errors="masked")), "slow")
    inner = await failed([report], Run(channel=Channel(errors="masked")), "report")

    assert (own.code, own.reference) == ("tool_timeout", "")
    assert (inner.code, inner.text()) == (
        "tool_error",
        f"Error: `report` failed (reference {inner.reference}); the operator can look it up",
    )


async def test_a_tool_keeps_its_own_deadline_under_another_name() -> None:
    @ez_tool(timeout=0.01)
    async def slow() -> None:
        await asyncio.sleep(60)

    outcome = await failed(Toolset([slow]).prefixed("my_"), Run(channel=Channel(errors="masked")), "my_slow")

    assert outcome.code == "tool_timeout"


async def raising(*args: Any) -> Any:
    raise KeyError(SAID)


def raising_now(*args: Any, **options: Any) -> Any:
    raise KeyError(SAID)


def lacking(principal: Any) -> Any:
    raise CredentialError("Pets", SAID)


async def reapproving(request: Any) -> Any:
    raise InvalidArguments("ask", (FieldProblem("amount", SAID),))


def deciding() -> HookSet:
    hooks = HookSet()
    hooks.on("find")(raising)
    return hooks


@ez_tool
async def find() -> str:
    return "found"


@ez_tool(requires_approval=True)
async def ask() -> str:
    return "found"


@ez_tool
async def inquire(ctx: RunContext[None]) -> str:
    return str(await ctx.elicit("Shall I?"))


@ez_tool(cost=Cost(lambda arguments: raising_now(), "EUR"))
async def pay() -> None: ...


@ez_tool
async def watched() -> None: ...


@watched.before_invoke
async def watch() -> None:
    raise KeyError(SAID)


class Conditional(BaseTool):
    name = "conditional"
    is_available = staticmethod(raising)  # type: ignore[assignment] -- it is a host's mistake

    async def call(self, ctx: Any) -> None: ...


class AtBegin:
    stage = "authorize"

    def check(self, call: Any) -> None: ...

    def begin(self, call: Any) -> None:
        raising_now()


class Delivering:
    name = "delivering"

    async def deliver(self, call: Any, value: Any) -> Any:
        raise KeyError(SAID)


class Running(Toolset):
    async def _call_tool_func(self, args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        await tool.call_func(args, ctx)
        raising_now()


class Recorder:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def begin(self, call: Any) -> None:
        raise self.error


class Losing(MemoryApprovalStore):
    async def end(self, *args: Any, **options: Any) -> Any:
        raise SystemExit(SAID)


class Forgetting(MemoryApprovalStore):
    async def begin(self, *args: Any, **options: Any) -> Any:
        raising_now()


@ez_tool(fixed={"secret": lambda: raising_now()})
async def send(secret: str) -> None: ...


@ez_tool(fixed={"secret": lambda: raising_now()})
async def tell(secret: str) -> AsyncIterator[str]:
    yield secret


@ez_tool(max_result_chars=100)
async def long() -> str:
    return "word " * 1_000


@ez_tool
async def sample(ctx: RunContext[None]) -> str:
    return (await ctx.sample("Hello.")).text


class RefusedVault:
    """Kept credentials whose store is away."""

    async def consent_for(self, principal: str, server: str) -> None: ...

    sign = renew = raising


def served_api(credentials: Any) -> Toolset:
    operation = {"operationId": "list_pets", "security": [{"key": []}], "responses": {"200": {"description": "fine"}}}
    return openapi.toolset(
        {
            "openapi": "3.1.0",
            "info": {"title": "Pets", "version": "1"},
            "paths": {"/pets": {"get": operation}},
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        },
        server="http://127.0.0.1:9",
        approval=False,
        credentials=credentials,
    )


@ez_tool
async def stream() -> AsyncIterator[str]:
    yield "found"


@pytest.mark.parametrize("errors", ["message", "masked"])
@pytest.mark.parametrize(
    ("tools", "name", "options"),
    [
        (Toolset([find], hooks=deciding()), "find", {}),
        (Toolset([find], pre_hooks={"find": raising}), "find", {}),
        (Toolset([find], post_hooks={"find": raising}), "find", {}),
        (Toolset([ask]), "ask", {"approver": raising}),
        (Toolset([ask]), "ask", {"approver": raising_now}),
        (Toolset([ask]), "ask", {"approver": reapproving}),
        (Toolset([ask]), "ask", {"approver": lambda request: SAID}),
        (Toolset([ask]), "ask", {"approver": lambda request: replace(request, tool=SAID).grant("ann")}),
        (Toolset([inquire]), "inquire", {"approver": raising}),
        (Toolset([ez_tool(requires_approval=lambda arguments, ctx: raising(ctx))(find.fn)]), "find", {}),
        (Toolset([Conditional]), "conditional", {}),
        (Toolset([find]), "find", {"gates": [raising]}),
        (Toolset([find]), "find", {"gates": [AtBegin()]}),
        (Toolset([pay]), "pay", {"gates": [Budgets([Limit(spend=1, currency="EUR")])]}),
        (Toolset([watched]), "watched", {}),
        (Toolset([find]).with_deliveries(Delivering()), "find", {}),
        (Toolset([find]), "find", {"deliveries": [Delivering()]}),
        (Running([find]), "find", {}),
        (Toolset([ask]), "ask", {"approver": lambda request: request.grant("ann"), "approvals": Forgetting()}),
        (Toolset([send]), "send", {}),
        (Toolset([tell]), "tell", {}),
        (Toolset([find]), "find", {"durability": Durability(recorder=Recorder(KeyError(SAID)))}),
        (Toolset([find]), "find", {"durability": Durability(recorder=Recorder(ModelRetry(SAID)))}),
        (Toolset([find]), "find", {"durability": Durability(recorder=Recorder(SystemExit(SAID)))}),
        (Toolset([stream]), "stream", {"durability": Durability(recorder=Recorder(KeyError(SAID)))}),
        (Toolset([find]), "find", {"durability": Durability(fence=raising)}),
        (Toolset([find]), "find", {"durability": Durability(fence=raising_now)}),
        (served_api(raising), "list_pets", {}),
        (served_api(raising_now), "list_pets", {}),
        (served_api(lacking), "list_pets", {}),
        (served_api({"key": RefusedVault()}), "list_pets", {}),
    ],
    ids=[
        *("decision", "pre", "post", "approver", "plain approver", "approver with another error", "no answer"),
        *("for another", "question", "policy", "condition", "gate", "begin", "cost", "observer"),
        *("delivery", "of run", "around the execution", "store", "fixed argument", "fixed argument of a stream"),
        *("recorder", "recorder with a retry", "recorder that exits", "recorder of a stream", "fence", "plain fence"),
        *("credentials", "plain credentials", "credentials with another error", "kept credentials"),
    ],
)
async def test_what_a_hook_raises_is_never_shown(
    errors: ErrorPolicy, tools: Toolset, name: str, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = await failed(tools, Run(channel=Channel(errors=errors, hook_errors="fail"), **options), name)

    assert (outcome.code, "hunter2" in outcome.text()) == ("hook_error", False)
    assert "hunter2" in outcome.traceback
    assert isinstance(outcome.exception, HookError)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("errors", ["message", "masked"])
async def test_what_a_hook_of_each_value_raises_is_never_shown(errors: ErrorPolicy) -> None:
    @ez_tool
    async def count() -> AsyncIterator[int]:
        yield 1

    outcome = await failed(
        Toolset([count], post_hooks={"count": per_value(raising)}), Run(channel=Channel(errors=errors)), "count"
    )

    assert (outcome.code, "hunter2" in outcome.text()) == ("hook_error", False)


async def test_the_signal_of_an_engine_passes_a_journal_as_it_is() -> None:
    class LeftByEngine(BaseException): ...

    register_signal(LeftByEngine)
    signal = LeftByEngine()

    with pytest.raises(LeftByEngine) as raised:
        await Pipeline([find]).run(ToolCall("find", "{}"), Run(durability=Durability(recorder=Recorder(signal))))

    assert raised.value is signal


@pytest.mark.parametrize("error", [KeyError(SAID), ModelRetry(SAID), SystemExit(SAID)], ids=repr)
async def test_what_the_hosts_model_raises_is_never_shown(error: BaseException) -> None:
    async def answer(request: Any) -> Any:
        raise error

    outcome = await failed([sample], Run(channel=Channel(sample=answer)), "sample")

    assert (outcome.code, "hunter2" in outcome.text()) == ("hook_error", False)
    assert isinstance(outcome.exception, HookError)


@pytest.mark.parametrize("errors", ["message", "masked"])
@pytest.mark.parametrize(("method", "arguments"), [("find", {}), ("piece_at", {}), ("pieces", {"search": "word"})])
async def test_what_a_result_store_raises_is_never_shown(
    errors: ErrorPolicy, method: str, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryResultStore()
    tools = Pipeline(Toolset([long], results=store))
    kept = await tools.run(ToolCall("long", "{}"), Run())
    [handle] = re.findall('handle="([^"]+)"', kept.text())
    monkeypatch.setattr(store, method, raising_now)

    outcome = await tools.run(
        ToolCall("read_result", {"handle": handle, **arguments}), Run(channel=Channel(errors=errors))
    )

    assert isinstance(outcome, Failed)
    assert (outcome.code, "hunter2" in outcome.text()) == ("hook_error", False)
    assert isinstance(outcome.exception, HookError)


async def test_a_call_that_ran_is_completed_though_its_store_exits(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(approver=lambda request: request.grant("ann"), approvals=Losing())

    outcome = await Pipeline([ask]).run(ToolCall("ask", "{}"), run)

    assert outcome.text() == "found"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_what_an_approver_raises_for_a_call_inside_a_tool_is_never_shown() -> None:
    @ez_tool
    async def look_in() -> None:
        outcome = await Pipeline([ask]).run(ToolCall("ask", "{}"), Run(approver=raising))
        raise error_of(outcome)

    outcome = await failed([look_in], Run(), "look_in")

    assert (outcome.code, "hunter2" in outcome.text()) == ("hook_error", False)


async def test_what_an_approver_raises_does_not_go_to_another_process_with_the_call() -> None:
    pipeline = Pipeline([inquire])
    call: Any = await pipeline.admit(ToolCall("inquire", "{}"), Run(approver=raising))

    await pipeline.execute(call)

    assert "the host's approver for `inquire` failed" in json.dumps(call.to_dict())
    assert "hunter2" not in json.dumps(call.to_dict())


async def test_arguments_that_do_not_fit_are_always_shown() -> None:
    @ez_tool
    async def find(name: str) -> None: ...

    outcome = await failed([find], Run(channel=Channel(errors="masked")), "find")

    assert "name" in outcome.text()


async def test_what_a_post_hook_recovers_from_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    tools = Toolset([broken], post_hooks={"broken": lambda ctx, result, metadata: "mended"})

    outcome = await Pipeline(tools).run(ToolCall("broken", "{}"), Run())

    assert outcome.text() == "mended"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_an_exception_that_cannot_be_shown_is_logged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    async def mute() -> None:
        raise Speechless

    outcome = await failed([mute], Run(), "mute")

    assert "cannot be shown" in outcome.message
    assert "in mute" in outcome.traceback
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


async def test_an_exception_whose_message_exits_fails_its_call() -> None:
    class Exiting(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    @ez_tool
    async def leave() -> None:
        raise Exiting

    outcome = await failed([leave], Run(), "leave")

    assert "cannot be shown" in outcome.message


async def test_a_long_traceback_is_cut() -> None:
    @ez_tool
    async def loud() -> None:
        raise OSError("x" * 100_000)

    outcome = await failed([loud], Run(), "loud")

    assert len(outcome.traceback) < 20_100
    assert outcome.traceback.startswith("Traceback")
