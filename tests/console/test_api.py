"""What the page is told, and what becomes of a person's answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.console.conftest import Console
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import (
    ActivityEvent,
    ApprovalRequest,
    CallEvent,
    Completed,
    Denial,
    Done,
    Grant,
    RequiredApprovers,
    Suspended,
    ToolCall,
    now,
)
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.provenance import Provenance, memory_of
from toolcrib.record import SqliteSink
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
SCHEMA = {
    "type": "object",
    "properties": {"cents": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
    "required": ["cents"],
    "additionalProperties": False,
}


def event(call_id: str, kind: Any = "received", tool: str = "add", **data: Any) -> CallEvent:
    return CallEvent(kind, call_id, tool, f"run of {call_id}", "test", AT, data)


def request_of(call_id: str, **options: Any) -> ApprovalRequest:
    values: dict[str, Any] = {"arguments": {"cents": 5}, "digest": "d5", "principal": "bob", "parameters": SCHEMA}
    return ApprovalRequest(f"ask_{call_id}", call_id, "refund", **{**values, **options})


async def asked(console: Console, call_id: str, **options: Any) -> ApprovalRequest:
    request = request_of(call_id, **options)
    await console.store.put(request)
    return request


def answer(console: Console, request: ApprovalRequest, kind: str, **more: Any) -> Any:
    return console.post("/api/answer", {"request": request.id, "answer": kind, "name": "Ann", **more})


# --- what happened


async def test_a_call_is_told_with_its_arguments_outcome_and_decisions(console: Console, sink: SqliteSink) -> None:
    @tool()
    async def add(a: int, b: int) -> int:
        return a + b

    scope = Run("run_of_add", sinks=(sink,), principal="bob")
    await Pipeline(Toolset([add])).run(ToolCall("add", {"a": 1, "b": 2}, "told"), scope)
    sink.flush()

    found = console.get("/api/activity?source=call&id=told&run=run_of_add").json

    assert found["activity"]["status"] == "completed"
    assert found["activity"]["principal"] == "bob"
    assert [(one["label"], one["text"]) for one in found["values"]] == [
        ("Arguments", '{\n  "a": 1,\n  "b": 2\n}'),
        ("Result", "3"),
    ]
    assert [one["kind"] for one in found["events"]] == ["received", "started", "ended"]


async def test_a_call_is_told_with_the_calls_that_its_arguments_come_from(console: Console, sink: SqliteSink) -> None:
    @ez_tool(effect="none")
    async def read_file() -> str:
        return "pay to bob"

    @ez_tool(effect="send")
    async def pay(recipient: str) -> str:
        return recipient

    run = Run("run_of_pay", sinks=(sink,), features=[Provenance(dry_run=True)])
    pipeline = Pipeline(Toolset([read_file, pay]))
    await pipeline.run(ToolCall("read_file", {}, "read"), run)
    await pipeline.run(ToolCall("pay", {"recipient": "bob"}, "paid"), run)
    sink.flush()

    found = console.get("/api/activity?source=call&id=paid&run=run_of_pay").json

    [note] = found["decisions"]
    source = {"tool": "read_file", "call_id": "read"}
    assert note["origins"] == [{"path": "recipient", "value": "bob", "kind": "untrusted", **source}]


async def test_a_call_that_failed_is_shown_with_its_traceback(console: Console, sink: SqliteSink) -> None:
    @tool()
    async def broken() -> None:
        raise KeyError("no such column")

    await Pipeline([broken]).run(
        ToolCall("broken", {}, "failed"), Run("run_of_broken", sinks=(sink,), channel=Channel(errors="masked"))
    )
    sink.flush()

    view = console.get("/api/activity?source=call&id=failed").json

    values = {value["label"]: value["text"] for value in view["values"]}
    assert "the operator can look it up" in values["Error"]
    assert values["Traceback"].endswith("KeyError: 'no such column'\n")


async def test_who_said_yes_is_told(console: Console, sink: SqliteSink) -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    async def approver(request: ApprovalRequest) -> Grant:
        return request.grant("ann", message="fine")

    scope = Run("run_of_pay", sinks=(sink,), approver=approver, approvals=MemoryApprovalStore())
    await Pipeline(Toolset([pay])).run(ToolCall("pay", {}, "paid"), scope)
    sink.flush()

    approval = console.get("/api/activity?source=call&id=paid").json["approval"]

    assert (approval["approver"], approval["message"]) == ("ann", "fine")


@pytest.mark.parametrize("run_id", ["run_of_wait", "another_run"])
async def test_a_call_tells_since_when_it_waits_and_then_how_long_it_did(
    console: Console, sink: SqliteSink, run_id: str
) -> None:
    call_id = f"waited_in_{run_id}"

    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    pipeline = Pipeline([pay])
    first = Run("run_of_wait", sinks=(sink,), approvals=console.store)
    asked = await pipeline.run(ToolCall("pay", {}, call_id), first)
    assert isinstance(asked, Suspended)
    sink.flush()
    waits = console.get(f"/api/activity?source=call&id={call_id}").json
    answered = replace(asked.request.grant("ann"), at=asked.request.created_at + timedelta(minutes=5))
    await console.store.answer(answered)
    outcome = await pipeline.run(asked, Run(run_id, sinks=(sink,), approvals=console.store))
    sink.flush()

    ended = console.get(f"/api/activity?source=call&id={call_id}&run={run_id}").json

    assert waits["waits_since"] == asked.request.created_at.isoformat()
    assert isinstance(outcome, Completed)
    assert ended["waited_ms"] == 300_000
    assert "waited_ms" not in waits
    assert "waits_since" not in ended


def test_a_program_shows_the_line_it_waits_on(console: Console, sink: SqliteSink) -> None:
    source = "add(a=1)\nfor n in range(2):\n    add(a=2)\nother(a=2)\n"
    told = {"source": source, "sandbox": "ProcessSandbox", "tools": ["add", "other"]}
    sink.emit_activity(ActivityEvent("opened", "program", "prog_1", None, "program", AT, told))
    data = {"arguments": {"a": 2}, "line": 3}
    waits = CallEvent("received", "in_1", "add", "run", "code", AT, data, None, "prog_1")
    sink.emit(waits)
    sink.emit(replace(waits, call_id="in_2", data={"arguments": {"a": 2}, "line": 1}))
    sink.flush()

    found = console.get("/api/activity?source=program&id=prog_1").json

    assert found["source"]["code"] == source
    assert {call["id"]: call["lines"] for call in found["source"]["lines"]} == {"in_1": [3], "in_2": [1]}
    assert [child["id"] for child in found["children"]] == ["in_2", "in_1"]
    assert ["Tools", "add, other"] in found["facts"]


async def test_a_program_waits_when_one_of_its_calls_does(console: Console, sink: SqliteSink) -> None:
    sink.emit_activity(ActivityEvent("opened", "program", "prog_2", None, "program", AT, {"source": "refund(cents=5)"}))
    sink.emit(CallEvent("received", "in_2", "refund", "run", "code", AT, {"arguments": {"cents": 5}}, None, "prog_2"))
    sink.flush()
    await asked(console, "in_2", run_id="run")

    listed = console.get("/api/activities?source=program").json["activities"]
    call = console.get("/api/activity?source=call&id=in_2").json

    assert [one["status"] for one in listed if one["id"] == "prog_2"] == ["suspended"]
    assert call["activity"]["status"] == "suspended"
    assert call["requests"] == ["ask_in_2"]
    assert call["parent"]["id"] == "prog_2"


def test_activities_are_filtered_and_paged(console: Console, sink: SqliteSink) -> None:
    for number in range(5):
        sink.emit(event(f"page_{number}", tool="pager", arguments={"text": f"word{number}"}))
    sink.flush()

    def found(query: str) -> Any:
        return console.get(f"/api/activities?name=pager&{query}").json

    first = found("limit=3")
    rest = found(f"limit=3&before={first['activities'][-1]['first_position']}")
    assert [one["id"] for one in first["activities"]] == ["page_4", "page_3", "page_2"]
    assert first["more"]
    assert [one["id"] for one in rest["activities"]] == ["page_1", "page_0"]
    assert not rest["more"]
    assert [one["id"] for one in found("text=WORD3")["activities"]] == ["page_3"]
    assert found("status=completed")["activities"] == []
    assert len(found("status=completed&status=failed,running")["activities"]) == 5


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"since": AT + timedelta(days=1)}, ["day_2", "day_1"]),
        ({"until": AT + timedelta(days=1)}, ["day_0"]),
        ({"since": AT + timedelta(days=1), "until": AT + timedelta(days=2)}, ["day_1"]),
        ({"until": AT + timedelta(days=2), "text": "refund"}, ["day_1", "day_0"]),
        (dict.fromkeys(("since", "until"), (AT + timedelta(days=1)).astimezone().date()), ["day_1"]),
    ],
)
def test_activities_are_filtered_by_when_they_began(
    console: Console, sink: SqliteSink, asked: dict[str, Any], ids: list[str]
) -> None:
    for number in range(3):
        at = AT + timedelta(days=number)
        sink.emit(CallEvent("received", f"day_{number}", "refund", "run", "code", at, {"arguments": {}}, None, None))
    sink.flush()

    found = console.get(f"/api/activities?{urlencode({'name': 'refund', **asked})}").json["activities"]

    assert [one["id"] for one in found if one["id"].startswith("day_")] == ids


def test_a_long_value_is_cut_and_there_as_a_whole(console: Console, sink: SqliteSink) -> None:
    text = "".join(f"{number}\n" for number in range(10_000))
    sink.emit(event("long", arguments={"text": text}))
    sink.flush()

    (value,) = console.get("/api/activity?source=call&id=long").json["values"]
    path = "&".join(f"path={name}" for name in value["at"]["path"])
    whole = console.get(f"/api/value?position={value['at']['position']}&{path}")

    assert value["cut"]
    assert len(value["text"]) == 6_000
    assert json.loads(whole.body)["text"] == text
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"


def test_html_is_only_ever_data(console: Console, sink: SqliteSink) -> None:
    hostile = "<script>alert(1)</script>"
    sink.emit(event("html", tool=hostile, arguments={hostile: hostile}))
    sink.flush()

    for path in ("/api/activity?source=call&id=html", "/api/activities", "/api/events"):
        assert console.get(path).headers["content-type"] == "application/json"
    value = console.get("/api/activity?source=call&id=html").json["values"][0]["at"]
    whole = console.get(f"/api/value?position={value['position']}&path=data")
    assert whole.headers["content-type"].startswith("text/plain")


async def test_halves_of_surrogate_pairs_keep_nothing_from_being_shown(console: Console, sink: SqliteSink) -> None:
    half = "\ud83d"
    request = await asked(console, "half", arguments={half: [half]}, reason=half)
    sink.emit(event("half", arguments={half: half}))
    sink.flush()

    for path in ("/api/inbox", f"/api/request?id={request.id}", "/api/events", "/api/activity?source=call&id=half"):
        assert console.get(path).status == 200
    assert console.get(f"/api/request?id={request.id}").json["reason"] == half
    assert b"\\ud83d" in console.get(f"/api/value?request={request.id}&path=arguments").body
    await console.store.answer(request.deny(message="no", by="ann"))


@pytest.mark.parametrize("field", ["request", "requests", "id", "grant", "name", "message", "arguments", "answer"])
@pytest.mark.parametrize("path", ["check", "meant", "answer", "answers", "revoke", "work/cancel"])
async def test_a_request_of_any_shape_is_answered(console: Console, path: str, field: str) -> None:
    request = await asked(console, f"{path}-{field}")
    sent = {"request": request.id, "requests": [request.id], "answer": "deny", "name": "ann", "message": "no"}

    for odd in ("\ud83d", ["\ud83d"], {"a": "\ud83d"}, {"\ud83d": 1}, None, True, 10**400, 1.5, [], {}):
        assert console.post(f"/api/{path}", {**sent, field: odd}).status < 500


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/activity?source=call&id=unknown", 404),
        ("/api/activities?before=x", 400),
        ("/api/activities?before=99999999999999999999", 400),
        ("/api/activities?since=yesterday", 400),
        ("/api/activities?until=9999-12-31T23:59-23:00", 400),
        ("/api/value?position=1&path=none", 404),
        ("/api/value?position=99999&path=data", 404),
        ("/api/request?id=unknown", 409),
        ("/..%2f__init__.py", 404),
        ("/_app.py", 404),
    ],
)
def test_what_is_not_there_is_said_so(console: Console, path: str, status: int) -> None:
    assert console.get(path).status == status


# --- the answer


async def test_a_request_tells_what_changed_since_the_model_asked(console: Console) -> None:
    request = await asked(
        console, "diff", requested={"cents": 900}, reason="refunds need a person", metadata={"who": "x"}
    )

    shown = console.get(f"/api/request?id={request.id}").json

    assert shown["changes"] == ["cents: 900 -> 5"]
    assert shown["arguments"]["rows"] == [["cents", "5", "number"]]
    assert shown["reason"] == "refunds need a person"
    assert [(one["label"], one["text"]) for one in shown["metadata"]] == [("who", "x")]
    assert request.id in [one["id"] for one in console.get("/api/inbox").json["requests"]]


async def test_changes_that_are_cut_say_so_and_the_whole_is_there(console: Console) -> None:
    before = {f"name_{number}": "a" * 3000 for number in range(102)}
    request = await asked(console, "long_diff", requested=before, arguments={})

    shown = console.get(f"/api/request?id={request.id}").json

    assert (len(shown["changes"]), shown["changes"][-1], shown["changes_cut"]) == (101, "and 2 more", True)
    assert "characters cut" in shown["changes"][0]
    whole = console.get(f"/api/value?request={request.id}&path=requested").body
    assert whole.count(b"a" * 3000) == 102


@pytest.mark.parametrize(
    "arguments",
    [{"text": "ok" + " " * 5000 + "and send it to eve"}, {**{f"n{number}": 1 for number in range(20)}, "to": "eve"}],
)
async def test_the_line_of_a_request_says_that_it_is_cut(console: Console, arguments: Any) -> None:
    request = await asked(console, f"cut {len(arguments)}", arguments=arguments)

    (row,) = [one for one in console.get("/api/inbox?limit=200").json["requests"] if one["id"] == request.id]

    assert row["text"].endswith("…")


async def test_a_request_whose_call_is_over_says_so(console: Console, sink: SqliteSink) -> None:
    request = await asked(console, "over", run_id="run of over")
    sink.emit(event("over", "ended", outcome={"kind": "cancelled"}))
    sink.flush()

    shown = console.get(f"/api/request?id={request.id}").json

    assert (shown["state"], shown["ended"]) == ("pending", "cancelled")
    assert [one["ended"] for one in console.get("/api/inbox").json["requests"] if one["id"] == request.id] == [
        "cancelled"
    ]


async def test_a_yes_is_recorded_with_who_said_it(console: Console) -> None:
    request = await asked(console, "yes")

    reply = answer(console, request, "approve", message="go on")

    assert (reply.status, reply.json["state"]) == (200, "answered")
    given = (await console.store.show(request.id)).answer
    assert isinstance(given, Grant)
    assert (given.by, given.message, given.scope, given.digest) == ("Ann (console)", "go on", "once", "d5")


async def test_a_no_reaches_the_model_with_its_message(console: Console) -> None:
    request = await asked(console, "no")

    answer(console, request, "deny", message="not today")

    given = (await console.store.show(request.id)).answer
    assert isinstance(given, Denial)
    assert (given.by, given.message) == ("Ann (console)", "not today")


async def test_a_call_in_doubt_is_given_its_result(console: Console) -> None:
    request = await asked(console, "doubt", in_doubt=True)

    reply = answer(console, request, "done", result='{"receipt": 12}', message="looked it up")

    assert (reply.status, reply.json["in_doubt"], reply.json["answer"]["kind"]) == (200, True, "done")
    given = (await console.store.show(request.id)).answer
    assert isinstance(given, Grant)
    assert (given.done, given.by, given.message) == (Done({"receipt": 12}), "Ann (console)", "looked it up")


async def test_a_result_that_does_not_fit_the_tool_is_no_answer(console: Console) -> None:
    returns = {"type": "object", "properties": {"receipt": {"type": "integer"}}, "required": ["receipt"]}
    request = await asked(console, "doubt_misfit", in_doubt=True, returns=returns)

    reply = answer(console, request, "done", result='{"receipt": "twelve"}')

    assert (reply.status, reply.json["field"]) == (422, "result")
    assert reply.json["problems"] == ['receipt: must be an integer; got "twelve"']
    assert (await console.store.show(request.id)).answer is None


async def test_a_call_that_is_not_in_doubt_is_given_no_result(console: Console) -> None:
    request = await asked(console, "no_doubt")

    reply = answer(console, request, "done", result="7")

    assert reply.status == 409
    assert (await console.store.show(request.id)).answer is None


async def test_edited_arguments_are_granted(console: Console) -> None:
    request = await asked(console, "edited")

    reply = answer(console, request, "approve", arguments='{"cents": 12345678901234567890, "note": "x"}')

    assert reply.json["answer"]["edited"]
    given = (await console.store.show(request.id)).answer
    assert isinstance(given, Grant)
    assert given.override_args == {"cents": 12345678901234567890, "note": "x"}


async def test_an_edit_beyond_what_a_person_may_is_refused_with_the_argument_and_the_rule(console: Console) -> None:
    rule = RequiredApprovers("refunds over 1,000", {"finance": 1}, {"finance": [["bob"]]}, over={"cents": "1000"})
    request = await asked(console, "beyond", required_if_edited=(rule,))

    reply = answer(console, request, "approve", arguments='{"cents": 1001}')
    within = answer(console, request, "approve", arguments='{"cents": 1000}')

    assert (reply.status, within.status) == (409, 200)
    assert "`cents` is 1001 after the edit" in reply.json["error"]
    assert "does not meet the rule refunds over 1,000: 1 of finance (bob)" in reply.json["error"]


async def test_an_answer_that_is_sent_twice_is_none(console: Console) -> None:
    request = await asked(console, "twice")
    sent = f'{{"request": "{request.id}", "name": "Ann", "answer": "deny", "answer": "approve"}}'
    headers = {"content_type": "application/json", "x_toolcrib_csrf": console.get("/api/state").json["csrf"]}

    reply = console.ask("POST", "/api/answer", sent.encode(), **headers)

    assert (reply.status, reply.json["error"]) == (400, "answer: sent more than once; send it once")
    assert (await console.store.show(request.id)).answer is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{", "This is not JSON"),
        ('{"cents": 1, "cents": 2}', "cents: sent more than once; send it once"),
        ("[1]", "The arguments must be a JSON object"),
        ("{}", "cents: missing, it is required"),
        ('{"cents": "5"}', 'cents: must be an integer; got "5"'),
        ('{"cents": 0}', "cents: must be at least 1; got 0"),
        ('{"cents": 1, "more": 2}', "more: unknown key; the keys are cents, note"),
        ('{"cents": 1, "note": "[redacted]"}', "note: type the real value in place of the hidden one"),
    ],
)
async def test_arguments_that_do_not_fit_are_no_answer(console: Console, arguments: str, problem: str) -> None:
    request = await asked(console, f"bad{hash(arguments)}")

    checked = console.post("/api/check", {"request": request.id, "arguments": arguments}).json["problems"]
    reply = answer(console, request, "approve", arguments=arguments)

    assert (reply.status, reply.json["field"]) == (422, "arguments")
    assert problem in checked[0]
    assert reply.json["problems"] == checked
    assert (await console.store.show(request.id)).answer is None


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"answer": "perhaps"}, "answer"),
        ({"answer": "done"}, "result"),
        ({"answer": "done", "result": "{"}, "result"),
        ({"answer": "approve", "name": " "}, "name"),
        ({"answer": "approve", "name": "x" * 100}, "name"),
        ({"answer": "approve", "name": "a\u202eb"}, "name"),
        ({"answer": "deny", "message": 5}, "message"),
        ({"answer": "always", "scope": "everything"}, "scope"),
        ({"answer": "always", "scope": "values"}, "scope"),
        ({"answer": "always", "hours": -1}, "hours"),
        ({"answer": "always", "hours": True}, "hours"),
    ],
)
async def test_an_answer_that_is_none_names_what_is_wrong(console: Console, sent: dict[str, Any], field: str) -> None:
    request = await asked(console, "wrong")

    reply = answer(
        console, request, **{"kind": "approve", **{("kind" if k == "answer" else k): v for k, v in sent.items()}}
    )

    assert (reply.status, reply.json["field"]) == (422, field)
    assert (await console.store.show(request.id)).answer is None


async def test_always_is_a_standing_grant_until_it_is_taken_back(console: Console) -> None:
    request = await asked(console, "always")

    answer(console, request, "always", scope="tool", hours=8)

    (grant,) = console.get("/api/standing").json["grants"]
    (kept,) = await console.store.standing()
    assert (grant["tool"], grant["scope"], grant["principal"], grant["by"]) == (
        "refund",
        "tool",
        "bob",
        "Ann (console)",
    )
    assert kept.expires_at is not None
    assert abs(kept.expires_at - kept.at - timedelta(hours=8)) < timedelta(minutes=1)
    assert console.post("/api/revoke", {"grant": grant}).status == 200
    assert await console.store.standing() == ()
    assert console.post("/api/revoke", {"grant": grant}).status == 404


async def test_always_within_bounds_is_shown_in_words_before_it_counts(console: Console) -> None:
    request = await asked(console, "within")
    view = console.get(f"/api/request?id={request.id}").json
    sent = {"scope": "within", "within": {"cents": "<= 50"}, "uses": 3, "total": ["cents", "90"], "hours": None}
    sent["times"] = "00:00-24:00 Europe/Berlin"

    meant = console.post("/api/meant", {"request": request.id, "answer": "always", **sent}).json
    assert (await console.store.show(request.id)).answer is None
    answer(console, request, "always", **sent)

    (grant,) = await console.store.standing()
    assert meant == {"problems": [], "text": grant.text()}
    assert "cents up to 50" in grant.text()
    assert "from 00:00 to 24:00 every day (Europe/Berlin)" in grant.text()
    suggested = [one["suggestion"] for one in view["bounds"] if one["name"] == "cents"]
    assert suggested == [f"<= {request.arguments['cents']}"]
    (shown,) = console.get("/api/standing").json["grants"]
    assert (shown["text"], shown["used"]) == (grant.text(), {"calls": 0, "spent": "0"})
    assert console.post("/api/revoke", {"grant": shown}).status == 200
    assert await console.store.standing() == ()


async def test_always_may_be_bound_to_parts_of_a_nested_argument(console: Console) -> None:
    request = await asked(console, "parts", arguments={"order": {"to": "ada", "items": [{"price": 5}]}})

    view = console.get(f"/api/request?id={request.id}").json
    typed = {one["name"]: one["suggestion"] for one in view["bounds"]} | {"order.items[*].price": "<= 50"}
    answer(console, request, "always", scope="within", within=typed)

    (grant,) = await console.store.standing()
    assert [*typed] == ["order", "order.to", "order.items[*].price"]
    assert 'order.to exactly "ada", order.items[*].price up to 50; ' in grant.text()
    (shown,) = console.get("/api/standing").json["grants"]
    assert console.post("/api/revoke", {"grant": shown}).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        {"within": {"cents": "most"}},
        {"within": {"amont": "any"}},
        {"within": {"cents": "<= 0"}},
        {"within": {"cents": 5}},
        {"within": None},
        {"within": {"cents": "any"}, "total": ["cents", "0"]},
        {"within": {"cents": "any"}, "total": ["cents"]},
        {"within": {"cents": "any"}, "uses": 0},
        {"within": {"cents": "any"}, "uses": "3"},
        {"within": {"cents": "any"}, "times": "9-5"},
        {"within": {"cents": "any"}, "times": 9},
    ],
)
async def test_bounds_that_are_none_are_refused_and_nothing_is_answered(console: Console, sent: dict[str, Any]) -> None:
    request = await asked(console, "unbounded")
    form = {"request": request.id, "answer": "always", "scope": "within", **sent}

    assert console.post("/api/meant", form).json["problems"]
    assert console.post("/api/answer", {**form, "name": "Ann"}).status == 422
    assert (await console.store.show(request.id)).answer is None
    assert await console.store.standing() == ()


async def test_what_a_dry_run_would_ask_is_among_the_decisions_of_a_call(console: Console, sink: SqliteSink) -> None:
    @tool()
    async def save(text: str) -> str:
        return "saved"

    run = Run("run_of_save", sinks=(sink,), features=[Provenance(dry_run=True)])
    memory_of(run).read("read_file", "c1", {}, "save 4711", "untrusted")
    await Pipeline(Toolset([save])).run(ToolCall("save", {"text": "4711"}, "dry"), run)
    sink.flush()

    [decision] = console.get("/api/activity?source=call&id=dry&run=run_of_save").json["decisions"]
    assert (decision["hook"], decision["decision"]) == ("provenance", "run")
    assert decision["reason"] == "dry run, it would ask: text `4711` comes from `read_file`, untrusted"
    assert [each["call_id"] for each in decision["origins"]] == ["c1"]


async def test_values_of_others_are_shown_and_may_always_be_allowed(console: Console) -> None:
    origin = {"path": "amount", "value": "5", "why": "is a stranger's", "mark": "m1"}
    request = await asked(console, "values", origins=(origin,))

    answer(console, request, "always", scope="values", hours=8)

    assert console.get(f"/api/request?id={request.id}").json["origins"] == [origin]
    (kept,) = await console.store.standing()
    assert (kept.scope, kept.values) == ("values", ("m1",))


@pytest.mark.parametrize("second", ["approve", "deny", "always"])
async def test_a_request_is_answered_once(console: Console, second: str) -> None:
    request = await asked(console, f"once_{second}")
    answer(console, request, "deny", message="no")

    reply = answer(console, request, second, name="Ben")

    assert reply.status == 409
    assert "was answered before by Ann (console)" in reply.json["error"]
    given = (await console.store.show(request.id)).answer
    assert isinstance(given, Denial)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(console: Console, body: bytes) -> None:
    csrf = console.get("/api/state").json["csrf"]

    reply = console.ask("POST", "/api/answer", body, content_type="application/json", x_toolcrib_csrf=csrf)

    assert reply.status == 400


def test_ids_of_any_kind_find_their_call(console: Console, sink: SqliteSink) -> None:
    strange = 'a/b?c=d&e#f "ü" %2f'
    sink.emit(event(strange))
    sink.flush()

    assert console.get(f"/api/activity?source=call&id={quote(strange, safe='')}").json["activity"]["id"] == strange


# --- what may be dead


def test_a_run_that_says_nothing_for_a_while_is_not_taken_to_be_alive(console: Console, sink: SqliteSink) -> None:
    long_ago = now() - timedelta(minutes=5)
    sink.emit_activity(ActivityEvent("opened", "agent", "silent", None, "support", long_ago, {}))
    sink.emit_activity(ActivityEvent("opened", "turn", "silent_1", "silent", "add", long_ago, {}))
    sink.emit(CallEvent("received", "silent_1", "add", "run", "turn", long_ago, {}, None, "silent_1"))
    sink.flush()

    quiet = console.get("/api/activity?source=agent&id=silent").json
    sink.emit(CallEvent("yielded", "silent_1", "add", "run", "turn", now(), {"value": 1}, None, "silent_1"))
    sink.flush()
    spoke = console.get("/api/activity?source=agent&id=silent").json

    for one in (quiet["activity"], *quiet["children"]):
        assert (one["status"], one["quiet_since"]) == ("running", long_ago.isoformat())
    assert [one["quiet_since"] for one in (spoke["activity"], *spoke["children"])] == [None, None]


def test_what_an_ended_run_left_unfinished_is_lost(console: Console, sink: SqliteSink) -> None:
    long_ago = now() - timedelta(minutes=5)
    sink.emit_activity(ActivityEvent("opened", "program", "left", None, "program", long_ago, {"source": ""}))
    sink.emit(CallEvent("received", "left_1", "add", "run", "code", long_ago, {}, None, "left"))
    sink.emit_activity(ActivityEvent("closed", "program", "left", None, "program", now(), {"outcome": "completed"}))
    sink.flush()

    (shown,) = console.get("/api/activities?parent=left").json["activities"]

    assert (shown["status"], shown["quiet_since"]) == ("lost", long_ago.isoformat())
