"""Sessions: a conversation to whose transcript nothing is added but by commit."""

import asyncio
import re
from pathlib import Path
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from tests.formats.replies import Asked, pieces
from tests.rounds.replies import FORMATS, ReadFile, SearchResult, WebSearch, adding
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ToolCall
from toolcrib.errors import InvalidOutput, NotCallable, RoundError, ToolConstraintError
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Run
from toolcrib.rounds import ChatRequest, DecodedCall, Finished, NeedsTools, Session, ToolRoundPlan, WireFormat
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.toolsets import ToolAvailability, ToolRequirement, Toolset, off, use


class AppTools(Toolset):
    web_search = use(WebSearch)
    read_file = off(ReadFile)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_loop_that_the_host_owns(format: WireFormat) -> None:
    model = ScriptedModel([ToolCall("web_search", {"query": "x"}), ToolCall("nope")], "It is y.")
    session = Session(model, format=format, tools=AppTools).say("What is x?")

    while True:
        match await session.step():
            case NeedsTools(round):
                results = [call.complete(SearchResult(snippets=["x is y"])) for call in round.tool_calls]
                await round.commit(session, results)
            case Finished(result):
                break

    assert (result, session.transcript.check()) == ("It is y.", [])
    model.finish()


async def test_what_is_sent_is_what_the_step_says() -> None:
    model = ScriptedModel("ok")
    session = Session(model, system="Be brief.", tools=AppTools, describe={AppTools.web_search: "Search it."}).say("hi")

    await session.step(
        available=ToolAvailability.all(),
        require=ToolRequirement.specific(AppTools.read_file),
        describe={AppTools.web_search: "Search only public sources."},
    )

    [request] = model.requests
    functions = {tool["function"]["name"]: tool["function"]["description"] for tool in request.tools}
    assert functions == {"web_search": "Search only public sources.", "read_file": "Read a file."}
    assert request.tool_choice == {"type": "function", "function": {"name": "read_file"}}
    assert (request.system, request.messages) == ("Be brief.", ({"role": "user", "content": "hi"},))


class Said(BaseModel):
    """A message as an SDK has it."""

    role: str = "user"
    content: str


async def test_a_request_has_the_messages_as_they_stand() -> None:
    model, said = ScriptedModel("ok", "ok"), Said(content="hi")
    session = Session(model, transcript=[{"role": "user", "content": "my key is 123"}, said])
    await session.step()
    session.transcript[0]["content"], said.content = "[left out]", "hello"

    await session.say("go on").step()

    assert [one["content"] for one in model.requests[1].messages] == ["[left out]", "hello", "ok", "go on"]
    assert all(type(one) is dict for one in model.requests[1].messages)


async def test_messages_are_not_copied_for_each_request() -> None:
    model = ScriptedModel("ok", "ok")
    session = Session(model).say("hi")
    await session.step()
    await session.say("go on").step()

    sent = model.requests[1].messages

    assert [*map(id, sent)] == [*map(id, session.transcript[: len(sent)])]


async def test_description_hooks_tell_what_a_tool_is_for() -> None:
    hooks, model = HookSet(), ScriptedModel("ok")

    @hooks.on(AppTools.web_search).description
    async def describe(definition: Any) -> str:
        return f"{definition.description} Use metric units."

    await Session(model, tools=AppTools().with_hooks(hooks)).say("hi").step()

    assert model.requests[0].tools[0]["function"]["description"] == "Search the web. Use metric units."


async def test_a_requirement_that_cannot_be_met_is_an_error_before_any_request() -> None:
    model = ScriptedModel()

    with pytest.raises(ToolConstraintError, match="read_file"):
        await Session(model, tools=AppTools).step(require=ToolRequirement.specific(AppTools.read_file))

    assert model.requests == []


