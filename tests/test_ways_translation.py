"""Translation: each way in calls the pipeline, and its caller is given what came of the call.

Every way in runs these. What a gate does is tested over a few of them (tests/test_ways.py, tests/test_ways_gates.py).
"""

import asyncio
import json
import re
from base64 import b64encode
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr

from tests.ways import appending, asking, brief, decides, every_way, ways
from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all
from toolcrib.calls import Completed, Failed, Grant, Media, Reject, Rejected, RunNormally, Suspended, outcome_from_dict
from toolcrib.errors import ApprovalError, InvalidArguments
from toolcrib.results import MemoryResultStore
from toolcrib.schema import Redacted, RunContext
from toolcrib.testing import Way
from toolcrib.tools import BaseTool, ez_tool, tool
from toolcrib.toolsets import Toolset

# --- completed -------------------------------------------------------------------------------------------------------


@every_way
async def test_a_call_gives_what_the_tool_returns(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)]).call("append", {"text": "x", "times": 2})

    assert isinstance(outcome, Completed)
    assert (outcome.value, ran) == ("xx", [("x", 2)])


@every_way
async def test_a_stream_gives_all_its_values(way: Way) -> None:
    @ez_tool
    async def count(to: int) -> Any:
        for number in range(to):
            yield number

    outcome = await way([count]).call("count", {"to": 3})

    assert isinstance(outcome, Completed)
    assert outcome.value == [0, 1, 2]


@ways("run")
@pytest.mark.parametrize("streams", [False, True], ids=["returns", "streams"])
async def test_a_tool_that_calls_another_directly_gives_it_the_runs_context(way: Way, streams: bool) -> None:
    @tool
    async def whose(ctx: RunContext) -> str:
        return ctx.deps

    @ez_tool
    async def once() -> str:
        return await whose()

    @ez_tool
    async def each() -> Any:
        yield await whose()
        yield await whose()

    outcome = await way([each if streams else once], deps="Ann's").call("each" if streams else "once")

    assert isinstance(outcome, Completed)
    assert outcome.value == (["Ann's", "Ann's"] if streams else "Ann's")


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
BASE64 = b64encode(PNG).decode()


class Chart(BaseModel):
    title: str
    image: Media


@every_way
@pytest.mark.parametrize("inside", [False, True])
async def test_an_image_arrives_as_one_or_by_its_name(way: Way, inside: bool) -> None:
    image = Media("image/png", PNG, name="chart.png")

    @ez_tool
    async def draw() -> Any:
        return Chart(title="Orders", image=image) if inside else ["Orders", image]

    caller = way([draw])

    outcome = await caller.call("draw")

    assert isinstance(outcome, Completed)
    [shown] = caller.shown
    assert "Orders" in shown
    whole = any(text in shown.replace("-", "+").replace("_", "/") for text in (BASE64, BASE64.replace("/", "\\/")))
    assert (whole, whole or "chart.png" in shown) == ("media" in way.abilities, True)
    assert BASE64 not in json.dumps(caller.records)
    kept = caller.records[0]["outcome"]["value"]
    assert (kept["image"] if inside else kept[1]) == image.facts()


@every_way
async def test_a_long_result_is_cut_for_the_caller(way: Way) -> None:
    @ez_tool(max_result_chars=200)
    async def read() -> dict[str, str]:
        return {"text": "x" * 5_000}

    caller = way([read])

    await caller.call("read")

    [shown] = caller.shown
    assert "characters cut" in shown
    assert 100 < shown.count("x") < 500


@every_way
async def test_a_long_result_is_kept_and_read_by_its_handle(way: Way) -> None:
    @ez_tool(max_result_chars=200)
    async def find() -> dict[str, str]:
        return {"text": "x" * 5_000, "end": "the last word"}

    caller = way(Toolset([find], results=MemoryResultStore()))

    await caller.call("find")

    [shown] = caller.shown
    kept = re.search(r"res_[\w-]+", shown)
    if "code" in way.title or "program" in way.title:  # which is given all of it
        assert (kept, "x" * 5_000 in shown) == (None, True)
        return
    assert kept is not None
    assert 100 < shown.count("x") < 500
    await caller.call("read_result", {"handle": kept.group(), "path": "$.end"})
    assert "the last word" in caller.shown[1]
    assert "Too long" not in caller.shown[1]


# --- failed and rejected ---------------------------------------------------------------------------------------------


