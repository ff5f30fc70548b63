"""Steps 3 and 4: decisions and pre hooks, and when arguments are read again."""

import logging
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, SecretStr

from toolcrib.calls import (
    Ask,
    CallMetadata,
    Complete,
    Completed,
    Failed,
    Outcome,
    Reject,
    Rejected,
    RunNormally,
    Suspended,
    ToolCall,
)
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool, tool_input
from toolcrib.toolsets import Toolset


class Stop(BaseModel):
    city: str
    nights: int = 1


@ez_tool
async def book(stops: list[Stop], note: str = "") -> Any:
    return [(stop.city, stop.nights) for stop in stops], note


@ez_tool
async def later(at: Annotated[int, AfterValidator(lambda at: at + 1)]) -> int:
    return at


def deciding(*decisions: Any, tools: Any = (book,)) -> Pipeline:
    """Return a pipeline whose decision hooks answer one after the other; a function is given the input."""
    hooks = HookSet()
    for number, decision in enumerate(decisions):

        async def decide(call: Any, given: Any, decision: Any = decision) -> Any:
            return decision(given) if callable(decision) else decision

        decide.__name__ = f"hook_{number}"
        hooks.register(decide)
    return Pipeline(tools, hooks=hooks)


async def run(pipeline: Pipeline, name: str = "book", arguments: Any = None, **call: Any) -> Outcome:
    stops = [{"city": "Oslo"}]
    return await pipeline.run(ToolCall(name, {"stops": stops} if arguments is None else arguments, **call))


async def test_a_hook_is_told_the_call_and_the_input() -> None:
    told: list[Any] = []
    hooks = HookSet()

    @hooks.on(book)
    async def look(call: CallMetadata, given: Any) -> RunNormally:
        told.append((call, given))
        return RunNormally(given)

    call = ToolCall("book", '{"stops": [{"city": "Oslo"}]}', "c1")
    await Pipeline([book], hooks=hooks).run(call)

    [(about, given)] = told
    assert about == CallMetadata("c1", "book", call.arguments)
    assert isinstance(given, book.input_model)
    assert given.stops == [Stop(city="Oslo")]


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        ([RunNormally, RunNormally], Completed),
        ([Reject("no"), Complete(1)], Rejected),
        ([Complete(1), Reject("no")], Completed),
        ([Ask("a"), Reject("no")], Rejected),
        ([Ask("a"), Complete(1)], Completed),
        ([Ask("a"), RunNormally], Suspended),
        ([RunNormally, Ask("a")], Suspended),
    ],
)
async def test_the_first_end_wins_and_a_question_waits_for_it(decisions: list[Any], kind: type) -> None:
    outcome = await run(deciding(*decisions))

    assert isinstance(outcome, kind)


async def test_questions_are_gathered() -> None:
    outcome = await run(deciding(Ask("late", {"hour": 23}), RunNormally, Ask("dear", {"cents": 5})))

    assert isinstance(outcome, Suspended)
    assert outcome.request.reason == "late; dear"
    assert outcome.request.metadata == {"hour": 23, "cents": 5}


async def test_an_edit_is_threaded_on() -> None:
    seen: list[str] = []

    def shout(given: Any) -> RunNormally:
        seen.append(given.note)
        return RunNormally(given.model_copy(update={"note": given.note + "!"}))

    outcome = await run(deciding(shout, shout, shout))

    assert isinstance(outcome, Completed)
    assert (outcome.value[1], seen) == ("!!!", ["", "!", "!!"])


@pytest.mark.parametrize("after", [RunNormally, Ask("sure?")])
async def test_an_edit_in_place_counts_only_when_it_is_returned(after: Any) -> None:
    def meddle(given: Any) -> Any:
        given.stops[0].nights = "many"
        given.stops.append(Stop(city="Rome"))
        return Ask("meddled")

    outcome = await run(deciding(meddle, after))

    assert isinstance(outcome, Suspended)
    assert outcome.request.arguments["stops"] == [{"city": "Oslo", "nights": 1}]


async def test_an_edit_in_place_that_is_returned_is_validated() -> None:
    def meddle(given: Any) -> Any:
        given.stops.append({"city": "Rome"})
        return RunNormally(given)

    outcome = await run(deciding(meddle))

    assert isinstance(outcome, Completed)
    assert outcome.value[0] == [("Oslo", 1), ("Rome", 1)]


@pytest.mark.parametrize(
    "decision",
    [
        None,
        True,
        "run",
        RunNormally(None),
        RunNormally([1]),
        lambda given: RunNormally(given.model_copy(update={"note": 3})),
        lambda given: RunNormally({"stops": []}) if given.nothing else None,
        lambda given: RunNormally({"stops": [], "key": "x"}),
    ],
)
async def test_what_is_no_decision_shuts_the_tool(decision: Any) -> None:
    outcome = await run(deciding(decision))

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"
    assert "decision hook `hook_0` of `book`" in str(outcome.exception)


async def test_a_validator_sees_an_argument_once_where_nobody_edits() -> None:
    pre = {"later": lambda ctx, args, metadata: args}
    pipeline = deciding(RunNormally, RunNormally, tools=Toolset([later], pre_hooks=pre))

    outcome = await run(pipeline, "later", {"at": 1})

    assert isinstance(outcome, Completed)
    assert outcome.value == 2


async def test_what_hooks_decide_is_noted_in_order() -> None:
    sink = RecordingSink()
    call = ToolCall("book", {"stops": []})

    await deciding(RunNormally, Ask("late"), Reject("no")).run(call, Run(sinks=(sink,)))

    notes = [(note.hook, note.decision, note.reason) for note in sink.record.decisions]
    assert notes == [("hook_0", "run", ""), ("hook_1", "ask", "late"), ("hook_2", "reject", "no")]


