"""A tool asks the client that made its call: forms, pages, samplings, folders, log lines; and the host in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, SecretStr
from typing_extensions import TypedDict

from toolcrib.approvals import Approver, MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Failed, Grant, Suspended, ToolCall
from toolcrib.errors import ClientAnswerError, ClientUnavailable, HookError
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.record import ListSink
from toolcrib.schema import Elicited, RunContext, Sampled, SampleRequest
from toolcrib.testing import ScriptedClient
from toolcrib.tools import Tool, current_deadline, ez_tool, tool
from toolcrib.turns import Turn


class Seat(Enum):
    AISLE = "aisle"
    WINDOW = "window"


@dataclass
class Choice:
    seat: Seat
    bags: int = 1
    meals: Literal["none", "all"] = "none"
    note: str | None = None


def asking(form: Any, got: list[Any], **options: Any) -> Tool[..., Any]:
    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        got.append(await ctx.elicit("Which?", form, **options))
        return "asked"

    return ask


async def call(tool: Tool[..., Any], run: Run, **arguments: Any) -> Any:
    return await Pipeline([tool]).run(ToolCall(tool.name, arguments), run)


async def test_a_form_has_plain_fields_and_its_answer_is_of_the_type_that_was_asked_for() -> None:
    client, got = ScriptedClient(forms=[{"seat": "window"}]), list[Any]()

    await call(asking(Choice, got), Run(channel=Channel(client=client)))

    assert got == [Elicited("accept", Choice(Seat.WINDOW))]
    assert client.asked[0].schema["properties"] == {
        "seat": {"enum": ["aisle", "window"], "title": "Seat", "type": "string"},
        "bags": {"default": 1, "title": "Bags", "type": "integer"},
        "meals": {"default": "none", "enum": ["none", "all"], "title": "Meals", "type": "string"},
        "note": {"title": "Note", "type": "string"},
    }
    assert client.asked[0].schema["required"] == ["seat"]


async def test_a_plain_type_is_one_field() -> None:
    client, got = ScriptedClient(forms=[{"value": "3"}]), list[Any]()

    await call(asking(int, got), Run(channel=Channel(client=client)))

    assert got == [Elicited("accept", 3)]


async def test_a_json_schema_goes_as_it_is_and_defaults_are_filled_in() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 7}, "t": {"type": "string"}}}
    client, got = ScriptedClient(forms=[{"t": "x"}]), list[Any]()

    await call(asking(schema, got), Run(channel=Channel(client=client)))

    assert got == [Elicited("accept", {"n": 7, "t": "x"})]
    assert client.asked[0].schema == schema


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_answer_that_is_none_has_no_data(action: Any) -> None:
    got = list[Any]()

    await call(asking(Choice, got), Run(channel=Channel(client=ScriptedClient(forms=[Elicited(action)]))))

    assert got == [Elicited(action)]


@pytest.mark.parametrize("form", [Choice, {"type": "object", "properties": {"seat": {"enum": ["aisle"]}}}])
async def test_an_answer_that_does_not_fit_is_asked_for_again_and_then_named(form: Any) -> None:
    client = ScriptedClient(forms=[{"seat": "roof"}, {"seat": "wing"}])

    outcome = await call(asking(form, []), Run(channel=Channel(client=client)))

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.exception, ClientAnswerError)
    assert "the answer of the client does not fit what `ask` asked for: seat" in outcome.message
    assert "Which?\n(The answer before does not fit: seat" in client.asked[1].message


async def test_a_field_that_is_not_plain_is_named() -> None:
    outcome = await call(asking(dict[str, list[int]], []), Run(channel=Channel(client=ScriptedClient())))

    assert isinstance(outcome, Failed)
    outcome = await call(asking(list[int], []), Run(channel=Channel(client=ScriptedClient())))
    assert isinstance(outcome, Failed)
    assert "field `value` is not plain" in outcome.message


async def test_a_page_has_an_address_and_an_id() -> None:
    client, got = ScriptedClient(forms=[{}]), list[Any]()

    await call(asking(None, got, url="https://pay.example/1"), Run(channel=Channel(client=client)))

    assert got == [Elicited("accept")]
    assert client.asked[0].url == "https://pay.example/1"
    assert client.asked[0].id


def approver_giving(given: Any, asked: list[ApprovalRequest]) -> Approver:
    async def approver(request: ApprovalRequest) -> Grant | None:
        asked.append(request)
        return None if given is None else request.grant(user_input=given)

    return approver


@pytest.mark.parametrize("client", [None, ScriptedClient(lacks=["elicit"])])
async def test_the_approver_is_asked_where_the_client_cannot_be(client: Any) -> None:
    asked, got = list[ApprovalRequest](), list[Any]()
    run = Run(channel=Channel(client=client), approver=approver_giving({"seat": "aisle"}, asked))

    await call(asking(Choice, got), run)

    assert got == [Elicited("accept", Choice(Seat.AISLE))]
    assert asked[0].reason == "Which?"
    assert asked[0].parameters is not None


async def test_a_bare_yes_of_the_approver_does_not_fill_in_a_form() -> None:
    asked = list[ApprovalRequest]()

    outcome = await call(asking(Choice, []), Run(approver=approver_giving("yes", asked)))

    assert isinstance(outcome, Failed)
    assert "the answer of host does not fit what `ask` asked for: seat" in outcome.message
    assert (asked[0].asked_by, asked[0].text().split("\n")[0]) == ("ask", "during ask, it asks: Which?")
    assert "seat" in asked[1].metadata["missing"]
    assert asked[0].id != asked[1].id


class Optional(TypedDict, total=False):
    note: str
    size: Annotated[int, Field(ge=1)]


@pytest.mark.parametrize(
    ("form", "given", "answer"),
    [
        (None, ..., {}),
        (bool, ..., True),
        (bool, "no", False),
        (bool, {"value": False}, False),
        (int, "3", 3),
        (int, 3, 3),
        (float, "2.5", 2.5),
        (str, "yes", "yes"),
        (str, "7", "7"),
        (Seat, "window", Seat.WINDOW),
        (Literal["a", "b"], "b", "b"),
        (list[Literal["a", "b"]], "a, b", ["a", "b"]),
        (list[Literal["a", "b"]], '["b"]', ["b"]),
        (Choice, '{"seat": "aisle", "bags": 2}', Choice(Seat.AISLE, 2)),
        (Optional, ..., {}),
        (Optional, {"size": 2}, {"size": 2}),
    ],
)
async def test_the_answer_of_an_approver_is_read_by_the_fields(form: Any, given: Any, answer: Any) -> None:
    got = list[Any]()

    async def approver(request: ApprovalRequest) -> Grant:
        return request.grant() if given is ... else request.grant(user_input=given)

    await call(asking(form, got), Run(approver=approver))

    assert got == [Elicited("accept", answer)]


@pytest.mark.parametrize(
    ("form", "given"),
    [
        (int, "many"),
        (bool, "perhaps"),
        (Seat, "roof"),
        (Optional, {"size": 0}),
        (Optional, '{"size": 1, "size": 2}'),
        (list[Literal["a"]], "c"),
        (str, ...),
    ],
)
async def test_a_wrong_answer_is_asked_for_once_more(form: Any, given: Any) -> None:
    asked, got = list[ApprovalRequest](), list[Any]()

    async def approver(request: ApprovalRequest) -> Grant | None:
        asked.append(request)
        return None if len(asked) > 1 else request.grant() if given is ... else request.grant(user_input=given)

    await call(asking(form, got), Run(approver=approver))

    assert got == [Elicited("cancel")]
    assert asked[1].metadata["missing"]


class Watched(MemoryApprovalStore):
    """A store that says when a request is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = asyncio.Event()

    async def put(self, request: ApprovalRequest) -> None:
        await super().put(request)
        self.kept.set()