@every_way
async def test_what_a_tool_raises_is_a_failure_with_its_words(way: Way) -> None:
    @ez_tool
    async def read(path: str) -> str:
        raise FileNotFoundError(f"no file {path}")

    outcome = await way([read]).call("read", {"path": "a.txt"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.error_type, outcome.message) == ("tool_error", "FileNotFoundError", "no file a.txt")


@every_way
async def test_a_long_error_is_cut_for_the_caller(way: Way) -> None:
    @ez_tool(max_result_chars=200)
    async def read() -> None:
        raise OSError("x" * 5_000)

    caller = way([read])

    await caller.call("read")

    [shown] = caller.shown
    assert "characters cut" in shown
    assert 100 < shown.count("x") < 800


@every_way
async def test_an_unknown_tool_is_said_to_be_unknown(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)]).call("appendd", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("unknown_tool", [])
    assert "appendd" in outcome.message


@every_way
async def test_a_tool_that_is_off_cannot_be_called(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran, default=False)]).call("append", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert outcome.code in ("not_available", "unknown_tool")  # a program does not even know its name
    assert ran == []


@every_way
async def test_is_available_is_asked_when_the_call_arrives(way: Way) -> None:
    ran: list[str] = []

    class Shut(BaseTool):
        def is_available(self, ctx: RunContext) -> bool:
            return False

        async def call(self, ctx: RunContext, text: str) -> None:
            ran.append(text)

    outcome = await way([Shut]).call("shut", {"text": "x"})

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("not_available", [])


@ways("model")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"text": "x", "times": "many"}, "times"),
        ({}, "text"),
        ({"text": "x", "colour": "red"}, "colour"),
    ],
    ids=["wrong type", "missing", "unknown"],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(way: Way, arguments: Any, field: str) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)]).call("append", arguments)

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("invalid_arguments", [])
    assert outcome.retryable
    assert field in [problem.field for problem in outcome.problems]
    assert "append" in outcome.message


@ways("json")
@pytest.mark.parametrize("text", ['{"text": "x"', "[1]", "text", '"x"'])
async def test_text_that_is_no_json_object_never_reaches_the_tool(way: Way, text: str) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)]).call("append", text)

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("invalid_arguments", [])
    assert outcome.problems[0].problem


@every_way
async def test_a_rejection_by_a_hook_stops_the_call(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran)], hooks=decides(lambda given: Reject("not today"))).call(
        "append", {"text": "x"}
    )

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.source, ran) == ("not today", "hook", [])


# --- suspended and answered ------------------------------------------------------------------------------------------


@every_way
async def test_unapproved_call_never_runs(way: Way) -> None:
    ran: list[Any] = []

    outcome = await way([appending(ran, requires_approval=True)]).call("append", {"text": "x", "times": 2})

    assert isinstance(outcome, Suspended)
    assert ran == []
    assert outcome.request.arguments == {"text": "x", "times": 2}


@every_way
async def test_an_approver_lets_the_call_run_and_the_record_says_who(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)], approver=approve_all)

    outcome = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Completed)
    assert ran == [("x", 1)]
    [record] = caller.records
    assert record["approval"]["kind"] == "grant"
    assert record["approval"]["approver"] in ("approve_all", "--yes")


@every_way
async def test_a_denial_is_shown_to_the_model_and_recorded(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)], approver=deny_all)

    outcome = await caller.call("append", {"text": "x"})

    assert isinstance(outcome, Rejected)
    assert (outcome.source, ran) == ("user", [])
    [record] = caller.records
    assert record["approval"]["kind"] == "denial"
    assert record["outcome"]["reason"] == outcome.reason