async def test_an_answer_may_have_a_type() -> None:
    class City(BaseModel):
        name: str

    model = ScriptedModel('{"name": "Oslo"}')

    made = await Session(model, output=City).step()

    assert isinstance(made, Finished)
    assert (made.result, made.text) == (City(name="Oslo"), '{"name": "Oslo"}')
    assert model.requests[0].output == City.model_json_schema()


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "\n```\n{}```\n", "```JSON \n{}\n ```"])
async def test_fences_around_a_typed_answer_are_no_part_of_it(fence: str) -> None:
    said = fence.replace("{}", '{"Oslo": 1}')

    made = await Session(ScriptedModel(said), output=dict[str, int]).step()

    assert isinstance(made, Finished)
    assert (made.result, made.text) == ({"Oslo": 1}, said)


async def test_a_typed_answer_with_a_key_twice_is_refused() -> None:
    session = Session(ScriptedModel('{"Oslo": 1, "Oslo": 2}'), output=dict[str, int])

    with pytest.raises(InvalidOutput, match="Oslo: sent more than once"):
        await session.step()


async def test_an_answer_that_is_text_is_taken_as_it_is() -> None:
    model = ScriptedModel("Oslo")

    made = await Session(model, output=str).step()

    assert isinstance(made, Finished)
    assert (made.result, model.requests[0].output) == ("Oslo", None)


class Place(TypedDict):
    city: str


async def test_an_answer_may_be_a_typed_dict() -> None:
    made = await Session(ScriptedModel('{"city": "Oslo"}'), output=Place).step()

    assert isinstance(made, Finished)
    assert made.result == {"city": "Oslo"}


async def test_an_answer_of_another_type_is_not_committed() -> None:
    session = Session(ScriptedModel("Oslo"), output=int)

    with pytest.raises(InvalidOutput, match="the answer"):
        await session.step()

    assert session.transcript == []


async def test_an_answer_may_be_staged() -> None:
    session = Session(ScriptedModel("first", "second"))

    first = await session.step(commit=False)
    assert isinstance(first, Finished)
    assert session.transcript == []
    first.discard()
    second = await session.step(commit=False)
    assert isinstance(second, Finished)
    await second.commit()

    assert [item["content"] for item in session.transcript] == ["second"]


async def test_a_round_has_to_be_settled_before_the_next_step() -> None:
    session = Session(ScriptedModel(ToolCall("web_search", {"query": "x"}), "ok"), tools=AppTools)
    made = await session.step()
    assert isinstance(made, NeedsTools)

    with pytest.raises(RoundError, match="neither committed nor discarded"):
        await session.step()
    made.round.discard()

    assert isinstance(await session.step(), Finished)
    assert len(session.transcript) == 1


async def test_a_staged_answer_has_to_be_settled_before_the_next_step() -> None:
    session = Session(ScriptedModel("first"))
    await session.step(commit=False)

    with pytest.raises(RoundError, match="the answer before was neither committed nor discarded"):
        await session.step()


async def test_a_keyword_that_no_step_takes_is_an_error_before_any_request() -> None:
    model = ScriptedModel()

    with pytest.raises(TypeError, match=r"has no option `outputs`. Did you mean `output`?"):
        await Session(model).step(outputs=int)
    with pytest.raises(TypeError, match=r"has no option `tool`. Did you mean `tools`?"):
        Session(model, tool=AppTools)

    assert model.requests == []


@pytest.mark.parametrize(
    ("option", "here"),
    [
        ("instructions", "Session(..., system=...)"),
        ("response_format", "`output=...`"),
        ("thread_id", "Session(..., store=..., id=...)"),
        ("message_history", "Session(..., transcript=...)"),
        ("max_turns", "session.run(max_rounds=...)"),
        ("deps", "Session(..., run=Run(deps=...))"),
        ("grants", "`await waiting.resolve([request.grant(...)])`"),
    ],
)
def test_an_option_of_another_framework_is_told_by_what_it_is_here(option: str, here: str) -> None:
    keywords: dict[str, Any] = {option: 1}

    with pytest.raises(TypeError, match=re.escape(f"a session has no option `{option}`. Here it is {here}")):
        Session(ScriptedModel(), **keywords)