async def test_without_an_approver_the_question_waits_in_the_store() -> None:
    got, store = list[Any](), Watched()
    calling = asyncio.create_task(call(asking(Seat, got), Run(approvals=store, principal="ann")))

    await store.kept.wait()
    [entry] = await store.list()
    await store.answer(entry.request.grant("bo (console)", override_args={"value": "aisle"}))
    await calling

    assert got == [Elicited("accept", Seat.AISLE)]
    assert (entry.request.principal, entry.request.asked_by) == ("ann", "ask")


async def test_a_question_that_nobody_answers_in_the_store_is_withdrawn() -> None:
    got, store = list[Any](), MemoryApprovalStore()

    await call(asking(Seat, got), Run(approvals=store, channel=Channel(question_wait=0.01)))

    assert got == [Elicited("cancel")]
    assert [entry.state for entry in await store.list()] != ["pending"]


# --- the clocks


async def pass_time() -> None:
    """Have the time of all deadlines around this code be over, unless their clocks stand."""
    innermost = current_deadline()
    assert innermost is not None
    for deadline in innermost.around():
        deadline.expire()
    await asyncio.sleep(0)


async def slow_approver(request: ApprovalRequest) -> Grant:
    await pass_time()
    return request.grant()


class SlowClient(ScriptedClient):
    """A client whose person and model take their time."""

    async def elicit(self, request: Any) -> Elicited[dict[str, Any]]:
        await pass_time()
        return await super().elicit(request)

    async def sample(self, request: SampleRequest) -> Sampled:
        await pass_time()
        return await super().sample(request)

    async def roots(self) -> Any:
        await pass_time()
        return await super().roots()