async def test_a_hook_registered_later_is_asked_too() -> None:
    hooks = HookSet()
    pipeline = Pipeline([book], hooks=hooks)
    before = await run(pipeline)

    @hooks.on(book)
    async def refuse(call: Any, given: Any) -> Reject:
        return Reject("no")

    after = await run(pipeline)

    assert isinstance(before, Completed)
    assert isinstance(after, Rejected)


async def test_the_pipelines_hooks_are_asked_before_the_toolsets() -> None:
    asked: list[str] = []

    def noting(name: str) -> HookSet:
        hooks = HookSet()

        async def note(call: Any, given: Any) -> RunNormally:
            asked.append(name)
            return RunNormally(given)

        hooks.register(note)
        return hooks

    inner = Toolset([book], hooks=noting("inner"))
    await run(Pipeline(inner.with_hooks(noting("outer")), hooks=noting("pipeline")))

    assert asked == ["pipeline", "outer", "inner"]


async def test_a_declared_input_is_answered_by_a_hook() -> None:
    @tool_input(name="read_file")
    class ReadFile(BaseModel):
        path: str

    outcome = await run(deciding(lambda given: Complete(given.path), tools=[ReadFile]), "read_file", {"path": "a"})
    bare = await run(Pipeline([ReadFile]), "read_file", {"path": "a"})

    assert isinstance(outcome, Completed)
    assert (outcome.value, outcome.source) == ("a", "hook")
    assert isinstance(bare, Failed)
    assert bare.code == "not_callable"


async def test_post_hooks_never_see_an_answer_of_a_hook() -> None:
    seen: list[Any] = []
    tools = Toolset([book], post_hooks={"book": lambda ctx, result, metadata: seen.append(result)})

    for decision in (Complete(1), Reject("no"), Ask("a")):
        await run(deciding(decision, tools=tools))

    assert seen == []


async def test_a_decision_in_the_log_shows_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    async def login(password: SecretStr) -> None: ...

    with caplog.at_level(logging.INFO, "toolcrib"):
        await run(deciding(RunNormally, tools=[login]), "login", {"password": "hunter2"})

    assert "login" in caplog.text
    assert "hunter2" not in caplog.text


# --- a host's own call


async def test_a_host_passes_python_objects_through_hooks_untouched() -> None:
    class Handle: ...

    @ez_tool(key="fixed")
    async def use(handle: Handle, key: str) -> Any:
        return handle, key

    handle = Handle()
    pre = {"use": lambda ctx, args, metadata: args}
    call = ToolCall("use", {"handle": handle, "key": "host's", "colour": "red"}, origin="host")

    outcome = await deciding(RunNormally, tools=Toolset([use], pre_hooks=pre)).run(call)

    assert isinstance(outcome, Completed)
    assert outcome.value == (handle, "host's")


async def test_a_host_may_give_json_too() -> None:
    outcome = await run(Pipeline([book]), "book", '{"stops": [{"city": "Oslo"}]}', origin="host")

    assert isinstance(outcome, Completed)
    assert outcome.value[0] == [("Oslo", 1)]


async def test_what_a_host_forgot_is_a_failure() -> None:
    outcome = await run(Pipeline([book]), "book", {}, origin="host")

    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"


# --- pre hooks


async def test_pre_hooks_share_one_dict_with_the_tool_and_the_post_hooks() -> None:
    seen: list[Any] = []

    @ez_tool
    async def find(ctx: RunContext) -> None:
        seen.append(dict(ctx.metadata))
        ctx.metadata["tool"] = 1

    def pre(ctx: RunContext, args: Any, metadata: dict[str, Any]) -> Any:
        assert metadata is ctx.metadata
        metadata["pre"] = 1
        return args

    def post(ctx: RunContext, result: Any, metadata: dict[str, Any]) -> Any:
        seen.append(dict(metadata))
        return result

    tools = Toolset([find], pre_hooks={"find": pre}, post_hooks={"find": post})
    for _ in range(2):
        await run(Pipeline(tools), "find", {})

    assert seen == [{"pre": 1}, {"pre": 1, "tool": 1}] * 2


async def test_several_pre_hooks_run_in_order_sync_or_async() -> None:
    async def first(ctx: Any, args: Any, metadata: Any) -> Any:
        return {**args, "note": "a"}

    def second(ctx: Any, args: Any, metadata: Any) -> Any:
        args["note"] += "b"
        return args

    async def wide(ctx: Any, name: str, args: Any, metadata: Any) -> Any:
        return {**args, "note": name}

    tools = Toolset([book], pre_hooks={"book": [first, second]}, global_hooks=GlobalHooks(pre=[wide]))

    outcome = await run(Pipeline(tools))

    assert isinstance(outcome, Completed)
    assert outcome.value[1] == "ab"


@pytest.mark.parametrize(
    "pre",
    [
        lambda ctx, args, metadata: None,
        lambda ctx, args, metadata: [args],
        lambda ctx, args, metadata: {**args, "key": 1},
        lambda ctx, args, metadata: args["stops"].append("Rome") or args,
    ],
    ids=["nothing", "list", "unknown", "nested"],
)
async def test_what_a_pre_hook_may_not_return_shuts_the_tool(pre: Any) -> None:
    outcome = await run(Pipeline(Toolset([book], pre_hooks={"book": pre})))

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"


async def test_what_a_pre_hook_edits_is_validated_and_converted() -> None:
    pre = {"book": lambda ctx, args, metadata: {"stops": [{"city": "Rome", "nights": "2"}]}}

    outcome = await run(Pipeline(Toolset([book], pre_hooks=pre)))

    assert isinstance(outcome, Completed)
    assert outcome.value[0] == [("Rome", 2)]