def test_the_name_of_a_type_is_not_a_type() -> None:
    with pytest.raises(TypeError, match="`output` of a session must be a type, such as a Pydantic model"):
        Session(ScriptedModel(), output="json")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (None, "`say` takes a text, and this is None"),
        ({"role": "user", "content": "Hi."}, "`say` takes a text, and this is {"),
        ("", "the text is blank"),
        (" \n", "the text is blank"),
    ],
)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("store", ["", "app.db"], ids=["in memory", "stored"])
def test_what_is_not_a_text_is_not_said(said: Any, problem: str, keep: bool, store: str, tmp_path: Path) -> None:
    kept: dict[str, Any] = {"store": tmp_path / store, "id": "one"} if store else {}
    session = Session(ScriptedModel(), **kept)

    with pytest.raises((TypeError, ValueError), match=problem):
        session.say(said, keep=keep)

    assert list(session.transcript) == []


async def test_what_is_available_is_told_by_an_availability() -> None:
    session = Session(ScriptedModel(), tools=AppTools)

    with pytest.raises(TypeError, match=r"ToolAvailability\.only\('name'\), and not as \['web_search'\]"):
        await session.step(available=["web_search"])


async def test_a_copy_goes_its_own_way() -> None:
    session = Session(ScriptedModel("left", "right")).say("Which way?")
    branch = session.copy()

    await session.step()
    await branch.step()

    assert [one.transcript[-1]["content"] for one in (session, branch)] == ["left", "right"]
    assert [len(one.transcript) for one in (session, branch)] == [2, 2]


async def test_a_session_runs_until_the_model_has_answered() -> None:
    ran: list[Any] = []
    script = [ToolCall("add", {"a": 1})], [ToolCall("add", {"a": 2}), ToolCall("add", {"a": "x"})], "done"

    with ScriptedModel(*script) as model:
        made = await Session(model, tools=[adding(ran)]).say("Add.").run()

    assert isinstance(made, Finished)
    assert (made.result, ran) == ("done", [(1, 1), (2, 1)])


async def test_a_session_runs_with_the_hosts_own_dispatch() -> None:
    async def dispatch(call: DecodedCall[Any]) -> Any:
        match call.input:
            case WebSearch(query="secret"):
                return call.reject("blocked")
            case _:
                return {"snippets": []}

    session = Session(
        ScriptedModel([ToolCall("web_search", {"query": q}, f"call_{q}") for q in ("secret", "x")], "done"),
        tools=AppTools,
    ).say("Search.")

    await session.run(dispatch)

    assert [item["content"] for item in session.transcript[2:4]] == ["Rejected: blocked", '{"snippets": []}']


async def test_a_dispatch_need_not_be_async() -> None:
    model = ScriptedModel(ToolCall("web_search", {"query": "x"}, "call_0"), "done")
    session = Session(model, tools=AppTools).say("Search.")

    await session.run(lambda call: {"snippets": [call.input.query]})

    assert session.transcript[2]["content"] == '{"snippets": ["x"]}'


async def test_a_run_without_a_dispatch_executes_nothing_beside_a_tool_that_has_no_function() -> None:
    ran: list[Any] = []
    calls = [ToolCall("add", {"a": 1}), ToolCall("web_search", {"query": "x"})]
    session = Session(ScriptedModel(calls), tools=[adding(ran), WebSearch]).say("Add.")

    with pytest.raises(NotCallable, match="`web_search` declares an input"):
        await session.run()

    assert (ran, session.open_round is not None, len(session.transcript)) == ([], True, 1)


async def test_a_run_stops_where_a_person_is_needed_and_goes_on_after() -> None:
    ran: list[Any] = []
    session = Session(
        ScriptedModel(ToolCall("add", {"a": 1}), "done"), tools=[adding(ran, requires_approval=True)]
    ).say("Add.")

    plan = await session.run()
    assert isinstance(plan, ToolRoundPlan)
    assert repr(plan) == "<Waiting: 1 suspended>"
    assert ran == []
    await plan.resolve([plan.suspended[0].request.grant("ada")])
    await plan.commit(session, await plan.run_pending())
    made = await session.run()

    assert (isinstance(made, Finished), ran, session.transcript.check()) == (True, [(1, 1)], [])