async def _elicit(ctx: RunContext[Any]) -> Any:
    return await ctx.elicit("Sure?", bool)


async def _sample(ctx: RunContext[Any]) -> Any:
    return await ctx.sample("Hello?")


async def _roots(ctx: RunContext[Any]) -> Any:
    return await ctx.roots()


async def _ask(ctx: RunContext[Any]) -> Any:
    assert ctx.ask is not None
    return await ctx.ask(ApprovalRequest("q1", ctx.call_id, ctx.tool_name, {}, ""))


async def _several(ctx: RunContext[Any]) -> Any:
    return await asyncio.gather(_elicit(ctx), _sample(ctx), _roots(ctx))


QUESTIONS = [_elicit, _sample, _roots, _ask, _several]


def slow_run() -> Run:
    return Run(
        channel=Channel(client=SlowClient(forms=[{"value": True}], texts=["yes"], roots=["file:///a"])),
        approver=slow_approver,
    )


@pytest.mark.parametrize("question", QUESTIONS)
async def test_the_time_of_a_tool_stands_while_it_asks_and_goes_on_after(question: Any) -> None:
    reached = list[str]()

    @ez_tool(timeout=60)
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        await question(ctx)
        reached.append("asked")
        await pass_time()
        return "too late"

    outcome = await call(ask, slow_run())

    assert isinstance(outcome, Failed)
    assert (outcome.code, reached) == ("tool_timeout", ["asked"])


async def test_the_time_of_a_stream_stands_while_it_asks() -> None:
    @ez_tool(timeout=60)
    async def ask(ctx: RunContext[Any]) -> AsyncIterator[str]:
        """Ask."""
        yield "first"
        await ctx.elicit("Sure?", bool)
        yield "second"

    outcome = await call(ask, slow_run())

    assert isinstance(outcome, Completed), outcome
    assert outcome.value == ["first", "second"]


@pytest.mark.parametrize("approval", [False, True])
async def test_the_time_of_the_tool_around_stands_while_one_inside_asks(approval: bool) -> None:
    @ez_tool(requires_approval=approval, timeout=60)
    async def inner(ctx: RunContext[Any]) -> str:
        """Ask."""
        return "approved" if approval else (await ctx.elicit("Sure?", bool)).action

    @ez_tool(timeout=60)
    async def outer(ctx: RunContext[Any]) -> str:
        """Run another."""
        return (await Pipeline([inner]).run(ToolCall("inner", {}), ctx.run)).text()

    outcome = await call(outer, slow_run())

    assert isinstance(outcome, Completed), outcome
    assert outcome.value in ("approved", "accept")


async def test_the_time_of_a_turn_stands_while_its_tool_asks() -> None:
    @tool(register=False)
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        return (await ctx.elicit("Sure?", bool)).action

    assert await Turn(ask, timeout=60).returning(run=slow_run()) == "accept"


# --- the record


async def test_the_record_has_each_question_and_no_answer() -> None:
    sink, client = ListSink(), ScriptedClient(forms=[{"seat": "window"}], texts=["secret reply"], roots=["file:///a"])

    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        await ctx.elicit("Which seat?", Choice)
        await ctx.sample("What is the capital of Norway?")
        await ctx.roots()
        await ctx.log("warning", {"key": SecretStr("hunter2"), "left": 3})
        return "asked"

    await Pipeline([ask], sinks=[sink]).run(ToolCall("ask", {}), Run(channel=Channel(client=client)))

    kinds = [event.kind for event in sink.events]
    assert kinds == ["received", "started", *("asked", "answered") * 3, "logged", "ended"]
    elicited, sampled, roots = sink.records[0].asked
    assert (elicited["what"], elicited["of"], elicited["text"]) == ("elicit", "client", "Which seat?")
    assert (elicited["outcome"], elicited["fields"]) == ("accept", "seat, bags, meals, note")
    assert (sampled["text"], sampled["outcome"]) == ("What is the capital of Norway?", "answered")
    assert (roots["what"], roots["outcome"]) == ("roots", "answered")
    logged = sink.events[-2].data
    assert (logged["level"], logged["data"]["left"], logged["logger"]) == ("warning", 3, "ask")
    told = str([event.to_dict() for event in sink.events])
    assert not [word for word in ("hunter2", "window", "secret reply") if word in told]


