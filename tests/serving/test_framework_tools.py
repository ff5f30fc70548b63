"""Tools inside an agent of another framework, where the framework is a few lines of a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.approvals import AgentContext, MemoryApprovalStore, MemorySuspendedCalls, SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Denial, Failed, Grant, Media, Rejected, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Run
from toolcrib.provenance import Provenance
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, answer_of, is_as_seen, media_at
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

CALL = ToolCall("book", '{"city": "Oslo"}', "c1")


def booking(ran: list[str], **options: Any) -> Any:
    """Return a tool that notes what it was called with."""

    @ez_tool(**options)
    async def book(city: str) -> str:
        """Book a room."""
        ran.append(city)
        return f"booked {city}"

    return book


def tools(tool: Any, run: Any = None, suspended: Any = None, sinks: Any = ()) -> FrameworkTools:
    """Return a tool inside a framework."""
    return FrameworkTools([tool], FrameworkRuns("test", run, suspended), sinks)


def grant(request: ApprovalRequest) -> Any:
    """Approve a request."""
    return request.grant("ann")


async def test_a_call_that_was_asked_about_is_not_asked_about_again() -> None:
    ran: list[str] = []
    sink = RecordingSink()
    inside = tools(booking(ran), sinks=[sink])

    asked = [await inside.admit(CALL, Run()) for _ in range(2)]
    outcome = await inside.call(CALL, Run())

    assert asked == [None, None]
    assert isinstance(outcome, Completed)
    assert (ran, sink.kinds()) == (["Oslo"], ["received", "started", "ended"])


async def test_what_was_refused_before_the_tool_is_the_outcome() -> None:
    inside, run = tools(booking([])), Run(limits=CallLimits(total=0))

    asked = await inside.admit(CALL, run)
    outcome = await inside.call(CALL, run)

    assert asked is None
    assert isinstance(outcome, Rejected)


@pytest.mark.parametrize("ask", [True, False], ids=["asked first", "called"])
async def test_a_suspended_call_goes_on_when_it_is_made_again(ask: bool) -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran, requires_approval=True)), Run()

    waiting = await (inside.admit(CALL, run) if ask else inside.call(CALL, run))
    still = await inside.call(CALL, run)
    assert isinstance(waiting, Suspended)
    assert isinstance(still, Suspended)
    assert ran == []
    done = await inside.call(CALL, run, answer=grant)

    assert isinstance(done, Completed)
    assert (still.request.id, ran) == (waiting.request.id, ["Oslo"])


async def test_a_call_that_waits_is_not_taken_through_the_gates_again() -> None:
    sink = RecordingSink()
    inside, run = tools(booking([], requires_approval=True), sinks=[sink]), Run()

    asked = [await inside.admit(CALL, run) for _ in range(2)]

    assert asked[0] is not None
    assert asked[1] is not None
    assert asked[0].request.id == asked[1].request.id
    assert sink.kinds().count("received") == 1


async def test_a_call_that_nobody_has_answered_waits() -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran, requires_approval=True)), Run()
    await inside.call(CALL, run)

    outcome = await inside.call(CALL, run, answer=lambda request: None)

    assert isinstance(outcome, Suspended)
    assert ran == []


@pytest.mark.parametrize(
    "other",
    [ToolCall("book", '{"city": "Rome"}', "c1"), ToolCall("book", '{"city": "Oslo"}', "c2")],
    ids=["arguments", "id"],
)
async def test_another_call_is_none_that_waits(other: ToolCall) -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran, requires_approval=True)), Run()
    await inside.call(CALL, run)

    outcome = await inside.call(other, run, answer=grant)

    assert isinstance(outcome, Suspended)
    assert ran == []


@pytest.mark.parametrize("option", ["principal", "conversation_id"])
async def test_a_call_of_another_principal_or_conversation_is_none_that_waits(option: str) -> None:
    ran: list[str] = []
    inside = tools(booking(ran, requires_approval=True))
    await inside.call(CALL, Run().view(**{option: "ann"}))

    found = await inside.find_suspended(CALL, Run().view(**{option: "ben"}))

    assert found is None


async def test_an_answered_call_is_executed_once() -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran, requires_approval=True)), Run()
    await inside.call(CALL, run)

    outcomes = [await inside.call(CALL, run, answer=grant) for _ in range(2)]

    assert isinstance(outcomes[0], Completed)
    assert isinstance(outcomes[1], Failed)
    assert (outcomes[1].code, ran) == ("approval_error", ["Oslo"])


async def test_another_process_finds_the_call_beside_the_approval_store(tmp_path: Any) -> None:
    ran: list[str] = []

    def process() -> tuple[FrameworkTools, Run]:
        run = Run(approvals=SqliteApprovalStore(tmp_path / "approvals.db"))
        return tools(booking(ran, requires_approval=True)), run

    outcomes: list[Any] = []
    for answer in (None, grant, grant):
        inside, run = process()
        outcomes.append(await inside.call(CALL, run, answer=answer))

    assert [type(outcome) for outcome in outcomes] == [Suspended, Completed, Completed]
    assert ran == ["Oslo"]


async def test_a_store_that_the_host_gives_is_used() -> None:
    store = MemorySuspendedCalls()
    first = tools(booking([], requires_approval=True), suspended=store)
    second = tools(booking([], requires_approval=True), suspended=store)

    await first.call(CALL, Run(approvals=MemoryApprovalStore()))

    assert await second.find_suspended(CALL, Run()) is not None


async def test_a_call_that_a_framework_replays_is_made_once() -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran)), Run()

    outcomes = [await inside.call_once(CALL, run) for _ in range(2)]

    assert outcomes[0] is outcomes[1]
    assert ran == ["Oslo"]


async def test_a_suspended_call_that_is_replayed_is_not_taken_for_its_outcome() -> None:
    ran: list[str] = []
    inside, run = tools(booking(ran, requires_approval=True)), Run()

    first = await inside.call_once(CALL, run)
    done = await inside.call_once(CALL, run, answer=grant)
    again = await inside.call_once(CALL, run, answer=grant)

    assert isinstance(first, Suspended)
    assert done is again
    assert ran == ["Oslo"]


async def test_a_denial_is_recorded_and_no_grant_opens_the_call_any_more() -> None:
    ran: list[str] = []
    sink = RecordingSink()
    inside, run = tools(booking(ran, requires_approval=True), sinks=[sink]), Run(principal="ann")
    waiting = await inside.call(CALL, run)
    assert isinstance(waiting, Suspended)

    outcome = await inside.deny(waiting, waiting.request.deny(message="no", by="ben"), Run())
    later = await inside.call(CALL, run, answer=grant)

    assert isinstance(outcome, Rejected)
    assert sink.records[1].principal == "ann"
    assert isinstance(later, Failed)
    with pytest.raises(ApprovalError):
        await inside.deny(waiting, waiting.request.deny(message="no", by="ben"), run)
    assert ran == []


async def test_a_call_that_no_framework_makes_again_is_taken_up_once_by_its_request() -> None:
    ran: list[str] = []
    inside = tools(booking(ran, requires_approval=True), Run(principal="ann"))
    run = inside.runs.find("r", None)
    waiting = await inside.call(CALL, run)
    assert isinstance(waiting, Suspended)
    request = waiting.request

    unanswered = await inside.take_up(request.id, None, run)
    done = await inside.take_up(request.id, request.grant("ann"), run)

    assert isinstance(unanswered, tuple)
    assert isinstance(unanswered[1], Suspended)
    assert isinstance(done, tuple)
    assert (done[0].id, done[1].text(), ran) == (request.id, "booked Oslo", ["Oslo"])
    with pytest.raises(ApprovalError):
        await inside.take_up(request.id, request.grant("ann"), run)
    assert await inside.take_up("another", request.grant(), run) is None
    assert await inside.take_up(request.id, request.grant(), run.view(principal="ben")) is None
    assert await tools(booking([], name="other"), run).take_up(request.id, request.grant(), run) is None


async def test_values_of_a_streaming_tool_are_reported() -> None:
    @ez_tool
    async def count() -> Any:
        """Count."""
        yield 1
        yield 2

    reported: list[Any] = []

    async def report(value: Any) -> None:
        reported.append(value)

    outcome = await tools(count).call(ToolCall("count"), Run(), report=report)

    assert isinstance(outcome, Completed)
    assert (outcome.value, reported) == ([1, 2], [1, 2])


async def test_a_tool_is_shown_where_it_may_be_called() -> None:
    inside = tools(booking([]))

    assert await inside.shows("book", Run())
    assert not await inside.shows("book", Run(available=frozenset()))


# --- runs


def test_a_run_is_opened_once_for_each_run_of_an_agent() -> None:
    opened: list[Any] = []

    def open_run(context: Any) -> Run:
        opened.append(context)
        return Run(principal=context)

    runs = FrameworkRuns("test", open_run, None)

    found = [runs.find(key, key, run_id="r", deps="theirs") for key in ("ann", "ben", "ann")]

    assert [run.principal for run in found] == ["ann", "ben", "ann"]
    assert [run.deps for run in found] == ["theirs"] * 3
    assert (found[0].run is found[2].run, opened) == (True, ["ann", "ben"])


def test_the_hosts_deps_come_before_the_frameworks() -> None:
    run = FrameworkRuns("test", Run(deps="ours"), None).find(1, None, run_id="r", deps="theirs")

    assert (run.deps, run.channel.entry) == ("ours", "test")


def test_a_new_run_has_the_frameworks_id() -> None:
    assert FrameworkRuns("test", None, None).find(1, None, run_id="trace_1").id == "trace_1"


@pytest.mark.parametrize(
    ("run", "asks"),
    [
        (None, False),
        (Run(), False),
        (Run(features=[Provenance()]), True),
        (Run(deps=AgentContext(["book"])), True),
        (lambda context: Run(), True),
    ],
    ids=["none", "plain", "provenance", "deps", "function"],
)
def test_a_run_that_may_ask_is_known(run: Any, asks: bool) -> None:
    assert FrameworkRuns("test", run, None).may_ask is asks


# --- policies of guards


async def outcome_under(policy: GuardPolicy) -> Any:
    """Return what comes of a call of a guarded tool."""
    guarded = policy.around(Toolset([booking([])]))
    return await FrameworkTools(guarded, FrameworkRuns("test", policy.run, None), policy.sinks).call(CALL, Run())


@pytest.mark.parametrize(
    ("approve", "asks"),
    [(False, False), (True, True), (["book"], True), (["other"], False), (lambda args, ctx: args["city"], True)],
)
async def test_a_policy_says_which_calls_need_approval(approve: Any, asks: bool) -> None:
    assert isinstance(await outcome_under(GuardPolicy(approve=approve)), Suspended) is asks


async def test_a_policy_has_decision_hooks() -> None:
    hooks = HookSet()

    @hooks.on("book")
    async def decide(call: Any, input: Any) -> Any:
        raise RuntimeError("shut")

    outcome = await outcome_under(GuardPolicy(hooks=hooks))

    assert isinstance(outcome, Failed)


@pytest.mark.parametrize("field", ["approve", "leave"])
def test_one_name_is_no_list_of_names(field: str) -> None:
    with pytest.raises(TypeError, match=rf"{field}.*\['delete'\]|{field}=\['delete'\]"):
        GuardPolicy(**{field: "delete"})  # type: ignore[arg-type]


# --- media


@pytest.mark.parametrize(
    ("url", "media"),
    [
        ("data:image/gif;base64,ZG90", Media("image/gif", b"dot")),
        ("data:,a%20b", Media("text/csv", b"a b")),
        ("https://example.org/x.csv", Media("text/csv", url="https://example.org/x.csv")),
        ("data:image/gif;base64,%%", "data:image/gif;base64,%%"),
        ("no url", "no url"),
    ],
)
def test_a_url_is_media(url: str, media: Any) -> None:
    assert media_at(url, "text/csv") == media


# --- answers in the words of a framework


REQUEST = ApprovalRequest("ask_1", "c1", "book", {"city": "Oslo"}, "digest", {"city": "Oslo"})


@pytest.mark.parametrize(
    ("said", "approved"),
    [
        (True, True),
        ({"type": "approve"}, True),
        ({"decisions": [{"type": "approve"}]}, True),
        (REQUEST.grant("ann"), True),
        (REQUEST.grant("ann").to_dict(), True),
        (False, False),
        ([{"type": "reject"}], False),
        (REQUEST.deny(message="no"), False),
        (REQUEST.deny(message="no").to_dict(), False),
    ],
)
def test_what_a_person_said_is_an_answer(said: Any, approved: bool) -> None:
    answer = answer_of(REQUEST, said)

    assert isinstance(answer, Grant if approved else Denial)
    assert answer.call_id == "c1"


def test_an_edit_is_a_grant_for_other_arguments() -> None:
    answer = answer_of(REQUEST, {"type": "edit", "edited_action": {"name": "book", "args": {"city": "Rome"}}})

    assert isinstance(answer, Grant)
    assert answer.override_args == {"city": "Rome"}


@pytest.mark.parametrize("form", [lambda said: said, lambda said: [said], lambda said: {"decisions": [said]}])
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"type": "edit", "edited_action": {"name": "cancel", "args": {"city": "Rome"}}}, "reject the call, with"),
        ({"type": "respond", "message": "no"}, '"approve", "edit", or "reject"'),
    ],
)
def test_a_decision_that_no_answer_is_names_what_to_give(form: Any, said: Any, problem: str) -> None:
    with pytest.raises(ApprovalError, match=problem):
        answer_of(REQUEST, form(said))


@pytest.mark.parametrize("type", ["approve", "edit", "reject"])
@pytest.mark.parametrize("named", ["name", "tool_call_id", "call_id", "request_id"])
def test_a_decision_about_another_call_is_no_answer(type: str, named: str) -> None:
    said: dict[str, Any] = {"type": type, named: "other", **({"edited_action": {"args": {}}} if type == "edit" else {})}

    with pytest.raises(ApprovalError, match="names another"):
        answer_of(REQUEST, said)


@pytest.mark.parametrize(
    "said",
    [
        *(None, "yes", 1, {}, {"type": "edit"}, {"decisions": []}, [True, True]),
        *({"type": "edit", "edited_action": {"args": args}} for args in (None, "x", [1], [["city", "Rome"]], {1: 2})),
        *({"type": "approve", more: {"args": {"city": "Rome"}}} for more in ("edited_action", "args", "decisions")),
        *({"kind": kind, "call_id": "c1"} for kind in ("grant", "denial")),
    ],
)
def test_what_is_no_answer_approves_nothing(said: Any) -> None:
    with pytest.raises(ApprovalError, match="is not an answer"):
        answer_of(REQUEST, said)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({}, True),
        ({"requested": {"city": "Rome"}}, False),
        ({"in_doubt": True}, False),
        ({"origins": ({"path": "city"},)}, False),
    ],
)
def test_an_approval_of_the_frameworks_own_is_for_what_it_shows(change: Any, seen: bool) -> None:
    assert is_as_seen(replace(REQUEST, **change)) is seen