async def test_a_session_that_waits_goes_on_with_the_answer_in_the_store() -> None:
    ran: list[Any] = []
    store = MemoryApprovalStore()
    tools = [adding(ran, requires_approval=True)]
    session = Session(ScriptedModel(ToolCall("add", {"a": 1}), "done"), tools=tools, run=Run(approvals=store)).say(
        "Add."
    )
    plan = await session.run()
    assert isinstance(plan, ToolRoundPlan)

    still = await session.run()
    await store.answer(plan.suspended[0].request.grant("ada"))
    made = await session.run()

    assert (isinstance(still, ToolRoundPlan), isinstance(made, Finished), ran) == (True, True, [(1, 1)])
    assert session.transcript.check() == []


async def test_a_session_from_json_goes_on_with_the_answer_in_the_store() -> None:
    ran: list[Any] = []
    store = MemoryApprovalStore()
    tools = [adding(ran, requires_approval=True)]
    first = Session(ScriptedModel(ToolCall("add", {"a": 1})), tools=tools, run=Run(approvals=store)).say("Add.")
    plan = await first.run()
    assert isinstance(plan, ToolRoundPlan)
    await store.answer(plan.suspended[0].request.deny(message="no", by="ada"))

    session = await Session.from_json(ScriptedModel("done"), first.to_json(), tools=tools, run=Run(approvals=store))
    made = await session.run()

    assert (isinstance(made, Finished), ran) == (True, [])
    assert session.transcript[-2]["content"] == "Rejected: no"


async def test_a_session_goes_on_with_a_round_whose_requests_the_host_has_answered() -> None:
    ran: list[Any] = []
    model = ScriptedModel([ToolCall("add", {"a": 1}), ToolCall("add", {"a": 2})], "done")
    session = Session(model, tools=[adding(ran, requires_approval=True)]).say("Add.")
    plan = await session.run()
    assert isinstance(plan, ToolRoundPlan)

    one, two = (call.request for call in plan.suspended)
    await plan.resolve([one.grant("ada")], [two.deny(message="no", by="ada")])
    made = await session.run()

    assert (isinstance(made, Finished), ran) == (True, [(1, 1)])


async def test_hooks_of_a_run_hold_for_the_open_round() -> None:
    async def refuse(call: DecodedCall[Any]) -> Any:
        return call.reject("not today")

    ran: list[Any] = []
    session = Session(ScriptedModel(ToolCall("add", {"a": 1}), "done"), tools=[adding(ran)])
    await session.step()

    await session.run(hooks=refuse)

    assert (ran, session.transcript[-2]["content"]) == ([], "Rejected: not today")


async def test_calls_that_a_broken_dispatch_began_are_not_made_again() -> None:
    def dispatch(call: DecodedCall[Any]) -> Any:
        raise RuntimeError("the host's")

    session = Session(ScriptedModel(ToolCall("add", {"a": 1})), tools=[adding([])]).say("Add.")
    with pytest.raises(RuntimeError, match="the host's"):
        await session.run(dispatch)

    with pytest.raises(RoundError, match="`dispatch` has begun its calls"):
        await session.run()


async def test_a_model_that_never_answers_is_stopped() -> None:
    session = Session(ScriptedModel(*[ToolCall("add", {"a": n}) for n in range(3)]), tools=[adding([])]).say("Add.")

    with pytest.raises(RoundError, match="after 2 rounds"):
        await session.run(max_rounds=2)

    assert session.transcript.check() == []


