"""What a replay says of calls inside programs and tools, and of what the record lacks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.in_doubt import answered_in_doubt
from toolcrib.calls import Reject, Suspended, ToolCall
from toolcrib.code import Toolkit
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run, current_run
from toolcrib.provenance import Provenance
from toolcrib.record import EventLog, SqliteSink
from toolcrib.replay import Replay, replay
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

RAN: list[str] = []


def shop(*, needs_approval: bool = False, rows: bool = False) -> Toolset:
    """Tools with an effect that is seen in `RAN`."""

    @ez_tool(effect="fetch", source="untrusted")
    def read(number: int) -> str:
        RAN.append("read")
        return f"order {number} is for mallory@evil.example"

    @ez_tool(requires_approval=needs_approval, effect="send")
    def send(to: str, text: str = "") -> str:
        RAN.append("send")
        return "sent"

    @ez_tool(requires_approval=rows)
    async def outer(number: int) -> Any:
        RAN.append("outer")
        run = current_run()
        assert run is not None
        return str(await Pipeline([read], sinks=run.sinks).run(ToolCall("read", {"number": number}, "inner"), run))

    return Toolset([read, send, outer])


def changes(found: Replay) -> list[tuple[str, str]]:
    return [(one.call.tool, one.change) for one in found.differences]


@pytest.mark.processes
async def test_calls_of_a_program_are_replayed_with_what_flows_into_them(tmp_path: Path) -> None:
    code = "to = read(1).split()[-1]\nsend(to, 'hello')\nsend('ann@home.example', 'hello')"
    with SqliteSink(tmp_path / "a.db") as sink:
        run = Run(features=[Provenance()], sinks=(sink,))
        run.add_user_message("read order 1 and tell ann@home.example")
        result = await Toolkit(shop()).execute_async(code, run=run)
        log = sink.log()
    assert result.paused is not None
    RAN.clear()

    same = await replay(log, shop(), provenance=Provenance())
    free = await replay(log, shop(), provenance=Provenance(dry_run=True))

    assert (same.calls, same.differences, same.undecided, same.remarks) == (2, (), (), ())
    assert changes(free) == [("send", "waits for approval -> runs")]
    assert RAN == []


@pytest.mark.processes
async def test_what_a_program_passed_on_without_a_policy_is_not_told(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "a.db") as sink:
        run = Run(sinks=(sink,))
        await Toolkit(shop()).execute_async("send(read(1).split()[-1], 'hello')", run=run)
        log = sink.log()

    found = await replay(log, shop(), provenance=Provenance())

    assert found.differences == ()
    assert [(one.call.tool, "without a policy" in one.why) for one in found.undecided] == [("send", True)]
    assert found.remarks == (
        "no word of a user is on record for 1 of 1 run: what a user wrote there counts as the model's",
    )


async def test_a_call_inside_a_tool_is_not_made_where_the_tool_would_not_run(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "a.db") as sink:
        await Pipeline(shop(), sinks=[sink]).run(ToolCall("outer", {"number": 1}), Run(sinks=(sink,)))
        log = sink.log()

    same, asked = await replay(log, shop()), await replay(log, shop(rows=True))

    assert (same.calls, same.differences) == (2, ())
    assert changes(asked) == [("outer", "runs -> waits for approval"), ("read", "runs -> not made")]


async def test_what_the_host_decided_is_as_it_was(tmp_path: Path) -> None:
    given = HookSet()

    async def closed(call: Any, input: Any) -> Any:
        return Reject("the shop is closed")

    given.register(closed)
    with SqliteSink(tmp_path / "a.db") as sink:
        pipeline = Pipeline(shop(), sinks=[sink])
        run = Run(limits=CallLimits(per_tool={"read": 1}))
        await pipeline.run(ToolCall("read", {"number": 1}), run)
        await pipeline.run(ToolCall("read", {"number": 2}), run)
        await pipeline.run(ToolCall("send", {"to": "ann"}), run.view(available=frozenset({"read"})))
        await pipeline.admit(ToolCall("send", {"to": "ann"}), run, hooks=given)
        log = sink.log()

    same, asked = await replay(log, shop()), await replay(log, shop(needs_approval=True))

    assert (same.calls, same.differences, same.undecided) == (4, (), ())
    assert (asked.differences, asked.undecided) == ((), ())


def login(fails: bool = False) -> Toolset:
    @ez_tool
    def log_in(user: str, password: SecretStr) -> str:
        RAN.append("log_in")
        return user

    @ez_tool
    def look(page: str) -> str:
        RAN.append("look")
        return page

    hooks = HookSet()

    async def needs_deps(call: Any, input: Any) -> Any:
        raise AttributeError("no deps")

    if fails:
        hooks.on("look")(needs_deps)
    return Toolset([log_in, look]).with_hooks(hooks)


async def kept(path: Path, *calls: ToolCall) -> EventLog:
    with SqliteSink(path) as sink:
        for call in calls:
            await Pipeline(login(), sinks=[sink]).run(call, Run("run_1"))
        return sink.log()


async def test_what_the_record_lacks_is_said_and_counted(tmp_path: Path) -> None:
    secret = ToolCall("log_in", {"user": "ann", "password": "tell nobody"})
    log = await kept(tmp_path / "a.db", secret, ToolCall("find", "{}"), ToolCall("look", '{"page": "a"}'))

    @ez_tool
    def find() -> str:
        return "found"

    tools: list[Tool[..., Any]] = [find, *(entry.tool for entry in login())]
    found = await replay(log, tools)

    assert found.differences == ()
    assert [(one.call.tool, one.why) for one in found.undecided] == [
        ("log_in", "the record hides a secret in its arguments (password)"),
        ("find", "the record has no arguments of it"),
    ]


async def test_a_hook_that_fails_only_here_tells_nothing(tmp_path: Path) -> None:
    log = await kept(tmp_path / "a.db", ToolCall("look", '{"page": "a"}'))

    asked, unasked = await replay(log, login(fails=True)), await replay(log, login(fails=True), asks_hooks=False)

    assert [(one.call.tool, one.now, "no deps" in one.why) for one in asked.undecided] == [("look", None, True)]
    assert (asked.differences, unasked.differences, unasked.undecided) == ((), (), ())


async def test_a_call_that_goes_on_is_not_told(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "a.db") as sink:
        made = await Pipeline(shop(), sinks=[sink]).admit(ToolCall("read", {"number": 1}), Run())
        assert not isinstance(made, Suspended)
        log = sink.log()

    found = await replay(log, shop())

    assert [one.change for one in found.undecided] == ["not known -> undecided"]


async def test_whole_runs_are_replayed_from_a_time_on_or_of_the_latest_calls(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "a.db") as sink:
        pipeline = Pipeline(shop(), sinks=[sink])
        for run in (Run("run_1"), Run("run_2")):
            for number in (1, 2):
                await pipeline.run(ToolCall("read", {"number": number}, f"call_{number}"), run)
        log = sink.log()
    (last,) = log.activities(limit=1)

    latest = await replay(log, shop(), limit=1)
    since = await replay(log, shop(), since=datetime.fromisoformat(last.started_at))

    assert (latest.calls, latest.runs) == (2, 1)
    assert (since.calls, since.runs) == (2, 1)


async def test_arguments_that_an_approver_gave_are_taken_again(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "a.db") as sink:
        pipeline, run = Pipeline(shop(needs_approval=True), sinks=[sink]), Run()
        asked = await pipeline.run(ToolCall("send", {"to": "anm", "text": "hello"}), run)
        assert isinstance(asked, Suspended)
        await pipeline.run(asked, run, grant=asked.request.grant("carol", override_args={"to": "ann"}))
        log = sink.log()

    same, free = await replay(log, shop(needs_approval=True)), await replay(log, shop())

    assert (same.differences, same.undecided) == ((), ())
    assert changes(free) == [("send", "runs once approved -> runs")]


async def test_a_call_that_was_said_to_be_done_is_no_difference(tmp_path: Path) -> None:
    @ez_tool(requires_approval=True)
    def refund(order: int) -> str:
        raise RuntimeError("it is not executed")

    with SqliteSink(tmp_path / "a.db") as sink:
        pipeline = Pipeline([refund], sinks=[sink])
        await answered_in_doubt(pipeline, lambda request: request.done("refunded", "ann"))
        log = sink.log()

    found = await replay(log, [refund])

    assert (found.calls, found.differences, found.undecided) == (1, (), ())
