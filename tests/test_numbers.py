"""Every number that a host gives: a truth value, and one that is too small, are refused where they are given.

The parameters are those of `tests/public_api.txt`. A new one stands in `GIVEN`, which gives it, or among the `VALUES`.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from fnmatch import fnmatch
from inspect import isasyncgen, isawaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolcrib.adapters import mcp_client, mcp_server
from toolcrib.adapters.dbos import (
    Client,
    DurableProgram,
    Engine,
    Placement,
    Queue,
    RetryPolicy,
    TurnHandle,
    fork_work,
    list_work,
)
from toolcrib.approvals import GrantForm, MemoryApprovalStore, stored_approver
from toolcrib.approvers import ApproverRule
from toolcrib.budgets import Limit, TokenPrice
from toolcrib.calls import ApprovalRequest, Bound
from toolcrib.code import EarlyToolkit, ExecutionResult, Toolkit
from toolcrib.console import ConsoleOptions
from toolcrib.console.openid import OpenIDLogin
from toolcrib.database import Database
from toolcrib.openapi import Options as ApiOptions
from toolcrib.pipeline import CallLimits, Channel, Run
from toolcrib.record import Activity, EventLog, list_runs, read_calls
from toolcrib.results import MemoryResultStore
from toolcrib.rounds import ModelJudge, Retry, Session, ToolRoundPlan
from toolcrib.sandbox import (
    CommandWorkers,
    MontySandbox,
    ProcessSandbox,
    ProgramQueue,
    SandboxLimits,
    SubprocessSandbox,
    WorkerSandbox,
)
from toolcrib.serving import FrontEndLimits, GuardPolicy
from toolcrib.serving.http import HttpLimits
from toolcrib.serving.oauth import AuthorizationServer, OpenIDProvider
from toolcrib.testing import FakeClock, ScriptedModel
from toolcrib.tools import ToolOptions, ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, ContextPool, ContextQueue, Turn

_NUMBER = re.compile(r"\b(int|float|Decimal|timedelta)\b")
_SEVERAL = re.compile(r"Callable|Mapping|dict|Sequence|list|tuple|Iterable|set\[|Collection|Annotated")


@ez_tool
async def work() -> None: ...


def log() -> EventLog:
    return EventLog(lambda query, values: [])


def no_client() -> Any:
    return Client.__new__(Client)


def plan() -> Any:
    state = SimpleNamespace(require_open=lambda: None)
    made = ToolRoundPlan.__new__(ToolRoundPlan)
    made._state = state  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    return made


PROVIDER = OpenIDProvider("https://auth.example", "client")
REQUEST = ApprovalRequest("ask_1", "call_1", "pay", {}, "d")

GIVEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "adapters.dbos.Client.__init__": lambda n: Client("sqlite:///work.db", **n),
    "adapters.dbos.Client.result": lambda n: no_client().result("w", **n),
    "adapters.dbos.Client.stream": lambda n: no_client().stream("w", "k", **n),
    "adapters.dbos.DurableProgram.result": lambda n: DurableProgram("p", no_client()).result(**n),
    "adapters.dbos.DurableProgram.settled": lambda n: DurableProgram("p", no_client()).settled(**n),
    "adapters.dbos.Engine.__init__": lambda n: Engine("work.db", **n),
    "adapters.dbos.Placement.__init__": lambda n: Placement("w", **n),
    "adapters.dbos.Queue.__init__": lambda n: Queue("q", **n),
    "adapters.restate.RetryPolicy.__init__": lambda n: RetryPolicy(**{"attempts": 2, **n}),
    "adapters.dbos.TurnHandle.__init__": lambda n: TurnHandle(no_client(), "t", **n),
    "adapters.dbos.fork_work": lambda n: fork_work(no_client(), "id", **n),
    "adapters.dbos.list_work": lambda n: list_work(no_client(), **n),
    "adapters.mcp_client.Options.__init__": lambda n: mcp_client.Options(**n),
    "adapters.mcp_server.HttpOptions.__init__": lambda n: mcp_server.HttpOptions(**n),
    "adapters.mcp_server.ServerOptions.__init__": lambda n: mcp_server.ServerOptions(**n),
    "adapters.mcp_server.TaskOptions.__init__": lambda n: mcp_server.TaskOptions(**n),
    "approvals.GrantForm.grant": lambda n: GrantForm().grant(REQUEST, "ann", **n),
    "approvals.GrantForm.schema": lambda n: GrantForm.schema(REQUEST, **n),
    "approvals.LedgerStore.wait": lambda n: MemoryApprovalStore().wait("ask_1", **n),
    "approvals.stored_approver": lambda n: stored_approver(MemoryApprovalStore(), **n),
    "approvers.ApproverRule.__init__": lambda n: ApproverRule(name="r", **n),
    "budgets.TokenPrice.__init__": lambda n: TokenPrice(**{"input": 1, "output": 1, "currency": "USD", **n}),
    "budgets.Limit.__init__": lambda n: Limit(**({} if n.keys() & {"calls", "spend"} else {"calls": 1}), **n),
    "calls.ApprovalRequest.always": lambda n: REQUEST.always("ann", **n),
    "calls.Bound.between": lambda n: Bound.between(**n),
    "code.EarlyToolkit.__init__": lambda n: EarlyToolkit(Toolkit([work]), Run(), **n),
    "code.ExecutionResult.text": lambda n: ExecutionResult(success=True).text(**n),
    "code.Toolkit.as_tool": lambda n: Toolkit([work]).as_tool(**n),
    "code.Toolkit.execute": lambda n: Toolkit([work]).execute("1", **n),
    "code.Toolkit.execute_async": lambda n: Toolkit([work]).execute_async("1", **n),
    "code.Toolkit.prompt": lambda n: Toolkit([work]).prompt(**n),
    "code.Toolkit.tool_schema": lambda n: Toolkit([work]).tool_schema(**n),
    "console.ConsoleOptions.__init__": lambda n: ConsoleOptions(**n),
    "console.openid.OpenIDLogin.__init__": lambda n: OpenIDLogin(
        PROVIDER, "https://here.example", approvers=["a"], **n
    ),
    "database.Database.engine": lambda n: Database.named("work.db").engine(**n),
    "openapi.Options.__init__": lambda n: ApiOptions(**n),
    "openapi.toolset": lambda n: ApiOptions(**n),
    "pipeline.CallLimits.__init__": lambda n: CallLimits(**n),
    "pipeline.Channel.__init__": lambda n: Channel(**n),
    "record.EventLog.activities": lambda n: log().activities(**n),
    "record.EventLog.events": lambda n: log().events(Activity.__new__(Activity), **n),
    "record.EventLog.since": lambda n: log().since(**{"position": 0, **n}),
    "record.list_runs": lambda n: list_runs(log(), **n),
    "record.read_calls": lambda n: read_calls(log(), **n),
    "results.ResultStore.__init__": lambda n: MemoryResultStore(**n),
    "rounds.ModelJudge.__init__": lambda n: ModelJudge(ScriptedModel(), "All may pass.", model_name="m", **n),
    "rounds.Retry.__init__": lambda n: Retry(**n),
    "rounds.Session.run": lambda n: Session(ScriptedModel("hi")).say("hi").run(**n),
    "rounds.Session.run_sync": lambda n: Session(ScriptedModel("hi")).say("hi").run_sync(**n),
    "rounds.ToolRoundPlan.run_pending": lambda n: plan().run_pending(**n),
    "sandbox.CommandWorkers.__init__": lambda n: CommandWorkers(["true"], **n),
    "sandbox.MontySandbox.__init__": lambda n: MontySandbox(**n),
    "sandbox.ProcessSandbox.__init__": lambda n: ProcessSandbox(**n),
    "sandbox.ProgramQueue.__init__": lambda n: ProgramQueue(**n),
    "sandbox.SandboxLimits.__init__": lambda n: SandboxLimits(**n),
    "sandbox.SubprocessSandbox.__init__": lambda n: SubprocessSandbox(**n),
    "sandbox.WorkerSandbox.__init__": lambda n: WorkerSandbox(CommandWorkers(["true"]), "there", **n),
    "serving.FrontEndLimits.__init__": lambda n: FrontEndLimits(**n),
    "serving.GuardPolicy.__init__": lambda n: GuardPolicy(**n),
    "serving.http.HttpLimits.__init__": lambda n: HttpLimits(**n),
    "serving.oauth.AuthorizationServer.__init__": lambda n: AuthorizationServer("https://auth.example", **n),
    "testing.FakeClock.__init__": lambda n: FakeClock(**n),
    "tools.ToolOptions.__init__": lambda n: ToolOptions(**n),
    "toolsets.Toolset.__init__": lambda n: Toolset([work], **n),
    "toolsets.Toolset.with_timeout": lambda n: Toolset([work]).with_timeout(**n),
    "adapters.mcp_client.ServerToolset.with_timeout": lambda n: mcp_client.connect("http://[::1]:9/mcp").with_timeout(
        **n
    ),
    "turns.Agent.run": lambda n: Agent("a", "An agent.", [work]).run(**n),
    "turns.ContextPool.__init__": lambda n: ContextPool(**n),
    "turns.ContextPool.branch": lambda n: ContextPool().branch(**n),
    "turns.ContextQueue.__init__": lambda n: ContextQueue(**n),
    "turns.ContextQueue.branch": lambda n: ContextQueue().branch(**n),
    "turns.ContextQueue.history": lambda n: ContextQueue().history(**n),
    "turns.Turn.__init__": lambda n: Turn(work, **n),
}
"""Gives the numbers of one callable, by name; the rest of its arguments are fit."""

FROM_ZERO = {
    *("priority", "delay", "grace", "question_wait", "grace_seconds", "wait", "after", "retries", "total", "calls"),
    *(
        "port",
        "low",
        "high",
        "spend",
        "input",
        "output",
        "cached",
        "cache_written",
        "max_retries",
        "times",
        "first",
        "longest",
        "remember_seconds",
        "speed",
    ),
    *("spares", "sleep_time", "artifacts", "last", "search", "start"),
}
"""Parameters that may be 0."""

ANY_SIGN = {"low", "high", "server", "per", "expires", "spend"}

ANY_SIZE = {"low", "high", "spend", "input", "output", "cached", "cache_written"}
"""Amounts, which are no seconds."""

CURSORS = {"record.EventLog.activities.before", "record.EventLog.events.after", "record.EventLog.since.position"}
"""Positions that the log itself gave."""

VALUES = (
    # what is checked by another of these, which takes it
    *(
        "adapters.dbos.DurableAgent.call",
        "adapters.dbos.DurableAgent.put",
        "adapters.dbos.DurableAgent.schedule",
        "adapters.dbos.WorkOperator.*",
        "code.ProgramSession.*",
    ),
    *("console.DurableWork.*", "record.EventLog.changed", "record.EventLog.names", "replay.replay"),
    *(
        "approvals.WaitableApprovalStore.wait",
        "toolsets.ToolEntry.*",
        "tools.Place.*",
        "database.PostgresTables.__init__",
    ),
    # an error, a line of a record, a status, an event, a part of a reply, and what else this library makes itself
    *(
        "errors.*",
        "record.*.__init__",
        "adapters.dbos.Work.__init__",
        "adapters.dbos.ScheduledWork.__init__",
        "adapters.dbos.Worker.__init__",
    ),
    *("adapters.mcp_client.Progress.__init__", "adapters.mcp_client.ServerStatus.__init__", "approvals.SavedSession.*"),
    *("budgets.Charge.*", "budgets.Overrun.*", "budgets.UsageStore.*", "calls.ApprovalRequest.__init__"),
    "calls.RequiredApprovers.__init__",
    *(
        "calls.Grant.__init__",
        "calls.GrantUse.__init__",
        "code.CallEnded.*",
        "code.Finding.*",
        "database.TablesVersion.*",
    ),
    *("formats.*", "replay.Replay.*", "rounds.Usage.*", "sandbox.ProgramError.*", "sandbox.SandboxResult.*"),
    *(
        "sandbox.TypeProblem.*",
        "serving.frameworks.*",
        "serving.oauth.CheckedToken.*",
        "serving.oauth.LoggedIn.*",
        "tools.FoundValues.*",
    ),
    "adapters.restate.*",  # which its own tests give wrong numbers
    *("code.*Journal.write_lines", "database.LineTable.append"),
    "durable.*",
    *("provenance.*", "jsonschema.*", "toolsets.LiveTools.*", "serving.oauth.LoggedIn.*"),
    # seams between the rooms, which hosts do not call
    *(
        "adapters.dbos.Engine.put_off",
        "adapters.dbos.RetryPolicy.pause_after",
        "adapters.dbos.serve_health",
        "calls.ResultReader.*",
        "calls.Hiding.hide*",
        "calls.cut",
        "calls.lenient*",
    ),
    *("calls.record_of", "calls.render_value", "clock.*", "credentials.*", "database.limit_answers"),
    *(
        "pipeline.Pipeline.recover",
        "pipeline.Run*.retry",
        "code.EarlyToolkit.feed",
        "record.Trace.*",
        "record.ids_like",
        "results.keep_result",
    ),
    *("results.ResultStore.piece*", "rounds.Retry.pause_after", "sandbox.*.take", "sandbox.ProgramQueue.*"),
    *("sandbox.Stopwatch.*", "sandbox.parse_program", "sandbox.read_files", "schema.RunContext.progress"),
    *("serving.Open*", "serving.PendingApprovals.*", "serving.Principals.*", "serving.check_countable"),
    *("serving.http.*", "testing.FakeClock.*", "tools.Body.*", "tools.Deadline.*", "tools.ask_person"),
    *("tools.person_answer", "turns.AgentRun.concurrently", "code.EarlyToolkit.feed"),
    *("record.EventLog.all", "record.EventLog.a[nr]*", "record.EventLog.inside", "record.EventLog.quiet_since"),
    # what a model gives, checked by the schema of the tool
    *("results.ReadResult.call", "toolsets.search.SearchTools.call"),
)


def parameters() -> Iterator[tuple[str, str, str]]:
    """Return each number among the parameters of public callables: the callable, the parameter, and its type."""
    for line in Path(__file__).with_name("public_api.txt").read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"toolcrib\.(\S+?)\((.*)\) -> .*", line)
        for part in re.split(r", (?=\w+: |\*)", found[2]) if found else ():
            name, _, kind = part.partition(": ")
            kind = kind.partition(" = ")[0]
            if found and _NUMBER.search(kind) and not _SEVERAL.search(kind):
                yield found[1], name, kind


PARAMETERS = sorted({*parameters()})
CHECKED = [each for each in PARAMETERS if each[0] in GIVEN and f"{each[0]}.{each[1]}" not in CURSORS]


def wrong_values(owner: str, name: str, kind: str) -> list[Any]:
    """Return what a parameter does not take."""
    if kind == "timedelta":
        return [True, 5, timedelta(0), timedelta(seconds=-1)]
    from_zero = name in FROM_ZERO or owner.endswith(".wait")
    wrong: list[Any] = [] if "bool" in kind else [True]
    if name not in ANY_SIGN:
        wrong += [-1] if from_zero else [0, -1]
    wrong += [] if "str" in kind or "Decimal" in kind else ["3"]
    if "float" not in kind:
        return [*wrong, 1.5, math.nan, math.inf]
    return [*wrong, math.nan, math.inf, *([] if name in ANY_SIZE else [10**400])]


async def use(made: Any) -> None:
    if isawaitable(made):
        await made
    elif isasyncgen(made):
        await anext(made)


def test_every_number_of_a_public_callable_is_known() -> None:
    unknown = {name for name, _, _ in PARAMETERS if name not in GIVEN and not any(fnmatch(name, v) for v in VALUES)}

    assert len(CHECKED) > 100
    assert unknown == set()
    assert GIVEN.keys() <= {name for name, _, _ in PARAMETERS}


@pytest.mark.parametrize(("owner", "name", "kind"), CHECKED, ids=lambda value: str(value).removesuffix(".__init__"))
def test_a_wrong_number_is_refused_by_its_name(
    owner: str, name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in wrong_values(owner, name, kind):
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            asyncio.run(use(GIVEN[owner]({name: value})))