@ways("answer")
async def test_a_grant_runs_the_call_that_waited(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    outcome = await caller.answer(waiting, waiting.request.grant("ann"))

    assert isinstance(outcome, Completed)
    assert ran == [("x", 1)]
    assert caller.records[-1]["approval"]["approver"] == "ann"


@ways("answer")
async def test_a_denial_message_is_what_the_model_reads(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    outcome = await caller.answer(waiting, waiting.request.deny(message="use a shorter text"))

    assert isinstance(outcome, Rejected)
    assert (outcome.reason, outcome.source, ran) == ("use a shorter text", "user", [])


@ways("answer")
async def test_without_an_answer_it_waits_on(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])

    again = await caller.answer(await caller.call("append", {"text": "x"}), None)

    assert isinstance(again, Suspended)
    assert ran == []


@ways("answer")
async def test_an_edit_that_does_not_fit_uses_no_yes_up(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    for wrong in ({"text": "x", "times": "many"}, {"times": 2}, {"text": "x", "time": 2}):
        try:
            refused: Any = await caller.answer(waiting, waiting.request.grant("ann", override_args=wrong))
        except (ApprovalError, InvalidArguments) as error:
            refused = error
        told = refused.exception if isinstance(refused, Failed) else refused
        assert isinstance(told, ApprovalError if isinstance(refused, Failed) else ValueError)
        assert "time" in str(told) or "text" in str(told)
    outcome = await caller.answer(waiting, waiting.request.grant("ann", override_args={"text": "y", "times": 2}))

    assert isinstance(outcome, Completed)
    assert ran == [("y", 2)]


@ways("answer")
async def test_a_grant_is_used_once(way: Way) -> None:
    ran: list[Any] = []
    caller = way([appending(ran, requires_approval=True)])
    waiting = await caller.call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    grant = waiting.request.grant()

    first = await caller.answer(waiting, grant)
    second = await caller.answer(waiting, grant)

    assert isinstance(first, Completed)
    assert ran == [("x", 1)]
    if isinstance(second, Failed):
        assert second.code == "approval_error"
    else:  # as the store knows what came of it
        assert second.text() == first.text()


@ways("answer")
async def test_a_call_is_resumed_from_json_without_its_hooks(way: Way) -> None:
    ran: list[Any] = []
    asked: list[str] = []
    hooks = decides(lambda given: asked.append("asked") or RunNormally(given.model_copy(update={"times": 2})))
    waiting = await way([appending([], requires_approval=True)], hooks=hooks).call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))

    outcome = await way([appending(ran, requires_approval=True)], hooks=hooks).answer(
        restored, Grant.from_dict(json.loads(json.dumps(waiting.request.grant().to_dict())))
    )

    assert isinstance(outcome, Completed)
    assert (ran, asked) == ([("x", 2)], ["asked"])


@ways("answer")
async def test_a_resumed_tool_must_still_be_available(way: Way) -> None:
    ran: list[Any] = []
    waiting = await way([appending(ran, requires_approval=True)]).call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)

    outcome = await way([appending(ran, requires_approval=True)], available=frozenset()).answer(
        waiting, waiting.request.grant()
    )

    assert isinstance(outcome, Failed)
    assert (outcome.code, ran) == ("not_available", [])


@every_way
async def test_a_bare_yes_answers_what_wants_yes_or_no_and_the_record_has_the_question(way: Way) -> None:
    got: list[Any] = []
    if way.title == "mcp in mcp":
        pytest.skip("the server inside asks its client, which is the server outside")
    caller = way([asking(got)], approver=approve_all)

    outcome = await caller.call("ask", {"text": "Sure?"})

    assert isinstance(outcome, Completed), outcome
    assert got == [True]
    [record] = caller.records
    [asked] = record["asked"]
    assert (asked["what"], asked["of"], asked["text"]) == ("elicit", "approver", "Sure?")
    assert asked["outcome"] == "accept"
    assert asked["by"] in ("approve_all", "--yes")
    assert asked["duration_ms"] >= 0


@ways("answer")
async def test_a_call_whose_tool_has_gained_a_parameter_is_asked_about_again(way: Way) -> None:
    ran: list[Any] = []
    waiting = await way([brief(requires_approval=True)]).call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    restored = outcome_from_dict(json.loads(json.dumps(waiting.to_dict())))

    again = await way([appending(ran, requires_approval=True)]).answer(restored, waiting.request.grant("ann"))

    assert isinstance(again, Suspended), again
    assert (again.request.replaces, again.request.arguments) == (waiting.request.id, {"text": "x", "times": 1})
    assert ran == []


@ways("answer")
async def test_a_call_whose_tool_has_gained_a_parameter_runs_by_an_answer_to_the_new_request(way: Way) -> None:
    if way.title == "google_adk":
        pytest.skip("ADK drops a second answer to one call")
    ran: list[Any] = []
    waiting = await way([brief(requires_approval=True)]).call("append", {"text": "x"})
    assert isinstance(waiting, Suspended)
    caller = way([appending(ran, requires_approval=True)])
    again = await caller.answer(waiting, waiting.request.grant("ann"))
    assert isinstance(again, Suspended)

    done = await caller.answer(again, again.request.grant("ben"))

    assert isinstance(done, Completed), done
    assert ran == [("x", 1)]