async def test_the_limits_of_a_session_hold_over_its_rounds() -> None:
    ran: list[Any] = []
    session = Session(
        ScriptedModel(*[ToolCall("add", {"a": n}) for n in range(3)], "done"),
        run=Run(limits=CallLimits(total=2)),
        tools=[adding(ran)],
    ).say("Add.")

    await session.run()

    assert ran == [(0, 1), (1, 1)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("begin", [Session.run, Session.step])
@pytest.mark.parametrize("other", [Session.run, Session.step])
async def test_a_session_is_asked_once_at_a_time(begin: Any, other: Any, format: WireFormat) -> None:
    ran, gate = list[Any](), asyncio.Event()

    class Slow:
        async def reply(self, request: ChatRequest) -> object:
            await gate.wait()
            return wire_reply(format, text="Done.")

    session = Session(Slow(), tools=[adding(ran)], format=format).say("Add.")
    first, second = asyncio.ensure_future(begin(session)), asyncio.ensure_future(other(session))
    await asyncio.sleep(0)
    gate.set()

    with pytest.raises(RoundError, match="is under way: await that first"):
        await second
    assert isinstance(await first, Finished)
    assert isinstance(await other(session.say("More.")), Finished)


async def test_a_session_may_be_asked_again_after_a_step_that_failed() -> None:
    session = Session(ScriptedModel(ValueError("busy"), "Done.")).say("Go.")
    with pytest.raises(ValueError, match="busy"):
        await session.run()

    assert isinstance(await session.run(), Finished)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_run_in_which_nothing_was_said_says_so_before_any_request(format: WireFormat) -> None:
    with pytest.raises(RoundError, match=r"nothing was said in this session: call `session\.say"):
        await Session(ScriptedModel(), format=format).run()


async def test_a_streamed_reply_is_shown_as_it_comes() -> None:
    chunks: list[Any] = [
        {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": stop}],
        }
        for text, stop in (("Hel", None), ("lo", "stop"))
    ]
    seen: list[object] = []

    made = await Session(ScriptedModel(chunks)).step(on_chunk=seen.append)

    assert isinstance(made, Finished)
    assert (made.result, seen) == ("Hello", chunks)


async def test_the_text_of_a_streamed_reply_is_shown_as_it_comes() -> None:
    said: list[str] = []
    chunks: list[object] = []
    model = ScriptedModel(pieces("anthropic", "Hello you.", [Asked("a", "web_search", {"query": "x"})]))

    made = await Session(model, format="anthropic", tools=AppTools).step(on_text=said.append, on_chunk=chunks.append)

    assert isinstance(made, NeedsTools)
    assert (said, made.round.text) == (["Hello", " you."], "Hello you.")
    assert len(chunks) > len(said)


async def test_a_model_may_be_a_generator_of_chunks() -> None:
    class Streaming:
        async def reply(self, request: Any) -> Any:
            yield {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
            yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    said: list[str] = []
    made = await Session(Streaming()).step(on_text=said.append)

    assert (isinstance(made, Finished), said) == (True, ["Hello"])


async def test_a_reply_in_another_format_than_the_session_is_an_error() -> None:
    model = ScriptedModel(wire_reply("anthropic", text="Hello."))

    with pytest.raises(ValueError, match="in the format 'anthropic', and was taken for 'openai'"):
        await Session(model).step()


async def test_what_tools_return_is_told_on_request() -> None:
    model = ScriptedModel("ok")

    await Session(model, tools=AppTools, return_schemas=True).step()

    assert "snippets" in model.requests[0].tools[0]["function"]["description"]


# --- the script


async def test_a_script_that_is_not_played_to_its_end_is_an_error() -> None:
    with pytest.raises(AssertionError, match="2 of the script's steps"), ScriptedModel("a", "b", "c") as model:
        await Session(model).step()


async def test_a_request_after_the_script_is_an_error() -> None:
    with pytest.raises(AssertionError, match="request 1"):
        await Session(ScriptedModel()).step()


async def test_a_script_may_look_at_the_request_and_raise() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} messages", OSError("no network"))
    session = Session(model).say("hi")

    await session.step()
    with pytest.raises(OSError, match="no network"):
        await session.step()

    assert session.transcript[-1]["content"] == "1 messages"
