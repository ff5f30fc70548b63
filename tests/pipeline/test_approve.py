"""Step 5: who is asked, what they are shown, and what an answer opens."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from tests.pipeline.calling import pay, suspended
from toolcrib.approvals import AgentContext, MemoryApprovalStore, approve_all
from toolcrib.calls import (
    ApprovalRequest,
    Ask,
    Completed,
    Failed,
    Grant,
    Outcome,
    RawArguments,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
    outcome_from_dict,
)
from toolcrib.errors import ApprovalError, ApprovalRequired
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Channel, Pipeline, Run, is_call
from toolcrib.schema import Redacted, RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import BaseTool, Tool, ez_tool
from toolcrib.toolsets import Toolset

# --- when it is needed


async def policy_async(arguments: dict[str, Any], ctx: Any) -> str:
    return f"{arguments['cents']} for {ctx.deps}"


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (True, ""),
        (lambda args, ctx: True, ""),
        (lambda args, ctx: "dear" if args["cents"] > 1 else False, "dear"),
        (policy_async, "5 for ann"),
        (lambda args, ctx: False, None),
        (False, None),
    ],
)
async def test_a_tool_says_when_it_needs_approval(policy: Any, asked: str | None) -> None:
    @ez_tool(requires_approval=policy)
    async def spend(cents: int) -> None: ...

    outcome = await Pipeline([spend]).run(ToolCall("spend", {"cents": 5}), Run(deps="ann"))

    assert (outcome.request.reason if isinstance(outcome, Suspended) else None) == asked


@pytest.mark.parametrize("returned", [None, 0, 1, [], Ask("dear")], ids=repr)
async def test_a_policy_without_an_answer_lets_nothing_run(returned: Any) -> None:
    ran = list[int]()

    async def forgetful(arguments: dict[str, Any], ctx: Any) -> Any:
        return returned

    @ez_tool(requires_approval=forgetful)
    async def spend(cents: int) -> None:
        ran.append(cents)

    outcome = await Pipeline([spend]).run(ToolCall("spend", {"cents": 5}))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])
    assert "return True or the reason to ask a person, else False" in str(outcome.exception)


async def test_reasons_are_gathered() -> None:
    hooks = HookSet()

    @hooks.on("spend")
    async def late(call: Any, given: Any) -> Ask:
        return Ask("it is late")

    @ez_tool(requires_approval=lambda args, ctx: "it is dear")
    async def spend() -> None: ...

    waiting = await suspended(
        Pipeline([spend], hooks=hooks), {}, "spend", deps=AgentContext(need_user_approve_tools=["spend"])
    )

    assert waiting.request.reason == "it is late; it is dear"


async def test_a_policy_cannot_change_the_arguments() -> None:
    @ez_tool(requires_approval=lambda args, ctx: bool(args.update(cents=0)))
    async def spend(cents: int) -> int:
        return cents

    outcome = await Pipeline([spend]).run(ToolCall("spend", {"cents": 5}))

    assert isinstance(outcome, Completed)
    assert outcome.value == 5


# --- what a person is shown


async def test_a_request_tells_the_whole_story() -> None:
    hooks = HookSet()

    @hooks.on("pay")
    async def halve(call: Any, given: Any) -> RunNormally:
        return RunNormally(given.model_copy(update={"cents": 2}))

    waiting = await suspended(Pipeline([pay], hooks=hooks), principal="bob", id="run_1")

    request = waiting.request
    assert (request.tool, request.call_id, request.run_id, request.principal) == (
        "pay",
        waiting.call_id,
        "run_1",
        "bob",
    )
    assert request.arguments == {"cents": 2, "to": "ann"}
    assert request.requested == {"cents": 5, "to": "ann"}
    assert request.changes() == ["cents: 5 -> 2"]
    assert "pay needs approval" in request.text()
    assert "cents: 5 -> 2" in request.text()


async def test_a_tool_adds_what_a_person_should_see() -> None:
    class Pay(BaseTool):
        requires_approval = True

        def get_approval_metadata(self) -> dict[str, Any]:
            return {"account": "main"}

        async def call(self, ctx: RunContext) -> None: ...

    waiting = await suspended(Pipeline([Pay]), {})

    assert waiting.request.metadata == {"account": "main"}
    assert "account: main" in waiting.request.text()


async def test_a_tool_adds_what_a_person_should_see_of_one_call() -> None:
    class Pay(BaseTool):
        requires_approval = True

        def get_call_metadata(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
            return {"page": f"https://bank.test/{arguments['to']}?password={arguments['password']}"}

        async def call(self, ctx: RunContext, to: str, password: SecretStr) -> None: ...

    waiting = await suspended(Pipeline([Pay]), {"to": "ann", "password": "s3cret"})

    assert waiting.request.metadata == {"page": "https://bank.test/ann?password=**********"}


async def test_metadata_that_cannot_be_had_shuts_the_tool() -> None:
    class Pay(BaseTool):
        requires_approval = True

        def get_approval_metadata(self) -> dict[str, Any]:
            raise OSError("no account")

        async def call(self, ctx: RunContext) -> None: ...

    sink = RecordingSink()

    outcome = await Pipeline([Pay]).run(ToolCall("pay"), Run(sinks=(sink,), approver=approve_all))

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"
    assert sink.record.outcome["code"] == "hook_error"


# --- what an answer opens


@pytest.mark.parametrize(
    "change",
    [
        {"expires_at": datetime.now(UTC) - timedelta(seconds=1)},
        {"scope": "arguments", "digest": "0" * 64},
        {"scope": "tool", "tool": "other"},
    ],
    ids=["expired", "other arguments", "other tool"],
)
async def test_a_grant_that_does_not_hold_opens_nothing(change: dict[str, Any]) -> None:
    pipeline = Pipeline([pay])
    waiting = await suspended(pipeline)

    outcome = await pipeline.run(waiting, grant=replace(waiting.request.grant(), **change))

    assert isinstance(outcome, Failed)
    assert outcome.code == "approval_error"


@pytest.mark.parametrize("answer", [True, "yes", {"kind": "grant"}, object()])
async def test_a_yes_without_a_signature_opens_nothing(answer: Any) -> None:
    async def careless(request: Any) -> Any:
        return answer

    sink = RecordingSink()
    scope = Run(approver=careless, sinks=(sink,))

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"cents": 5}), scope)

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"
    assert "approver `careless` of `pay`" in str(outcome.exception)
    assert sink.record.outcome["kind"] == "failed"


async def test_an_approver_may_be_a_plain_function() -> None:
    @ez_tool(requires_approval=True)
    async def append() -> str:
        return "appended"

    outcome = await Pipeline([append]).run(ToolCall("append"), Run(approver=lambda request: request.grant("ann")))

    assert outcome.text() == "appended"


async def test_an_approver_may_leave_it_waiting() -> None:
    async def busy(request: Any) -> None:
        return None

    assert await suspended(Pipeline([pay]), approver=busy)


async def test_an_answer_for_another_call_is_an_error() -> None:
    pipeline = Pipeline([pay])
    waiting, other = await suspended(pipeline), await suspended(pipeline)

    granted = await pipeline.run(waiting, grant=other.request.grant())
    denied = await pipeline.run(waiting, grant=other.request.deny(message="no"))

    assert [getattr(o, "code", o) for o in (granted, denied)] == ["approval_error", "approval_error"]


async def test_a_grant_may_come_with_a_new_call() -> None:
    pipeline = Pipeline([pay])
    waiting = await suspended(pipeline)
    call = ToolCall("pay", {"cents": 5}, waiting.call_id)

    outcome = await pipeline.run(call, grant=waiting.request.grant())
    changed = await pipeline.run(replace(call, arguments={"cents": 6}), grant=waiting.request.grant())

    assert isinstance(outcome, Completed)
    assert isinstance(changed, Failed)


async def test_an_answer_to_another_runs_request_is_not_taken_for_a_call_of_the_same_id() -> None:
    for store in (None, MemoryApprovalStore()):
        pipeline, runs = (
            Pipeline([pay]),
            [Run(approvals=store, channel=Channel(conversation_id=day)) for day in ("monday", "friday")],
        )
        first, second = [await pipeline.run(ToolCall("pay", {"cents": 5}, "call_1"), run) for run in runs]
        assert isinstance(first, Suspended)
        assert isinstance(second, Suspended)

        crossed = [
            await pipeline.run(second, runs[1], grant=answer)
            for answer in (first.request.grant("ann"), first.request.deny(message="no"))
        ]
        own = await pipeline.run(first, runs[0], grant=first.request.grant("ann"))

        assert [(outcome.kind, "it answers the request" in outcome.text()) for outcome in crossed] == [
            ("failed", True)
        ] * 2
        assert own.kind == "completed"


async def test_a_grant_that_names_no_request_is_used_once_in_a_run() -> None:
    pipeline, scope = Pipeline([pay]), Run()
    waiting = await suspended(pipeline)
    call = ToolCall("pay", {"cents": 5}, waiting.call_id)
    grant = Grant("pay", call_id=call.id, digest=waiting.request.digest)

    first = await pipeline.run(call, scope, grant=grant)
    second = await pipeline.run(call, scope, grant=grant)

    assert isinstance(first, Completed)
    assert isinstance(second, Failed)
    assert second.code == "approval_error"


async def test_a_grant_is_used_once_whatever_the_run() -> None:
    pipeline = Pipeline([pay])
    waiting = await suspended(pipeline)
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))
    assert isinstance(restored, Suspended)

    first = await pipeline.run(waiting, Run(), grant=waiting.request.grant())
    second = await pipeline.run(restored, Run(), grant=waiting.request.grant())

    assert isinstance(first, Completed)
    assert isinstance(second, Failed)
    assert second.code == "approval_error"


async def test_arguments_of_the_persons_own_take_the_models_place() -> None:
    sink = RecordingSink()
    pipeline = Pipeline([pay], sinks=[sink])
    waiting = await suspended(pipeline)

    outcome = await pipeline.run(waiting, grant=waiting.request.grant(override_args={"cents": 1, "to": "bob"}))

    assert isinstance(outcome, Completed)
    assert outcome.value == "1 to bob"
    assert sink.records[-1].arguments == {"cents": 1, "to": "bob"}


async def test_arguments_of_the_persons_own_are_validated_and_guarded() -> None:
    pre = {"pay": lambda ctx, args, metadata: {**args, "to": args["to"].upper()}}
    pipeline = Pipeline(Toolset([pay], pre_hooks=pre))
    waiting = await suspended(pipeline)

    with pytest.raises(ApprovalError, match=r"the edit of host does not fit the tool: .*cents"):
        await pipeline.run(waiting, grant=waiting.request.grant(override_args={"cents": "many"}))
    right = await pipeline.run(waiting, grant=waiting.request.grant(override_args={"cents": 1}))

    assert isinstance(right, Completed)
    assert right.value == "1 to ANN"


async def test_what_a_person_typed_reaches_the_tool() -> None:
    class Ask(BaseTool):
        requires_approval = True

        async def process_user_input(self, ctx: RunContext, user_input: Any) -> Any:
            return user_input.upper()

        async def call(self, ctx: RunContext) -> Any:
            return ctx.approved, ctx.approved_by, ctx.user_input

    pipeline = Pipeline([Ask])
    waiting = await suspended(pipeline, {}, "ask")

    outcome = await pipeline.run(waiting, grant=waiting.request.grant("ann", user_input="hello"))

    assert isinstance(outcome, Completed)
    assert outcome.value == (True, "ann", "HELLO")


async def test_what_a_person_typed_and_broke_fails_the_call() -> None:
    ran: list[str] = []

    class Ask(BaseTool):
        requires_approval = True

        def process_user_input(self, ctx: RunContext, user_input: Any) -> Any:
            raise ValueError("not a number")

        async def call(self, ctx: RunContext) -> None:
            ran.append("ran")

    pipeline = Pipeline([Ask])
    waiting = await suspended(pipeline, {}, "ask")

    outcome = await pipeline.run(waiting, grant=waiting.request.grant(user_input="x"))

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("hook_error", [])


async def test_no_secret_of_the_person_is_recorded() -> None:
    @ez_tool(requires_approval=True)
    async def login(password: SecretStr, pin: Annotated[str, Redacted] = "") -> None: ...

    sink = RecordingSink()
    pipeline = Pipeline([login], sinks=[sink])
    waiting = await suspended(pipeline, {"password": "a"}, "login")
    given = {"password": "hunter2", "pin": "pin-4711"}

    await pipeline.run(waiting, grant=waiting.request.grant(override_args=given, user_input="swordfish"))

    shown = json.dumps([event.to_dict() for event in sink.events])
    assert not any(secret in shown for secret in ("hunter2", "pin-4711", "swordfish"))


async def test_a_hidden_secret_is_no_value_of_an_argument_that_the_approver_edits() -> None:
    class Login(BaseModel):
        user: str
        password: SecretStr

    ran: list[Login] = []

    @ez_tool(requires_approval=True)
    async def login(who: Login) -> None:
        ran.append(who)

    pipeline = Pipeline([login])
    waiting = await suspended(pipeline, {"who": {"user": "ann", "password": "hunter2"}}, "login")
    edited = {"who": {**waiting.request.arguments["who"], "user": "ben"}}

    with pytest.raises(ApprovalError, match=r"who\.password: give the real value in place of the hidden one"):
        await pipeline.run(waiting, grant=waiting.request.grant(override_args=edited))

    assert ran == []


async def test_what_was_asked_for_before_an_edit_is_shown_without_its_secrets() -> None:
    @ez_tool(requires_approval=True)
    async def login(name: str, password: SecretStr, pin: Annotated[str, Redacted] = "pin-4711") -> None: ...

    hooks = HookSet()

    @hooks.on("login")
    async def lower(call: Any, given: Any) -> RunNormally:
        given.name = given.name.lower()
        return RunNormally(given)

    pipeline = Pipeline(Toolset([login], hooks=hooks))
    waiting = await suspended(pipeline, {"name": "Ann", "password": "hunter2"}, "login")

    assert waiting.request.requested["name"] == "Ann"
    assert waiting.request.arguments["name"] == "ann"
    assert not any(secret in json.dumps(waiting.request.to_dict()) for secret in ("hunter2", "pin-4711"))


async def test_an_overridden_execution_cannot_change_what_was_approved() -> None:
    ran: list[int] = []

    @ez_tool(requires_approval=lambda args, ctx: args["cents"] < 100)
    async def spend(cents: int) -> None:
        ran.append(cents)

    class Meddling(Toolset):
        async def _call_tool_func(self, args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            return await tool.call_func({"cents": 999}, ctx)

    pipeline = Pipeline(Meddling([spend]))

    approved = await pipeline.run(ToolCall("spend", {"cents": 5}), Run(approver=approve_all))
    free = await pipeline.run(ToolCall("spend", {"cents": 500}))

    assert isinstance(approved, Failed)
    assert approved.code == "approval_error"
    assert isinstance(free, Failed)  # nor what a policy let pass
    assert "`spend` cannot take these arguments: cents: it was changed after" in free.message
    assert ran == []


@pytest.mark.parametrize("stream", [False, True])
async def test_arguments_that_change_between_approval_and_execution_do_not_run(stream: bool) -> None:
    ran: list[Any] = []

    given = [5]

    @ez_tool(requires_approval=True)
    async def spend(cents: Any) -> None:
        ran.append(cents)

    @ez_tool(name="spend", requires_approval=True)
    async def spend_slowly(cents: Any) -> Any:
        ran.append(cents)
        yield 1

    pipeline, scope = Pipeline([spend_slowly if stream else spend]), Run(approver=approve_all)
    prepared = await pipeline.admit(ToolCall("spend", {"cents": given}, origin="host"), scope)
    assert is_call(prepared)
    given.append(999)

    performed = await pipeline.execute(prepared)

    assert is_call(performed)
    outcome = await pipeline.finish(performed)
    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("approval_error", [])


# --- standing grants and stores


async def test_a_standing_grant_opens_every_call() -> None:
    store = MemoryApprovalStore([Grant("pay", scope="tool")])
    pipeline, scope = Pipeline([pay]), Run(approvals=store)

    outcomes = [await pipeline.run(ToolCall("pay", {"cents": n}), scope) for n in range(3)]

    assert all(isinstance(outcome, Completed) for outcome in outcomes)


async def test_a_standing_grant_for_arguments_opens_these_alone() -> None:
    pipeline = Pipeline([pay])
    waiting = await suspended(pipeline)
    store = MemoryApprovalStore([waiting.request.grant(scope="arguments")])

    same = await pipeline.run(ToolCall("pay", {"cents": 5}), Run(approvals=store))
    other = await pipeline.run(ToolCall("pay", {"cents": 6}), Run(approvals=store))

    assert isinstance(same, Completed)
    assert isinstance(other, Suspended)


@pytest.mark.parametrize("broken", ["put", "take"])
async def test_a_store_that_fails_shuts_the_tool(broken: str) -> None:
    class Broken(MemoryApprovalStore):
        async def put(self, request: Any) -> None:
            if broken == "put":
                raise OSError("disk full")

        async def take(self, request: Any) -> Any:
            if broken == "take":
                raise OSError("disk full")

    sink = RecordingSink()

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"cents": 5}), Run(approvals=Broken(), sinks=(sink,)))

    assert isinstance(outcome, Failed)
    assert (outcome.code, sink.record.outcome["code"]) == ("hook_error", "hook_error")


async def test_a_question_is_kept_and_its_answer_found() -> None:
    store = MemoryApprovalStore()
    pipeline, scope = Pipeline([pay]), Run(approvals=store)
    waiting = await suspended(pipeline, approvals=store)
    await store.answer(waiting.request.deny(message="too dear", by="bob"))

    outcome = await pipeline.run(waiting, scope)

    assert isinstance(outcome, Rejected)
    assert outcome.reason == "too dear"


# --- a tool that asks for itself


async def test_a_tool_may_ask_before_it_does_anything() -> None:
    ran: list[Any] = []

    @ez_tool
    async def delete(path: str, ctx: RunContext) -> str:
        if not ctx.approved:
            raise ApprovalRequired({"size": 3})
        ran.append(path)
        return ctx.approved_by or ""

    told: list[Any] = []

    @delete.on_error
    async def note(exc: Exception) -> None:
        told.append(exc)

    pipeline = Pipeline([delete])
    waiting = await suspended(pipeline, {"path": "a"}, "delete")
    before = list(ran)
    outcome = await pipeline.run(waiting, grant=waiting.request.grant("ann"))

    assert (before, ran, told) == ([], ["a"], [])
    assert waiting.request.metadata == {"size": 3}
    assert isinstance(outcome, Completed)
    assert outcome.value == "ann"


async def test_a_tool_that_asks_is_answered_at_once_where_somebody_is_there() -> None:
    @ez_tool
    async def delete(ctx: RunContext) -> str:
        if not ctx.approved:
            raise ApprovalRequired
        return "deleted"

    @ez_tool
    async def purge(ctx: RunContext) -> Any:
        if not ctx.approved:
            raise ApprovalRequired
        yield "purged"

    pipeline = Pipeline([delete, purge])

    returned = await pipeline.run(ToolCall("delete"), Run(approver=approve_all))
    streamed = [item async for item in pipeline.stream(ToolCall("purge"), Run(approver=approve_all))]

    assert isinstance(returned, Completed)
    assert isinstance(streamed[-1], Completed)
    assert (returned.value, streamed[-1].value) == ("deleted", ["purged"])


async def test_a_tool_that_never_stops_asking_fails() -> None:
    @ez_tool
    async def delete() -> str:
        raise ApprovalRequired

    outcome = await Pipeline([delete]).run(ToolCall("delete"), Run(approver=approve_all))

    assert isinstance(outcome, Failed)
    assert outcome.code == "approval_error"


async def test_a_standing_grant_of_a_run_serves_its_principal_alone() -> None:
    pipeline, run = Pipeline([pay]), Run(principal="ann")
    waiting = await pipeline.run(ToolCall("pay", {"cents": 1}), run)
    assert isinstance(waiting, Suspended)
    await pipeline.run(waiting, run, grant=waiting.request.always("ann"))

    hers = await pipeline.run(ToolCall("pay", {"cents": 2}), run)
    his = await pipeline.run(ToolCall("pay", {"cents": 2}), run.view(principal="bob"))

    assert isinstance(hers, Completed)
    assert isinstance(his, Suspended)


async def test_a_standing_grant_holds_for_the_tool_as_it_was_defined() -> None:
    def sending(description: str) -> Tool[..., Any]:
        async def send(text: str) -> str:
            return text

        return ez_tool(description=description, requires_approval=True)(send)

    run, call = Run(), ToolCall("send", {"text": "x"})
    waiting = await Pipeline([sending("Send.")]).run(call, run)
    assert isinstance(waiting, Suspended)
    await Pipeline([sending("Send.")]).run(waiting, run, grant=waiting.request.always("ann"))

    same = await Pipeline([sending("Send.")]).run(ToolCall("send", {"text": "y"}), run)
    other = await Pipeline([sending("Send to everybody.")]).run(ToolCall("send", {"text": "y"}), run)

    assert isinstance(same, Completed)
    assert isinstance(other, Suspended)


def erasing(description: str = "Erase.", parameter: str = "Which.", more: bool = False) -> Tool[..., Any]:
    async def erase(id: Annotated[str, Field(description=parameter)]) -> str:
        return id

    async def erase_all(id: Annotated[str, Field(description=parameter)], force: bool = True) -> str:
        return f"{id} {force}"

    return ez_tool(name="erase", description=description, requires_approval=True)(erase_all if more else erase)


@pytest.mark.parametrize(
    "now",
    [{"description": "Erase all."}, {"parameter": "The account."}, {"more": True}],
    ids=["description", "description of a parameter", "parameter with a default"],
)
async def test_a_call_whose_tool_has_changed_is_asked_about_again_and_an_old_yes_is_none(now: dict[str, Any]) -> None:
    run = Run(approvals=MemoryApprovalStore())
    waiting = await Pipeline([erasing()]).run(ToolCall("erase", {"id": "7"}), run)
    assert isinstance(waiting, Suspended)
    changed, state = Pipeline([erasing(**now)]), json.loads(json.dumps(waiting.to_dict()))["call"]

    again = await changed.recover(state, run, grant=waiting.request.grant("ann"))
    once_more = await changed.recover(state, run)
    assert isinstance(again, Suspended)
    assert isinstance(once_more, Suspended)
    done = await changed.run(again, run, grant=again.request.grant("ann"))

    assert (again.request.id, again.request.replaces) == (once_more.request.id, waiting.request.id)
    assert isinstance(done, Completed)
    assert {entry.state for entry in await run.approvals.list()} == {"used"}


async def test_a_grant_of_the_hosts_own_for_any_definition_holds_when_the_tool_has_changed() -> None:
    waiting = await Pipeline([erasing()]).run(ToolCall("erase", {"id": "7"}))
    assert isinstance(waiting, Suspended)

    done = await Pipeline([erasing("Erase all.")]).run(waiting, grant=waiting.request.grant(definition=None))

    assert isinstance(done, Completed)


async def test_arguments_that_were_edited_in_a_stored_call_are_not_taken_for_a_tool_that_has_changed() -> None:
    waiting = await Pipeline([erasing()]).run(ToolCall("erase", {"id": "7"}))
    assert isinstance(waiting, Suspended)
    state = json.loads(json.dumps(waiting.to_dict()))["call"]
    state["arguments"]["id"] = "8"

    refused = await Pipeline([erasing()]).recover(state)

    assert isinstance(refused, Failed)
    assert refused.code == "approval_error"


class Erase(BaseTool):
    requires_approval = True

    def __init__(self, url: str) -> None:
        self._url = url

    async def call(self, ctx: RunContext, id: str) -> str:
        return f"{id} at {self._url}"

    def get_identity(self) -> dict[str, Any]:
        return {"url": self._url}


@pytest.mark.parametrize(("url", "kind"), [("db://staging", Completed), ("db://production", Suspended)])
async def test_a_grant_is_for_the_server_behind_the_tool(url: str, kind: type) -> None:
    waiting = await Pipeline([Erase("db://staging")]).run(ToolCall("erase", {"id": "7"}))
    assert isinstance(waiting, Suspended)

    outcome = await Pipeline([Erase(url)]).run(waiting, grant=waiting.request.grant("ann"))

    assert type(outcome) is kind
    assert "staging" not in json.dumps(waiting.request.to_dict())


class Settled(BaseTool):
    name = "erase"

    async def call(self, ctx: RunContext, id: str) -> str:
        return id

    async def get_settler(self, request: ApprovalRequest) -> str:
        return "ann"


class SettledWithMore(Settled):
    name = "erase"

    async def call(self, ctx: RunContext, id: str, force: bool = True) -> str:  # type: ignore[override]
        return f"{id} {force}"


@pytest.mark.parametrize(("now", "kind"), [(Settled, Completed), (SettledWithMore, Suspended)])
async def test_what_was_settled_by_other_means_is_settled_for_the_arguments_that_were_shown(
    now: type[BaseTool], kind: type
) -> None:
    waiting = await Pipeline(Toolset([Settled]).with_approval()).run(ToolCall("erase", {"id": "7"}))
    assert isinstance(waiting, Suspended)

    outcome = await Pipeline([now()]).run(outcome_from_dict(waiting.to_dict()))

    assert type(outcome) is kind


@pytest.mark.parametrize("raw", ['{"to": "ann", "cents": 2}', {"to": "ann", "cents": 2}])
async def test_a_request_shows_what_came_with_the_call_before_the_defaults(raw: RawArguments) -> None:
    @ez_tool(requires_approval=True)
    async def pay(currency: str = "EUR", cents: int = 1, note: str = "", to: str = "") -> str:
        return to

    outcome = await Pipeline(Toolset([pay])).run(ToolCall("pay", raw), Run())

    assert isinstance(outcome, Suspended)
    assert list(outcome.request.arguments) == ["cents", "to", "currency", "note"]


@pytest.mark.parametrize("given", ["grant", "deny"])
async def test_a_denial_in_the_store_counts_whatever_comes_with_the_call(given: str) -> None:
    store, ran = MemoryApprovalStore(), list[str]()

    @ez_tool(requires_approval=True)
    def book(city: str) -> None:
        """Book a room."""
        ran.append(city)

    pipeline = Pipeline([book])
    call = await pipeline.run(ToolCall("book", {"city": "Oslo"}), Run(approvals=store))
    assert isinstance(call, Suspended)
    request = call.request
    await store.answer(request.deny(by="ann", message="not there"))

    answer = request.grant("bob") if given == "grant" else request.deny(by="bob", message="too far")
    outcome = await pipeline.run(call, Run(approvals=store), grant=answer)

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, ran) == ("not there", [])


async def test_the_same_grant_may_be_in_the_store_and_come_with_the_call_and_another_one_is_refused() -> None:
    store, ran = MemoryApprovalStore(), list[str]()

    @ez_tool(requires_approval=True)
    def book(city: str) -> None:
        """Book a room."""
        ran.append(city)

    pipeline, outcomes = Pipeline([book]), list[Outcome]()
    for override in (None, {"city": "Rome"}):
        call = await pipeline.run(ToolCall("book", {"city": "Oslo"}), Run(approvals=store))
        assert isinstance(call, Suspended)
        await store.answer(call.request.grant("ann"))
        given = call.request.grant("bob", override_args=override)
        outcomes.append(await pipeline.run(call, Run(approvals=store), grant=given))

    assert [type(outcome) for outcome in outcomes] == [Completed, Failed]
    assert "answered before by ann" in outcomes[1].text()
    assert ran == ["Oslo"]