async def test_a_question_that_fails_and_one_that_is_cut_off_are_in_the_record() -> None:
    sink, asked = ListSink(), asyncio.Event()

    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        with suppress(HookError):
            await ctx.sample("?")
        asking = asyncio.create_task(ctx.elicit("Sure?", bool))
        await asked.wait()
        asking.cancel()
        await asyncio.wait([asking])
        return ""

    async def broken(request: SampleRequest) -> Sampled:
        raise RuntimeError("no model")

    async def approver(request: ApprovalRequest) -> None:
        asked.set()
        await asyncio.Event().wait()

    await Pipeline([ask], sinks=[sink]).run(ToolCall("ask", {}), Run(channel=Channel(sample=broken), approver=approver))

    sampled, elicited = sink.records[0].asked
    assert (sampled["of"], sampled["outcome"], sampled["error"]) == ("host", "failed", "RuntimeError")
    assert (elicited["of"], elicited["outcome"]) == ("approver", "cancelled")


async def test_what_is_kept_of_questions_and_lines_is_bounded() -> None:
    sink = ListSink()

    @ez_tool
    async def ask(ctx: RunContext[Any]) -> str:
        """Ask."""
        for _ in range(120):
            await ctx.elicit("x" * 50_000, bool)
        for _ in range(1_100):
            await ctx.log("info", "y" * 20_000)
        return ""

    async def approver(request: ApprovalRequest) -> Grant:
        return request.grant("ann")

    await Pipeline([ask], sinks=[sink]).run(ToolCall("ask", {}), Run(approver=approver))

    lines = [event.data for event in sink.events if event.kind == "logged"]
    assert len(sink.records[0].asked) == 100
    assert len(sink.records[0].asked[0]["text"]) < 3_000
    assert len(lines) == 1_001
    assert len(lines[0]["data"]) < 11_000
    assert "the rest is left out" in lines[-1]["data"]


async def test_the_address_of_a_page_is_recorded_without_what_may_be_a_key() -> None:
    sink = ListSink()
    tool = asking(None, [], url="https://pay.example/1?token=hunter2#x")

    await Pipeline([tool], sinks=[sink]).run(
        ToolCall("ask", {}), Run(channel=Channel(client=ScriptedClient(forms=[{}])))
    )

    assert sink.records[0].asked[0]["page"] == "https://pay.example/1"


async def test_an_answer_of_the_client_approves_no_call() -> None:
    ran = list[str]()

    @ez_tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    client = ScriptedClient(forms=[{"decision": "approve"}])

    outcome = await call(pay, Run(channel=Channel(client=client)))

    assert isinstance(outcome, Suspended)
    assert (ran, client.asked) == ([], [])


async def test_a_question_that_no_person_can_answer_says_what_would_mend_it() -> None:
    outcome = await call(asking(Choice, []), Run())

    assert isinstance(outcome, Failed)
    assert isinstance(outcome.exception, ClientUnavailable)
    assert "no client made this call" in outcome.message
    assert "give the run an approver" in outcome.message


def sampling(messages: Any, got: list[Sampled], **options: Any) -> Tool[..., Any]:
    @ez_tool
    async def think(ctx: RunContext[Any]) -> str:
        """Think."""
        got.append(await ctx.sample(messages, **options))
        return got[0].text

    return think


async def test_the_clients_model_gets_what_the_protocol_has() -> None:
    client, got = ScriptedClient(texts=["Oslo"]), list[Sampled]()

    outcome = await call(
        sampling("Capital?", got, max_tokens=5, system_prompt="Brief."), Run(channel=Channel(client=client))
    )

    assert outcome.value == "Oslo"
    assert client.sampled[0].params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}],
        "maxTokens": 5,
        "systemPrompt": "Brief.",
    }