@ways("answer", "id")
async def test_a_call_that_was_cut_off_is_asked_about_and_not_executed(way: Way) -> None:
    ran: list[Any] = []
    store = MemoryApprovalStore()
    caller = way([appending(ran, requires_approval=True)], approvals=store)
    waiting = await caller.call("append", {"text": "x"}, id="c1")
    assert isinstance(waiting, Suspended)
    grant = waiting.request.grant("ann")
    await store.use(waiting.request, grant)
    await store.begin(waiting.request, grant)
    await store.break_off(waiting.request, grant)

    doubt = await caller.answer(waiting, grant)

    assert isinstance(doubt, Suspended)
    assert doubt.request.in_doubt
    assert ran == []
    if way.title not in ("openai_agents", "langchain", "google_adk"):  # which ask once about a call
        done = await caller.answer(doubt, doubt.request.done("by hand"))
        assert (done.text(), ran) == ("by hand", [])


# --- cancelled -------------------------------------------------------------------------------------------------------


@ways("cancel")
async def test_cancelling_stops_the_tool_and_closes_the_record(way: Way) -> None:
    reached: list[str] = []
    begun = asyncio.Event()

    @ez_tool
    async def hang() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            reached.append("stopped")

    caller = way([hang])
    task = asyncio.create_task(caller.call("hang"))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached == ["stopped"]
    assert [record["outcome"]["kind"] for record in caller.records] == ["cancelled"]


# --- recorded --------------------------------------------------------------------------------------------------------


@every_way
async def test_every_call_is_recorded_once(way: Way) -> None:
    caller = way([appending([])])

    await caller.call("append", {"text": "x", "times": 1})
    await caller.call("append", {"text": "x", "times": 0})

    assert [record["outcome"]["value"] for record in caller.records] == ["x", ""]
    assert caller.records[0]["arguments"] == {"text": "x", "times": 1}


@every_way
@pytest.mark.parametrize("fits", [True, False])
async def test_a_secret_is_in_no_record_and_no_message(way: Way, fits: bool) -> None:
    got: list[str] = []

    @ez_tool(requires_approval=lambda args, ctx: True)
    async def login(user: int, password: SecretStr, pin: Annotated[str, Redacted]) -> None:
        got.append(pin)

    caller = way([login], approver=approve_all)
    arguments = {"user": 1 if fits else "one", "password": "hunter2", "pin": "pin-4711"}

    outcome = await caller.call("login", arguments)

    assert got == (["pin-4711"] if fits else [])
    shown = json.dumps([caller.records, outcome.to_dict(), repr(outcome)], default=str)
    assert "hunter2" not in shown
    assert "pin-4711" not in shown


@every_way
@pytest.mark.parametrize("streams", [False, True], ids=["returns", "streams"])
async def test_an_error_quotes_no_secret(way: Way, streams: bool, caplog: pytest.LogCaptureFixture) -> None:
    def refused(password: SecretStr, pin: str) -> Exception:
        written = json.dumps(json.dumps({"is": password.get_secret_value()}))
        return ValueError(f"not {written} with {pin}", {"at": [f"\"{pin}'"]})

    @ez_tool(name="login")
    async def once(password: SecretStr, pin: Annotated[str, Redacted]) -> None:
        raise refused(password, pin)

    @ez_tool(name="login")
    async def each(password: SecretStr, pin: Annotated[str, Redacted]) -> Any:
        yield 1
        raise refused(password, pin)

    caller = way([each if streams else once])

    with caplog.at_level("DEBUG", logger="toolcrib"):
        outcome = await caller.call("login", {"password": 'hu"zqx\\2', "pin": "pin'zqx-p"})

    assert isinstance(outcome, Failed)
    lines = [
        line for line in caplog.records if line.name != "toolcrib.calls"
    ]  # which has the arguments as a way knows them
    told = [line.getMessage() + (line.exc_text or "") for line in lines]
    shown = json.dumps([caller.records, outcome.text(), outcome.to_dict(), repr(outcome), told], default=str)
    assert "zqx" not in shown


@ways("answer")
async def test_an_approval_text_shows_no_secret(way: Way) -> None:
    @ez_tool(requires_approval=True)
    async def login(password: SecretStr, pin: Annotated[str, Redacted]) -> None: ...

    waiting = await way([login]).call("login", {"password": "hunter2", "pin": "pin-4711"})

    assert isinstance(waiting, Suspended)
    shown = waiting.request.text() + json.dumps(waiting.request.to_dict()) + repr(waiting) + waiting.text()
    assert "hunter2" not in shown
    assert "pin-4711" not in shown
