"""One call: its input, what answers it, and executing it by hand."""

from enum import Enum
from typing import Annotated, Any, Literal, TypedDict, cast

import pytest
from pydantic import BaseModel, Field, RootModel

from tests.rounds.replies import ReadFile, SearchResult, WebSearch, adding, results_in, round_of
from toolcrib.calls import Complete, Failed, Reject, RunNormally
from toolcrib.errors import ApprovalDenied, ApprovalRequired, InvalidArguments, InvalidOutput, RoundError
from toolcrib.hooks import HookSet
from toolcrib.rounds import DecodedCall, HandledTool, RejectedTool, SuspendedTool, ToolRound, ToolRoundPlan
from toolcrib.schema import Injected
from toolcrib.tools import ez_tool, tool_input


def web_search_call() -> DecodedCall[WebSearch]:
    return round_of([WebSearch], ("web_search", '{"query": "x"}')).expect_one()


def test_a_call_knows_its_metadata_input_and_selector() -> None:
    call = web_search_call()

    metadata, given = call.into_parts()

    assert (metadata.id, metadata.name, metadata.arguments) == ("call_0", "web_search", '{"query": "x"}')
    assert given == WebSearch(query="x")
    assert (call.selector.name, call.tool.description) == ("web_search", "Search the web.")


def test_a_call_is_matched_by_its_input() -> None:
    given: WebSearch | ReadFile = round_of([WebSearch], ("web_search", {"query": "x"})).expect_one().input

    match given:
        case ReadFile():
            found = "a file"
        case WebSearch(query=query):
            found = query

    assert found == "x"


def test_a_call_of_a_function_has_its_input_model() -> None:
    add = adding([])

    call = round_of([add], ("add", {"a": 1})).expect_one()

    assert (type(call.input), call.input.model_dump()) == (add.input_model, {"a": 1, "b": 1})


def test_an_input_may_be_a_choice_of_shapes() -> None:
    class Circle(BaseModel):
        kind: Literal["circle"]
        radius: float

    class Square(BaseModel):
        kind: Literal["square"]
        side: float

    @tool_input("draw")
    class Draw(BaseModel):
        shape: Annotated[Circle | Square, Field(discriminator="kind")]

    call = round_of([Draw], ("draw", {"shape": {"kind": "square", "side": 2}})).expect_one()

    assert call.input.shape == Square(kind="square", side=2)


class Move(BaseModel):
    kind: Literal["move"] = "move"
    x: int


class Say(BaseModel):
    kind: Literal["say"] = "say"
    text: str


@tool_input("act", output=int)
class Act(RootModel[Annotated[Move | Say, Field(discriminator="kind")]]):
    """Do something."""


def act_round(**options: Any) -> ToolRound:
    return round_of([Act], ("act", '{"root": {"kind": "move", "x": 1}}'), **options)


async def test_an_input_may_be_a_union() -> None:
    round = act_round()
    call: DecodedCall[Act] = round.expect_one()
    messages: list[Any] = []

    match call.input:
        case Act(root=Move(x=x)):
            answer = call.complete(x)
        case _:
            answer = call.complete(0)
    await round.commit(messages, [answer])

    assert call.into_parts()[1] == Act(Move(x=1))
    assert results_in(messages) == [("call_0", "1")]


async def test_a_hook_is_shown_and_may_edit_a_union() -> None:
    seen: list[Any] = []
    hooks = HookSet()

    @hooks.register
    async def further(call: Any, given: Act) -> Any:
        seen.append(given)
        return RunNormally(Act(Move(x=2)))

    plan = await act_round().apply_hooks(hooks)

    assert seen == [Act(Move(x=1))]
    assert plan.pending[0].input == Act(Move(x=2))


async def test_a_union_is_edited_in_place_or_replaced() -> None:
    edited, replaced, wrong = (act_round() for _ in range(3))
    edited.expect_one().input.root.x = 3
    replaced.expect_one().input = Act(Say(text="x"))
    wrong.expect_one().input.root.x = "far"

    assert (await edited.apply_hooks()).pending[0].input == Act(Move(x=3))
    assert (await replaced.apply_hooks()).pending[0].input == Act(Say(text="x"))
    with pytest.raises(InvalidArguments, match=r"root\.x: must be an integer"):
        await wrong.apply_hooks()
    with pytest.raises(TypeError, match="the input of `act` is a Act"):
        edited.expect_one().input = Move(x=1)


async def test_a_union_survives_its_round_being_saved() -> None:
    plan = await act_round().apply_hooks()
    plan.pending[0].input = Act(Say(text="x"))
    await plan.apply_hooks()

    restored = await ToolRoundPlan.from_json([Act], plan.to_json())

    assert restored.pending[0].input == Act(Say(text="x"))


def test_an_input_may_be_an_enum_in_a_root_model() -> None:
    class Color(Enum):
        RED = "red"
        BLUE = "blue"

    @tool_input("paint")
    class Paint(RootModel[Color]): ...

    call = round_of([Paint], ("paint", {"root": "red"})).expect_one()

    assert call.input.root is Color.RED
    with pytest.raises(TypeError, match=r"Color is not a model; make it one.*RootModel\[Color\]"):
        tool_input("paint")(cast("Any", Color))


def test_an_output_is_converted_to_what_the_tool_declares() -> None:
    result = web_search_call().complete({"snippets": ["a"]})

    assert (result.call_id, result.output) == ("call_0", SearchResult(snippets=["a"]))


def test_an_output_that_does_not_fit_names_tool_and_field() -> None:
    with pytest.raises(InvalidOutput, match=r"`web_search`.*snippets\[0\]"):
        web_search_call().complete({"snippets": [1]})