async def test_tools_are_offered_and_their_results_go_back() -> None:
    use: dict[str, Any] = {"type": "tool_use", "id": "u1", "name": "look", "input": {}}
    client = ScriptedClient(texts=[Sampled([use], stop_reason="toolUse"), "found"])

    @ez_tool
    async def look() -> str:
        """Look."""
        return "here"

    @ez_tool
    async def find(ctx: RunContext[Any]) -> str:
        """Find."""
        first = await ctx.sample("find it", [look])
        results = first.results({use["id"]: await look() for use in first.tool_uses})
        return (await ctx.sample([{"role": "user", "content": "find it"}, first.message(), results], [look])).text

    outcome = await call(find, Run(channel=Channel(client=client)))

    assert outcome.value == "found"
    assert client.sampled[0].params["tools"][0]["name"] == "look"
    assert client.sampled[1].params["messages"][2]["content"][0] == {
        "type": "tool_result",
        "toolUseId": "u1",
        "content": [{"type": "text", "text": "here"}],
    }
    with pytest.raises(ValueError, match="waits for the results of look"):
        Sampled([use]).results({})


async def test_the_hosts_model_answers_where_the_client_has_none() -> None:
    async def model(request: SampleRequest) -> Sampled:
        return Sampled([{"type": "text", "text": "the host's"}])

    outcome = await call(sampling("?", []), Run(channel=Channel(client=ScriptedClient(lacks=["sample"]), sample=model)))

    assert outcome.value == "the host's"


async def test_a_sampling_without_a_model_or_with_an_unknown_option_says_so() -> None:
    none = await call(sampling("?", []), Run())
    typo = await call(sampling("?", [], max_token=3), Run(channel=Channel(client=ScriptedClient(texts=["x"]))))

    assert "Run(channel=Channel(sample=...))" in none.message
    assert "no option `max_token`" in typo.message


async def test_folders_are_those_of_the_client_and_none_without_one() -> None:
    got = list[Any]()

    @ez_tool
    async def look(ctx: RunContext[Any]) -> str:
        """Look."""
        got.append([root.uri for root in await ctx.roots()])
        return ""

    await call(look, Run(channel=Channel(client=ScriptedClient(roots=["file:///a"]))))
    await call(look, Run())
    await RunContext(None, "", "", "").roots()

    assert got == [["file:///a"], []]


async def test_a_log_line_goes_to_the_client_and_to_the_log_here(caplog: pytest.LogCaptureFixture) -> None:
    client = ScriptedClient()

    @ez_tool
    async def work(ctx: RunContext[Any]) -> str:
        """Work."""
        await ctx.log("warning", {"left": 3})
        return ""

    with caplog.at_level(logging.INFO, "toolcrib.tools"):
        await call(work, Run(channel=Channel(client=client)))

    assert [(line.level, line.data, line.logger) for line in client.lines] == [("warning", {"left": 3}, "work")]
    assert "work: {'left': 3}" in caplog.text


async def test_what_a_client_answers_is_a_strangers_for_the_policy_also_through_a_trusted_tool() -> None:
    paid = list[str]()

    @ez_tool(effect="none", source="trusted")
    async def payee(ctx: RunContext[Any]) -> str:
        """Say who is paid."""
        return (await ctx.sample("who?")).text

    @ez_tool(effect="spend", source="trusted")
    async def pay(recipient: str) -> str:
        """Pay."""
        paid.append(recipient)
        return "paid"

    run = Run(features=[Provenance()], channel=Channel(client=ScriptedClient(texts=["GB29NWBK60161331926819"])))
    pipeline = Pipeline([payee, pay])

    await pipeline.run(ToolCall("payee", {}), run)
    outcome = await pipeline.run(ToolCall("pay", {"recipient": "GB29NWBK60161331926819"}), run)

    assert isinstance(outcome, Suspended)
    assert paid == []


async def test_what_runs_inside_a_tool_asks_the_same_client() -> None:
    got, client = list[Any](), ScriptedClient(forms=[{"value": 1}])
    inner = asking(int, got)

    @ez_tool
    async def outer(ctx: RunContext[Any]) -> str:
        """Run another."""
        outcome = await Pipeline([inner]).run(ToolCall("ask", {}), ctx.run)
        assert isinstance(outcome, Completed)
        return "ok"

    await call(outer, Run(channel=Channel(client=client)))

    assert got == [Elicited("accept", 1)]
