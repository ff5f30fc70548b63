"""Saved programs: what is checked before one is kept, and how it is called again with inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import ApprovalRequest, Completed, Failed, Grant, Outcome, Suspended, ToolCall
from toolcrib.code import MemoryProgramStore, ProgramLibrary, SavedProgram, Toolkit
from toolcrib.errors import SavedProgramError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.record import ListSink
from toolcrib.sandbox import Sandbox
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

ordered: list[str] = []


async def yes(request: ApprovalRequest) -> Grant:
    return request.grant("ann")


@ez_tool(effect="none")
def get_temp(city: str) -> int:
    """Return the temperature in a city."""
    return 24 if city == "Rome" else 12


@ez_tool(requires_approval=True)
def order(product: str) -> str:
    """Order a product."""
    ordered.append(product)
    return f"ordered {product}"


WARM = "warm = [city for city in cities if get_temp(city) > above]\nwarm"
INPUTS = {"cities": list[str], "above": {"type": "integer", "default": 20}}


@pytest.fixture(autouse=True)
def nothing_is_ordered() -> None:
    ordered.clear()


@pytest.fixture
def library(engine: Sandbox) -> ProgramLibrary:
    return ProgramLibrary(Toolkit([get_temp, order], sandbox=engine))


def value_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Completed), outcome
    return outcome.value


def problem_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return outcome.message


# --- calling


async def test_a_kept_program_is_called_with_inputs(library: ProgramLibrary) -> None:
    await library.save("warm_cities", WARM, inputs=INPUTS)

    first = await library.run("warm_cities", {"cities": ["Oslo", "Rome"]})
    second = await library.run("warm_cities", {"cities": ["Oslo", "Rome"], "above": 5})

    assert (value_of(first), value_of(second)) == (["Rome"], ["Oslo", "Rome"])


async def test_what_it_prints_is_its_result_where_it_has_no_value(library: ProgramLibrary) -> None:
    await library.save("say", "print(word)", inputs={"word": str})

    assert value_of(await library.run("say", {"word": "hello"})) == "hello\n"


async def test_inputs_are_validated_before_anything_runs(library: ProgramLibrary) -> None:
    await library.save("warm_cities", WARM, inputs=INPUTS)
    sink = ListSink()

    wrong = await library.run("warm_cities", {"cities": [1]}, Run(sinks=[sink]))
    unknown = await library.run("warm_cities", {"cities": [], "town": "x"})
    missing = await library.run("warm_cities")

    assert "must be a string" in problem_of(wrong)
    assert "town" in problem_of(unknown)
    assert "cities" in problem_of(missing)
    assert [record.tool for record in sink.records] == ["warm_cities"]


@pytest.mark.parametrize(
    "text",
    [
        "'; order('x'); '",
        '"""\norder("x")\n"""',
        "\\'; order('x') #",
        "\r\norder('x')\n",
        "\u2028order('x')\x0corder('x')",
        "{order('x')}",
        "'\x00",
    ],
)
async def test_an_input_holds_no_code(library: ProgramLibrary, text: str) -> None:
    await library.save("same", "[word, list(words.items())]", inputs={"word": str, "words": dict[str, str]})

    outcome = await library.run("same", {"word": text, "words": {text: text}}, Run(approver=yes))

    assert value_of(outcome) == [text, [[text, text]]]
    assert ordered == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**5000], ids=["nan", "inf", "long"])
async def test_a_number_that_is_not_json_never_becomes_a_name(library: ProgramLibrary, value: float) -> None:
    kept = await library.save("half", "number / 2", inputs={"number": {}})

    with pytest.raises(SavedProgramError, match="the input `number` is not a JSON value"):
        kept.text({"number": value})
    assert isinstance(await library.run("half", {"number": value}), Failed)


async def test_lines_of_errors_are_those_of_the_kept_text(library: ProgramLibrary) -> None:
    kept = await library.save("divide", "half = get_temp('Oslo')\nnumber / (half - 12)", inputs={"number": int})

    problem = problem_of(await library.run("divide", {"number": 1}))

    assert kept.code.split("\n")[2] == "number / (half - 12)"
    assert "line 3, in <module>" in problem
    assert problem.endswith("Calls that it had made are not undone: get_temp.")


# --- its own calls pass the pipeline


async def test_its_calls_are_approved_at_each_call(library: ProgramLibrary) -> None:
    await library.save("buy", "order(product)", inputs={"product": str})

    asked = await library.run("buy", {"product": "tea"})
    allowed = [await library.run("buy", {"product": "tea"}, Run(approver=yes)) for _ in range(2)]

    assert "order needs approval" in problem_of(asked)
    assert [value_of(outcome) for outcome in allowed] == ["ordered tea", "ordered tea"]
    assert ordered == ["tea", "tea"]


async def test_a_paused_program_is_given_to_the_host_and_resumed(engine: Sandbox) -> None:
    results: list[Any] = []
    kit = Toolkit([order], sandbox=engine)
    library = ProgramLibrary(kit, on_result=results.append)
    await library.save("buy", "order(product)", inputs={"product": {"type": "string"}})

    await library.run("buy", {"product": "tea"}, Run(approvals=MemoryApprovalStore()))
    paused = results[0].paused
    result = await kit.resume_async(paused, grants=[call.grant("ann") for call in paused.suspended_calls])

    assert result.return_value == "ordered tea"


async def test_its_calls_count_in_the_run_of_the_call(library: ProgramLibrary) -> None:
    await library.save("warm_cities", WARM, inputs=INPUTS)
    run = Run(limits=CallLimits(total=3))

    outcome = await library.run("warm_cities", {"cities": ["Oslo"] * 5}, run)

    assert "may make 3 calls" in problem_of(outcome)


async def test_it_can_call_the_tools_that_it_names_alone(library: ProgramLibrary) -> None:
    await library.save("hidden", "names = [name]\n[str(n) for n in names]", inputs={"name": str})
    kept = await library.get("hidden")
    forged = replace(kept, code="# inputs: name\neval(name)")  # as somebody might write it into the store

    store = MemoryProgramStore()
    await store.add(forged)
    outcome = await ProgramLibrary(library._toolkit, store).run(  # pyright: ignore[reportPrivateUsage]
        "hidden", {"name": "order('tea')"}, Run(approver=yes)
    )

    assert kept.tools == {}
    assert isinstance(outcome, Failed)
    assert ordered == []


async def test_it_is_a_tool_among_others(library: ProgramLibrary) -> None:
    await library.save("warm_cities", WARM, inputs=INPUTS, description="Find warm cities.")
    tools = Toolset([order, *await library.tools()])

    outcome = await Pipeline(tools).run(ToolCall("warm_cities", {"cities": ["Rome"]}, "c1"), Run())

    assert value_of(outcome) == ["Rome"]
    assert tools["warm_cities"].tool.parameters["required"] == ["cities"]
    assert tools["warm_cities"].description == "Find warm cities."


# --- before it is kept


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("get_tmp(city)", "line 1: NameError: name 'get_tmp' is not defined. Did you mean `get_temp`?"),
        ("x = 1\nget_temp(town=city)", "line 2: TypeError: `get_temp` cannot be called like that"),
        ("get_temp(city", "line 1: SyntaxError"),
        ("import requests\ncity", "`requests` cannot be imported"),
        ("get_temp('Oslo')", "it does not use its input `city`"),
        ("eval('get_' + 'temp')(city)", "which tools it calls cannot be read"),
        ("globals()['order'](city)", "which tools it calls cannot be read"),
        ("__builtins__\ncity", "which tools it calls cannot be read"),
    ],
)
async def test_what_cannot_work_is_not_kept(library: ProgramLibrary, code: str, problem: str) -> None:
    with pytest.raises(SavedProgramError) as caught:
        await library.save("program", code, inputs={"city": str})

    assert problem in str(caught.value)
    assert await library.list() == ()


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "class", "x; y", "naïve", "_x", "1a", "a\n"])
async def test_a_name_is_one_of_a_tool(library: ProgramLibrary, name: str) -> None:
    with pytest.raises(SavedProgramError):
        await library.save(name, "1")


@pytest.mark.parametrize(
    "name", ["a b", "x = order('x'); y", "class", "_x", "print", "get_temp", "describe", "ﬁle", "a\n"]
)
async def test_an_input_is_a_name_that_nothing_else_has(library: ProgramLibrary, name: str) -> None:
    with pytest.raises(SavedProgramError, match=r"cannot be the name of an input|has the name of a tool"):
        await library.save("program", "1", inputs={name: str})


async def test_the_name_of_a_tool_or_of_another_program_is_taken(library: ProgramLibrary) -> None:
    await library.save("one", "1")

    with pytest.raises(SavedProgramError, match="a tool has this name"):
        await library.save("order", "1")
    with pytest.raises(SavedProgramError, match="a builtin has this name"):
        await library.save("print", "1")
    with pytest.raises(SavedProgramError, match="another program has this name"):
        await library.save("one", "2")
    await library.save("one", "3", replace=True)

    assert value_of(await library.run("one")) == 3


async def test_an_input_without_a_schema_is_an_error(library: ProgramLibrary) -> None:
    with pytest.raises(SavedProgramError, match="no JSON schema"):
        await library.save("program", "city", inputs={"city": Sandbox})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": 7}, "the schema of its inputs is not valid: properties.city.type"),
        ({"properties": 5}, "the schema of its inputs is not valid: properties.city.properties"),
        ({"pattern": "("}, "the schema of its inputs is not valid: properties.city.pattern"),
        ({"$ref": "https://example.com/x"}, "the schema of its inputs is not valid: properties.city.$ref"),
        ({"$ref": "#/$defs/none"}, "no JSON schema"),
        ({"default": object()}, "the schema of its inputs is not valid: properties.city.default"),
        ({"type": "integer", "default": "many"}, "a default does not fit its schema: city: must be an integer"),
        (
            {"type": "object", "required": ["a"], "default": {}},
            "a default does not fit its schema: city.a: missing",
        ),
    ],
)
async def test_inputs_of_which_no_tool_can_be_made_are_an_error(
    library: ProgramLibrary, schema: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SavedProgramError) as caught:
        await library.save("program", "[city, day]", inputs={"city": schema, "day": str})

    assert problem in str(caught.value)
    assert await library.tools() == ()


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_policy_may_refuse_by_the_tools_that_it_calls(engine: Sandbox, is_async: bool) -> None:
    def policy(program: SavedProgram) -> str | None:
        return "it orders" if "order" in program.tools else None

    async def later(program: SavedProgram) -> str | None:
        return policy(program)

    library = ProgramLibrary(Toolkit([get_temp, order], sandbox=engine), policy=later if is_async else policy)

    await library.save("look", "get_temp('Oslo')")
    with pytest.raises(SavedProgramError, match="it may not be kept: it orders"):
        await library.save("buy", "buy = order\nbuy('tea')")

    assert [program.name for program in await library.list()] == ["look"]


@pytest.mark.parametrize("answer", [True, False, 0])
async def test_a_policy_returns_a_reason_or_none(answer: Any) -> None:
    library = ProgramLibrary(Toolkit([get_temp]), policy=lambda program: answer)

    with pytest.raises(TypeError, match=f"the program policy returned {answer}; return the reason against the program"):
        await library.save("look", "get_temp('Oslo')")

    assert await library.list() == ()


def test_a_policy_that_is_called_otherwise_or_returns_nothing_is_refused() -> None:
    def forgetful(program: SavedProgram) -> Any:
        len(program.tools)

    with pytest.raises(TypeError, match=r"the program policy `<lambda>` is called with \(program\), and takes \(\)"):
        ProgramLibrary(Toolkit([get_temp]), policy=lambda: None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="the program policy `forgetful` returns nothing"):
        ProgramLibrary(Toolkit([get_temp]), policy=forgetful)


Write: TypeAlias = Callable[[ProgramLibrary], Any]


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda lib: lib.save(5, "1"), r"save\(\): name is 5; give a text"),
        (lambda lib: lib.save("p", ["1"]), r"save\(\): code is \['1'\]; give a text"),
        (lambda lib: lib.save("p", "city", inputs=["city"]), r"inputs is \['city'\]; give values by name"),
        (lambda lib: lib.save("p", "city", inputs="city"), "inputs is 'city'; give values by name"),
        (lambda lib: lib.save("p", "city", input={"city": str}), "Did you mean `inputs`"),
        (lambda lib: lib.save("p", "1", description=5), "description is 5; give a text"),
        (lambda lib: lib.save("p", "1", trial="x"), "trial is 'x'; give values by name"),
        (lambda lib: lib.run("p", ["Oslo"]), r"run\(\): inputs is \['Oslo'\]; give values by name"),
        (lambda lib: lib.run("p", city="Oslo"), r"run\(\) has no option `city`"),
        (lambda lib: lib.get(5), r"get\(\): name is 5; give a text"),
        (lambda lib: lib.remove(5), r"remove\(\): name is 5; give a text"),
    ],
)
async def test_what_is_given_wrongly_is_told_by_its_name(library: ProgramLibrary, write: Write, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        await write(library)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"city": ["Oslo"]}, r"its input `city` is \['Oslo'\], which has no JSON schema; give a type"),
        ({"day": str, "city": 5}, "its input `city` is 5, which has no JSON schema; give a type"),
        ({5: str}, "5 cannot be the name of an input"),
    ],
)
async def test_a_wrong_input_is_named(library: ProgramLibrary, inputs: Any, said: str) -> None:
    with pytest.raises(SavedProgramError, match=said):
        await library.save("program", "[city, day]", inputs=inputs)


def test_changes_are_those_of_a_program(library: ProgramLibrary) -> None:
    wrong: Any = "look"

    with pytest.raises(TypeError, match=r"changes: program is 'look'; give what `await library\.get\(name\)`"):
        library.changes(wrong)


async def test_a_trial_has_to_succeed(library: ProgramLibrary) -> None:
    with pytest.raises(SavedProgramError, match=r"its trial failed: [\s\S]*ZeroDivisionError"):
        await library.save("part", "get_temp('Oslo') / by", inputs={"by": int}, trial={"by": 0})
    await library.save("part", "get_temp('Oslo') / by", inputs={"by": int}, trial={"by": 2})

    assert len(await library.list()) == 1


async def test_a_trial_calls_nothing_that_has_an_effect(engine: Sandbox) -> None:
    library = ProgramLibrary(Toolkit([get_temp, order], sandbox=engine, approver=yes))

    await library.save("buy", "get_temp('Oslo')\norder(product)", inputs={"product": str}, trial={"product": "tea"})

    assert ordered == []
    assert len(await library.list()) == 1


# --- tools that change


def changed(**options: Any) -> Toolkit:
    @ez_tool(name="get_temp", **options)
    def other(city: str) -> int:
        """Return the temperature in a city."""
        return 0

    return Toolkit([other])


@pytest.mark.parametrize("options", [{"effect": "fetch"}, {"effect": "none", "description": "Heat the city."}])
async def test_a_definition_that_changed_is_said_at_the_call(options: dict[str, Any]) -> None:
    store = MemoryProgramStore()
    await ProgramLibrary(Toolkit([get_temp]), store).save("warm_cities", WARM, inputs=INPUTS)
    later = ProgramLibrary(changed(**options), store)

    before = await later.run("warm_cities", {"cities": ["Oslo"]})
    await later.save("warm_cities", WARM, inputs=INPUTS, replace=True)
    after = await later.run("warm_cities", {"cities": ["Oslo"]})

    assert "the definition of `get_temp` has changed. Look at the program, and save it again" in problem_of(before)
    assert value_of(after) == []


async def test_the_same_definition_in_another_process_is_no_change() -> None:
    store = MemoryProgramStore()
    kept = await ProgramLibrary(Toolkit([get_temp]), store).save("warm_cities", WARM, inputs=INPUTS)

    assert ProgramLibrary(changed(effect="none"), store).changes(kept) == ()


async def test_a_tool_that_is_gone_is_said_at_the_call() -> None:
    store = MemoryProgramStore()
    await ProgramLibrary(Toolkit([get_temp]), store).save("warm_cities", WARM, inputs=INPUTS)

    outcome = await ProgramLibrary(Toolkit([order]), store).run("warm_cities", {"cities": ["Oslo"]})

    assert "the tool `get_temp` no longer exists" in problem_of(outcome)


async def test_tools_with_other_names_in_programs_and_views() -> None:
    tools = Toolset([get_temp, order]).prefixed("shop-")
    library = ProgramLibrary(Toolkit(tools))

    kept = await library.save("warm", "shop_get_temp(city)", inputs={"city": str})

    assert [*kept.tools] == ["shop_get_temp"]
    assert value_of(await library.run("warm", {"city": "Rome"})) == 24


# --- a model keeps programs


async def test_a_model_keeps_a_program_when_a_person_has_said_yes(library: ProgramLibrary) -> None:
    tools = Pipeline([library.save_tool()])
    inputs = {"cities": {"type": "array", "items": {"type": "string"}}, "above": {"type": "integer"}}
    arguments = {"program_name": "warm_cities", "code": WARM, "description": "Find.", "inputs": inputs}

    asked = await tools.run(ToolCall("save_program", arguments, "c1"), Run())
    done = await tools.run(ToolCall("save_program", arguments, "c2"), Run(approver=yes))
    again = await tools.run(ToolCall("save_program", arguments, "c3"), Run(approver=yes))

    assert isinstance(asked, Suspended)
    assert value_of(done) == "`warm_cities` is kept."
    assert "another program has this name" in problem_of(again)
    assert [tool.name for tool in await library.tools()] == ["warm_cities"]
    assert (await library.get("warm_cities")).author == "model"


@pytest.mark.parametrize("taken", ["save_program", "run_python"])
async def test_a_model_does_not_take_the_name_of_the_tools_around_its_program(
    library: ProgramLibrary, taken: str
) -> None:
    tools = Pipeline([library.save_tool(requires_approval=False)])
    arguments: dict[str, Any] = {"program_name": taken, "code": "1", "description": "One.", "inputs": {}}

    outcome = await tools.run(ToolCall("save_program", arguments, "c1"), Run())

    assert "a tool has this name" in problem_of(outcome)
    assert await library.tools() == ()


# --- what is stored


def test_a_stored_program_that_was_edited_is_read_only_if_it_is_one() -> None:
    whole = SavedProgram("trip", "# inputs: city\ncity", inputs={"properties": {"city": {}}}).to_dict()

    for field, value in (
        ("name", "a b"),
        ("inputs", {"properties": {"city = order('x'); b": {}}}),
        ("inputs", {"properties": {}}),
        ("inputs", []),
        ("code", "order('x')"),
        ("code", None),
        ("tools", ["order"]),
        ("at", "yesterday"),
    ):
        with pytest.raises(ValueError, match=r"name|line|not a SavedProgram|isoformat"):
            SavedProgram.from_dict(json.loads(json.dumps({**whole, field: value})))
    assert SavedProgram.from_dict(whole).to_dict() == whole


async def test_a_program_that_is_not_kept_is_said_with_a_likely_one(library: ProgramLibrary) -> None:
    await library.save("warm_cities", WARM, inputs=INPUTS)

    with pytest.raises(SavedProgramError, match="Did you mean `warm_cities`"):
        await library.run("warm_citys")
