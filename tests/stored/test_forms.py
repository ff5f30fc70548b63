"""Stored forms: each is written as its golden file has it, and what older versions wrote is read."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import SecretStr

import toolcrib
from tests.stored.golden import golden, golden_files, require_golden, shape
from toolcrib.approvals import Execution, SqliteApprovalStore
from toolcrib.calls import (
    FORM_VERSIONS,
    ApprovalRequest,
    Bound,
    Completed,
    Consent,
    Delegation,
    Denial,
    Done,
    Failed,
    Grant,
    GrantUse,
    Identity,
    KeptResult,
    Media,
    Rejected,
    RequiredApprovers,
    StoredFields,
    Suspended,
    TimesOfDay,
    ToolCall,
    outcome_from_dict,
)
from toolcrib.code import (
    ExecutionResult,
    JournalEntry,
    PausedProgram,
    ProgramSessionState,
    SavedProgram,
    Toolkit,
)
from toolcrib.code._claim import _result_data, _result_of  # pyright: ignore[reportPrivateUsage] -- the stored form of a claim
from toolcrib.code._program_calls import calls_in
from toolcrib.credentials._token_requests import Endpoints, OAuthClient, Settings, Token
from toolcrib.errors import FieldProblem, NewerForm
from toolcrib.pipeline import Pipeline, Run
from toolcrib.pipeline._live_call import LiveCall
from toolcrib.rounds import Session, ToolRound, decode
from toolcrib.sandbox import Raised, Value
from toolcrib.testing import FakeSandbox, ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.turns import Agent, ContextItem, ContextPool, ContextQueue, Turn

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@ez_tool(requires_approval=True)
async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


@ez_tool
async def find(city: str) -> dict[str, int]:
    """Find something."""
    return {city: 1}


REQUEST = ApprovalRequest(
    *("ask_1", "call_1", "pay", {"cents": 5}, "d5"),
    requested={"cents": 4},
    reason="it pays",
    metadata={"shop": "A"},
    created_at=AT,
    run_id="run_1",
    principal="ann",
    parameters={"type": "object"},
    definition="def",
    in_doubt=True,
    returns={"type": "string"},
    approvals_needed=2,
    approved_by=("bob",),
    agent="till",
    conversation_id="conv",
    origins=({"path": "cents", "value": "5", "why": "w", "kind": "tool", "mark": "m"},),
    values_alone=True,
    asked_by="server",
    consent=Consent("sign in", "https://a.example", "ann", "server"),
    follows="ask_0",
    replaces="ask_00",
)
GRANT = Grant(
    *("pay", "ann", "call_1", "d5", "ask_1", "fine", {"cents": 3}, "typed"),
    at=AT,
    expires_at=AT,
    principal="ann",
    definition="def",
    done=Done("paid 5"),
    also=("bob",),
    values=("m",),
)
LIMITED = REQUEST.grant(
    *("ann",),
    scope="within",
    at=AT,
    expires_at=AT,
    within={"cents": Bound.between(high=5), "to": Bound.any(), "iban": Bound.one_of(["a"]), "at": Bound.under("/a")},
    values=("m",),
    uses=3,
    total=("cents", Decimal(9)),
)
"""Written in the second version of a grant, and others in the first."""
SAVED = SavedProgram(
    "trip", "# inputs: city\nfind(city)", "Plan a trip.", {"properties": {"city": {}}}, {"find": "d1"}, "ann", AT
)
_ANN = Identity("ann", "console", ("finance",), AT, "eve", True, AT)
IDENTIFIED = replace(LIMITED, identity=_ANN, identities=(Identity("bob"),))
"""Written in the third version of a grant."""
IDENTIFIED_AND_TIMED = replace(IDENTIFIED, times=TimesOfDay(time(9), time(17), (0, 1), "Europe/Berlin"))
"""Written in the fourth version of a grant."""
WITH_ALIASES = replace(IDENTIFIED_AND_TIMED, identity=replace(_ANN, aliases=("u-1;iss=https://login.example.org",)))
"""Written in the fifth version of a grant."""
_ITEMS = Bound("each", Bound("fields", {"price": Bound.between(high=5), "sku": Bound.one_of(["a", "b"])}))
OF_PARTS = replace(WITH_ALIASES, within={"order": Bound("fields", {"items": _ITEMS, "to": Bound.exactly("ann")})})
RULED = replace(
    REQUEST,
    approved_as=(Identity("bob"),),
    required=(
        RequiredApprovers(
            *("pay", {"finance": 2}, {"finance": [["ann", "bob"]]}, ("finance",), ("eve",), 60.0, 20.0),
            escalation=((40.0, "managers"),),
            delegations=(Delegation("ann", "eve", AT + timedelta(days=1), AT),),
            aliases=(("eve", "U1"),),
        ),
    ),
)
ESCALATED = replace(
    RULED,
    required=(replace(RULED.required[0], instead=True, counts_as={"staff": ["finance"]}),),
)
"""Written in the fourth version of a request; `RULED` in the third."""
APPROVED_WITH_ALIASES = replace(
    ESCALATED,
    approved_as=(Identity("bob", aliases=("u-2",)),),
    required_if_edited=(RequiredApprovers("much", {"finance": 1}, over={"cents": "9"}, up_to={"cents": "99"}),),
)
"""Written in the fifth version of a request."""
ASKED_BY_ALIASES = replace(APPROVED_WITH_ALIASES, requester_ids=("u-3;iss=https://login.example.org",))
_TIMELESS = RequiredApprovers(*("pay", {"finance": 2}, {"finance": [["ann", "bob"]]}, ("finance",), ("eve",)))
RULED_FOR_EVER = replace(RULED, required=(_TIMELESS,))
"""Written in the second version of a request."""
_ENDPOINTS = Endpoints("https://i.example", "https://i.example/a", "https://i.example/t", scopes=("read",))
_CLIENT = OAuthClient("client", "secret")


@ez_tool(requires_approval=True)
async def sign_in(pin: SecretStr, seats: dict[tuple[int, int], str]) -> None: ...


def secret_call() -> dict[str, Any]:
    """Return a call with a secret argument, and one that JSON does not bring back, that waits for a person."""
    call = ToolCall("sign_in", {"pin": SecretStr("4711"), "seats": {(1, 2): "ann"}}, "call_1", origin="host")
    return asyncio.run(Pipeline([sign_in]).run(call, Run("run_1"))).to_dict()["call"]


def suspended() -> Suspended:
    """Return a call that waits for a person, as the pipeline made it."""
    return asyncio.run(Pipeline([pay]).run(ToolCall("pay", {"cents": 5}, "call_1"), Run("run_1")))  # type: ignore[return-value]


def agent() -> Agent:
    """Return an agent that has a turn of each kind."""
    one = Agent("till", "Pays.", [pay, find], ContextPool(3), ContextQueue(3), {"shop"}, register=False)

    async def fill() -> None:
        await one.put(Turn(pay, kwargs={"cents": 5}))
        await one.put(Turn(pay, kwargs={"cents": 6}))
        await one.put(Turn(find, kwargs={"city": "Oslo"}))
        async for _ in one.run():
            pass
        await one.put(Turn(find, kwargs={"city": "Rome"}))

    asyncio.run(fill())
    one.deny(one.requests[0], message="no")
    return one


def turn() -> Turn[Any]:
    """Return a turn that has run."""
    one = Turn(find, kwargs={"city": "Oslo"}, metadata={"by": "ann"}, tags={"shop"}, timeout=5.0)
    asyncio.run(one.returning())
    return one


def round_json() -> dict[str, Any]:
    """Return a round of which a call waits, as JSON shapes."""

    async def write() -> str:
        reply = {"role": "assistant", "content": None, "tool_calls": []}
        for number, (tool, arguments) in enumerate((("pay", '{"cents": 5}'), ("find", '{"city": "Oslo"}'))):
            function = {"name": tool, "arguments": arguments}
            reply["tool_calls"].append({"id": f"call_{number}", "type": "function", "function": function})
        plan = await decode([pay, find], {"choices": [{"message": reply, "finish_reason": "tool_calls"}]}).apply_hooks()
        return plan.to_json()

    return json.loads(asyncio.run(write()))


def session_json() -> dict[str, Any]:
    """Return a session with an open round, as JSON shapes."""

    async def write() -> str:
        session = Session(ScriptedModel(ToolCall("pay", {"cents": 5})), tools=[pay], system="Be brief.")
        await session.say("Pay.").run()
        return session.to_json()

    return json.loads(asyncio.run(write()))


def program() -> PausedProgram:
    """Return a program that has found a city and waits to pay."""
    sandbox = FakeSandbox(("find", {"city": "Oslo"}), ("pay", {"cents": 5}))
    paused = Toolkit([find, pay], sandbox=sandbox).execute("...").paused
    assert paused is not None
    return paused


def executed() -> ExecutionResult:
    """Return the result of a program that waits to pay."""
    return Toolkit([find, pay], sandbox=FakeSandbox(("pay", {"cents": 5}))).execute("...")


def entries() -> list[dict[str, Any]]:
    """Return entries of each kind about the calls of a program, as JSON shapes."""
    found = program().journal
    first = found[0]
    more = (
        replace(first, fields={**first.fields, "grant": GRANT, "store_knows": True}),
        JournalEntry("value", first.call_id, {"value": 1}),
        JournalEntry("retried", first.call_id, {"failed": "it raised"}),
        JournalEntry("ended", first.call_id, {"reply": Raised("ValueError", "no"), "summary": {"outcome": "failed"}}),
        JournalEntry("ended", first.call_id, {"reply": Value({"$table": 0}, (b"table",)), "summary": {}}),
        JournalEntry("cancelled", first.call_id),
    )
    return [entry.to_dict() for entry in (*found, *more)]


def read_call(data: Mapping[str, Any]) -> object:
    return Pipeline([pay, sign_in]).restore(data, Run())


async def read_round(data: Mapping[str, Any]) -> object:
    return await ToolRound.from_json([pay, find], json.dumps(data))


async def read_session(data: Mapping[str, Any]) -> object:
    return await Session.from_json(ScriptedModel("Done."), json.dumps(data), tools=[pay])


def read_entries(data: list[dict[str, Any]]) -> object:
    return calls_in(map(JournalEntry.from_dict, data))


def counted() -> dict[str, Any]:
    run = Run("run_1")
    run.restore({"id": "run_0", "features": {"of another process": {"a": 1}}})
    asyncio.run(Pipeline([find]).run(ToolCall("find", {"city": "Oslo"}, "call_1"), run))
    return run.counted()


FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "Agent": (lambda data: Agent.from_dict(data, tools=[pay, find], register=False), lambda: agent().to_dict()),
    "ApprovalRequest": (ApprovalRequest.from_dict, ASKED_BY_ALIASES.to_dict),
    "Call": (read_call, secret_call),
    "Completed": (
        outcome_from_dict,
        Completed("find", "call_1", 1, kept=KeptResult("r1", "one", 3), max_result_chars=5).to_dict,
    ),
    "ContextItem": (ContextItem.from_dict, ContextItem({"a": 1}, "about it", "x").to_dict),
    "ContextPool": (ContextPool.from_dict, lambda: _filled(ContextPool(3, {"tag"})).to_dict()),
    "ContextQueue": (ContextQueue.from_dict, lambda: _filled(ContextQueue(3, {"tag"})).to_dict()),
    "Denial": (Denial.from_dict, Denial("pay", "ann", "call_1", "ask_1", "no", AT).to_dict),
    "Execution": (Execution.from_dict, Execution("e", AT, "p", AT, AT, {"value": 1}).to_dict),
    "Failed": (
        outcome_from_dict,
        Failed("pay", "call_1", "tool_error", "no", "E", (FieldProblem("a", "b"),), reference="ref").to_dict,
    ),
    "Grant": (Grant.from_dict, OF_PARTS.to_dict),
    "GrantUse": (GrantUse.from_dict, GrantUse(2, Decimal(7), AT).to_dict),
    "JournalEntry": (read_entries, entries),
    "Media": (Media.from_dict, Media("image/png", b"x", "https://a.example", "n", "t", "d").to_dict),
    "PausedProgram": (PausedProgram.from_dict, lambda: replace(program(), question=suspended()).to_dict()),
    "ProgramClaim": (
        _result_of,
        lambda: _result_data(Toolkit([pay], sandbox=FakeSandbox(("pay", {"cents": 5}))).execute("...")),
    ),
    "ProgramSessionState": (
        ProgramSessionState.from_dict,
        ProgramSessionState({"a": {"$tuple": [1]}}, {"f": "function"}, {"id": "run_1"}).to_dict,
    ),
    "Rejected": (outcome_from_dict, Rejected("pay", "call_1", "no").to_dict),
    "Run": (lambda data: Run().restore(data), counted),
    "SavedProgram": (SavedProgram.from_dict, SAVED.to_dict),
    "Session": (read_session, session_json),
    "Settings": (Settings.from_dict, Settings("https://r.example", ("read",), _CLIENT, endpoints=_ENDPOINTS).to_dict),
    "Suspended": (
        outcome_from_dict,
        lambda: Suspended("pay", "call_1", REQUEST, suspended().call, AT).to_dict(),
    ),
    "Token": (Token.from_dict, Token("a", "r", 1.5, _ENDPOINTS, _CLIENT).to_dict),
    "ToolRound": (read_round, round_json),
    "Turn": (lambda data: Turn.from_dict(data, [find]), lambda: turn().to_dict()),
}
"""By form, what reads it and what writes an example of it that has every field."""

DURABLE = {"AgentContext", "ProgramResult", "ProgramWork", "ScheduledWork", "TurnRecord", "TurnState", "TurnWork"}
"""The forms of durable work; see `tests/adapters/dbos/test_stored_forms.py`."""


def _filled(store: Any) -> Any:
    store.replace([ContextItem({"a": 1}, "about it", "x")])
    return store


def _read(form: str, data: Any) -> Any:
    found = FORMS[form][0](data)
    return asyncio.run(found) if inspect.iscoroutine(found) else found


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_written_as_its_golden_file_has_it(form: str) -> None:
    require_golden(form, FORMS[form][1]())


@pytest.mark.parametrize(("form", "version"), [each for each in golden_files() if each[0] not in DURABLE])
def test_what_an_older_version_wrote_is_read(form: str, version: int) -> None:
    assert _read(form, golden(form, version)) is not NotImplemented


def test_every_version_of_every_form_has_a_golden_file() -> None:
    there = set(golden_files())
    first = {"ToolRound": 4}

    assert there == {
        (form, version) for form, last in FORM_VERSIONS.items() for version in range(first.get(form, 1), last + 1)
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_newer_version_of_a_form_is_named(form: str) -> None:
    data, newer = golden(form), FORM_VERSIONS[form] + 1
    data = [{**entry, "version": newer} for entry in data] if isinstance(data, list) else {**data, "version": newer}

    with pytest.raises(NewerForm, match=f"the stored {form} has version {newer}, and .* reads up to {newer - 1}"):
        _read(form, data)


@pytest.mark.parametrize("version", [0, -1, "2", None, True, 1.5])
def test_a_version_that_is_no_number_is_refused(version: object) -> None:
    with pytest.raises(ValueError, match=r"its `version` is .*, and not a number from 1"):
        Grant.from_dict({**GRANT.to_dict(), "version": version})


def test_a_suspended_call_is_read_only_if_it_can_be_resumed() -> None:
    data = golden("Suspended")
    data["call"]["version"] = FORM_VERSIONS["Call"] + 1

    with pytest.raises(NewerForm, match="the stored Call has version 4"):
        outcome_from_dict(data)


def test_a_form_says_its_version_from_the_second_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Denial("pay").to_dict()
    monkeypatch.setitem(FORM_VERSIONS, "Denial", 2)
    second = Denial("pay").to_dict()

    assert ("version" in first, second["version"]) == (False, 2)
    assert StoredFields(Denial, second).version == 2
    assert isinstance(Denial.from_dict(second), Denial)


WRITERS: dict[str, Any] = {
    **{kind.__name__: kind.to_dict for kind in (ApprovalRequest, Grant, Denial, Failed, Suspended, Rejected)},
    **{kind.__name__: kind.to_dict for kind in (PausedProgram, Turn, Agent, Execution)},
    **{"Call": LiveCall.to_dict, "Run": Run.counted, "Completed": Completed._as_dict},  # pyright: ignore[reportPrivateUsage] -- of an outcome and of its record
}


def _fields_in(literal: ast.AST) -> set[str]:
    """Return the names of fields in a dict, with those that are in it under a condition."""
    if isinstance(literal, ast.IfExp):
        return _fields_in(literal.body) | _fields_in(literal.orelse)
    if not isinstance(literal, ast.Dict):
        return set()
    named = {key.value for key in literal.keys if isinstance(key, ast.Constant)}
    parts = [part for key, part in zip(literal.keys, literal.values, strict=True) if key is None]
    return named.union(*map(_fields_in, parts))


@pytest.mark.parametrize("form", WRITERS)
def test_a_golden_file_has_every_field_that_its_form_may_have(form: str) -> None:
    source = dedent(inspect.getsource(WRITERS[form]))
    literals = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Dict)]

    named = _fields_in(max(literals, key=lambda node: len(node.keys)))

    assert named
    assert named <= _golden_fields(form)


def _golden_fields(form: str) -> set[str]:
    """Return the fields in the golden files of a form, of all its versions: a grant is written in two."""
    return {field for name, version in golden_files() if name == form for field in golden(name, version)}


@pytest.mark.parametrize(
    ("value", "version"),
    [
        *[(GRANT, 1), (LIMITED, 2), (IDENTIFIED, 3), (IDENTIFIED_AND_TIMED, 4), (WITH_ALIASES, 5)],
        *[(REQUEST, 1), (RULED_FOR_EVER, 2), (RULED, 3), (ESCALATED, 4), (APPROVED_WITH_ALIASES, 5)],
    ],
    ids=lambda value: str(value) if isinstance(value, int) else type(value).__name__,
)
def test_a_form_without_the_fields_of_a_later_version_is_written_in_the_first_that_has_its_own(
    value: Grant | ApprovalRequest, version: int
) -> None:
    assert shape(json.loads(json.dumps(value.to_dict()))) == shape(golden(type(value).__name__, version))


@pytest.mark.parametrize("value", [REQUEST, GRANT], ids=lambda value: type(value).__name__)
def test_an_example_has_a_value_for_every_field(value: Any) -> None:
    stored_as = {"by": "approver", "approvals_needed": "approvers"}

    assert is_dataclass(value)
    assert {stored_as.get(field.name, field.name) for field in fields(value)} <= _golden_fields(type(value).__name__)


@pytest.mark.processes  # a read of the whole source
def test_every_form_that_is_read_has_a_version() -> None:
    owners = set[str]()
    for path in Path(toolcrib.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("StoredFields", "versioned"):
                owners |= {str(part.value) for part in node.args[:1] if isinstance(part, ast.Constant)}

    assert owners - FORM_VERSIONS.keys() == {"Bound", "Outcome", "WireReply"}  # parts of others
    assert {*FORMS, *DURABLE} == FORM_VERSIONS.keys()


@pytest.mark.parametrize("name", ["runs", "trace", "revealed", "doubts", "key", "origins", "idempotency_key"])
def test_a_call_that_was_stored_before_a_field_was_there_is_read(name: str) -> None:
    data = golden("Call", 1)
    del data[name]

    assert read_call(data)


async def test_a_request_in_a_newer_form_is_not_listed_and_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    store = SqliteApprovalStore(tmp_path / "approvals.db")
    await store.put(ApprovalRequest("ask_2", "call_2", "find", {}, "d"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FORM_VERSIONS, "ApprovalRequest", FORM_VERSIONS["ApprovalRequest"] + 1)
        await store.put(replace(ASKED_BY_ALIASES, id="ask_1"))
    listed = [entry.request.id for entry in await store.list()]

    assert listed == ["ask_2"]
    with pytest.raises(NewerForm, match="the stored ApprovalRequest has version 7"):
        await store.show("ask_1")