def test_a_call_fails_with_an_exception_and_nothing_else() -> None:
    with pytest.raises(TypeError, match=r"call\.fail\(ValueError\('the disk is full'\)\)"):
        web_search_call().fail(cast("Any", "the disk is full"))


class Part(TypedDict):
    number: int


@tool_input(name="find_parts", output=list[Part])
class FindParts(BaseModel):
    """Find parts."""


def test_an_output_of_typed_dicts_is_checked() -> None:
    call = round_of([FindParts], ("find_parts", {})).expect_one()

    assert call.complete([{"number": "7"}]).output == [{"number": 7}]
    with pytest.raises(InvalidOutput, match=r"`find_parts`.*\[0\]\.number"):
        call.complete([{}])


def test_the_output_of_a_function_is_checked_against_its_annotation() -> None:
    call = round_of([adding([])], ("add", {"a": 1})).expect_one()

    with pytest.raises(InvalidOutput, match="`add`"):
        call.complete("many")


def test_an_input_of_another_kind_cannot_be_assigned() -> None:
    call: DecodedCall[Any] = web_search_call()

    with pytest.raises(TypeError, match="WebSearch"):
        call.input = ReadFile(path="/a")


async def test_an_edited_input_reaches_the_tool_and_not_the_transcript() -> None:
    ran: list[Any] = []
    round = round_of([adding(ran)], ("add", '{"a": 1}'))
    round.expect_one().input.b = 7
    messages: list[Any] = []

    plan = await round.apply_hooks()
    await plan.commit(messages, await plan.run_pending())

    assert ran == [(1, 7)]
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a": 1}'


async def test_an_edit_that_does_not_fit_is_the_hosts_error() -> None:
    round = round_of([adding([])], ("add", {"a": 1}))
    round.expect_one().input.b = "many"

    with pytest.raises(InvalidArguments, match="b: must be an integer"):
        await round.apply_hooks()


async def test_an_input_edited_after_approval_is_asked_about_again() -> None:
    ran: list[Any] = []
    plan = await round_of([adding(ran, requires_approval=True)], ("add", {"a": 1})).apply_hooks()
    await plan.resolve([plan.suspended[0].request.grant("ada")])
    plan.pending[0].input.a = 1000

    results = await plan.run_pending()

    assert (ran, results) == ([], [])
    assert [waiting.request.arguments for waiting in plan.suspended] == [{"a": 1000, "b": 1}]


async def test_a_call_runs_its_function_with_what_the_caller_injects() -> None:
    @ez_tool
    async def greet(name: str, greeting: Annotated[str, Injected]) -> str:
        return f"{greeting} {name}"

    round = round_of([greet], ("greet", {"name": "Ada"}))
    call = round.expect_one()
    messages: list[Any] = []

    await round.commit(messages, [call.complete(await call.call(greeting="Good day"))])

    assert results_in(messages) == [("call_0", "Good day Ada")]


async def test_a_provided_value_that_a_tool_does_not_take_is_an_error_before_it_runs() -> None:
    ran: list[str] = []

    @ez_tool
    async def greet(name: str, greeting: Annotated[str, Injected] = "Hi") -> None:
        """Greet."""
        ran.append(greeting)

    call = round_of([greet], ("greet", {"name": "Ann"})).expect_one()

    with pytest.raises(TypeError, match=r"`greet` takes no `greetings` from its caller. Did you mean `greeting`"):
        await call.call(greetings="Good day")

    assert ran == []


async def test_a_call_is_executed_once() -> None:
    call = round_of([adding([])], ("add", {"a": 1})).expect_one()

    assert await call.call() == 2
    with pytest.raises(RoundError, match="never executed twice"):
        await call.call()


async def test_what_a_tool_raises_reaches_the_caller_and_may_be_the_answer() -> None:
    @ez_tool
    async def fail() -> str:
        raise OSError("no such place")

    round = round_of([fail], ("fail", {}))
    call = round.expect_one()
    messages: list[Any] = []

    with pytest.raises(OSError, match="no such place") as raised:
        await call.call()
    await round.commit(messages, [call.fail(raised.value)])

    assert results_in(messages) == [("call_0", "OSError: no such place")]


async def test_a_call_that_needs_approval_is_not_executed_by_hand() -> None:
    ran: list[Any] = []
    call = round_of([adding(ran, requires_approval=True)], ("add", {"a": 1})).expect_one()

    with pytest.raises(ApprovalRequired):
        await call.call()

    assert ran == []


async def test_a_call_that_a_hook_refused_is_not_executed_by_hand() -> None:
    call = round_of([adding([])], ("add", {"a": 1})).expect_one()

    await call.hook(deciding(Reject("not today")))

    with pytest.raises(ApprovalDenied, match="not today"):
        await call.call()


def deciding(decision: Any) -> HookSet:
    hooks = HookSet()

    @hooks.register
    async def decide(call: Any, given: Any) -> Any:
        return decision

    return hooks


async def test_one_call_is_taken_through_hooks() -> None:
    kinds = [
        await one_call().hook(),
        await one_call().hook(deciding(Complete(5))),
        await one_call().hook(deciding(Reject("no"))),
        await one_call(requires_approval=True).hook(),
        await one_call().hook(deciding("what")),
    ]

    assert [type(kind) for kind in kinds] == [DecodedCall, HandledTool, RejectedTool, SuspendedTool, Failed]


def one_call(**options: Any) -> DecodedCall[Any]:
    return round_of([adding([], **options)], ("add", {"a": 1})).expect_one()


async def test_a_hook_edits_the_input_that_the_host_sees() -> None:
    call = one_call()

    await call.hook(deciding(RunNormally({"a": 40, "b": 2})))

    assert (call.input.a, await call.call()) == (40, 42)
