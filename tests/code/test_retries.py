from __future__ import annotations

from typing import Any

import pytest

from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.pipeline import CallLimits, Run
from toolcrib.record import ListSink
from toolcrib.sandbox import Sandbox
from toolcrib.tools import Tool, ez_tool


@ez_tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def guarded(ran: list[str]) -> Tool[..., Any]:
    @ez_tool(requires_approval=True)
    def book(city: str) -> str:
        """Book a trip."""
        ran.append(city)
        return city

    return book


@pytest.fixture
def kit(engine: Sandbox) -> Toolkit:
    return Toolkit([add], sandbox=engine)


class Model:
    """Answers with one program after another, and notes what it was shown."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.shown = list(answers), list[tuple[str, str, ExecutionResult]]()

    def __call__(self, text: str, code: str, result: ExecutionResult) -> str | None:
        self.shown.append((text, code, result))
        return self.answers.pop(0)


def test_a_failed_program_is_mended_and_run_again(kit: Toolkit) -> None:
    model = Model("add(1, b=2)")

    result = kit.execute("add(1) + []", retry_handler=model)

    assert (result.success, result.return_value, len(result.earlier)) == (True, 3, 1)
    ((text, code, failed),) = model.shown
    assert code == "add(1) + []"
    assert text == failed.text()
    assert "TypeError" in text
    assert text.endswith("without what must not happen twice.")


async def test_an_async_handler_and_a_reply_in_markdown_will_do(kit: Toolkit) -> None:
    async def model(text: str, code: str, result: ExecutionResult) -> str:
        return "I forgot a name.\n\n```python\nprint('mended')\n```"

    result = await kit.execute_async("foo", retry_handler=model)

    assert result.output == "mended\n"


async def test_the_calls_of_all_programs_are_reported(kit: Toolkit) -> None:
    scope = Run(sinks=(ListSink(),))

    result = await kit.execute_async("add(1)\n1/0", scope, retry_handler=Model("add(2)\n[][0]", "add(3)"))

    assert [call["result"] for call in result.tool_calls] == [1, 2, 3]
    assert [record.outcome["value"] for record in result.records] == [1, 2, 3]
    assert [str(one.error).partition(" ")[0] for one in result.earlier] == ["ZeroDivisionError", "IndexError"]


async def test_the_hint_names_the_calls_of_all_programs(kit: Toolkit) -> None:
    model = Model("add(2)\n1/0", None)

    await kit.execute_async("add(1)\n1/0", retry_handler=model)

    assert "are not undone: `add` (2 times)." in model.shown[1][0]


@pytest.mark.parametrize(("most", "tried"), [(None, 3), (1, 1), (0, 0)])
async def test_it_is_mended_so_many_times_at_most(kit: Toolkit, most: int | None, tried: int) -> None:
    model = Model("foo", "foo", "foo", "foo")

    result = await kit.execute_async("foo", max_retries=most, retry_handler=model)

    assert (result.success, len(model.shown), len(result.earlier)) == (False, tried, tried)


@pytest.mark.parametrize("answer", [None, "", "  \n"])
async def test_no_answer_leaves_it(kit: Toolkit, answer: str | None) -> None:
    result = await kit.execute_async("foo", retry_handler=Model(answer))

    assert (result.success, result.earlier) == (False, ())


async def test_all_programs_are_of_one_run(kit: Toolkit) -> None:
    scope = Run(limits=CallLimits(total=2))

    result = await kit.execute_async("add(1)\n1/0", scope, retry_handler=Model("add(2)\nadd(3)", None))

    assert "may make 2 calls" in str(result.error)


async def test_a_paused_program_is_not_mended(engine: Sandbox) -> None:
    ran: list[str] = []
    model = Model("book('Oslo')")

    result = await Toolkit([guarded(ran)], sandbox=engine).execute_async("book('Oslo')", retry_handler=model)

    assert (result.is_paused, model.shown, ran, result.hint) == (True, [], [], "")


async def test_a_guarded_tool_does_not_run_by_retry_code(engine: Sandbox) -> None:
    ran: list[str] = []

    result = await Toolkit([guarded(ran)], sandbox=engine).execute_async("foo", retry_handler=Model("book('Oslo')"))

    assert (result.is_paused, ran) == (True, [])


async def test_numbers_without_a_handler_are_refused(kit: Toolkit) -> None:
    with pytest.raises(ValueError, match="retry_handler"):
        await kit.execute_async("1", max_retries=2)
    with pytest.raises(ValueError, match="at least 0"):
        await kit.execute_async("1", max_retries=-1, retry_handler=Model())
    assert (await kit.execute_async("1", max_retries=0)).success


# --- the hint


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("foo", "Nothing of it ran. Correct the program and send all of it again."),
        ("1/0", "Correct the program and send all of it again."),
        ("add(1)", ""),
    ],
)
async def test_after_a_failure_there_is_a_hint_what_to_do(kit: Toolkit, code: str, hint: str) -> None:
    result = await kit.execute_async(code)

    assert result.hint == hint
    assert result.text().endswith(hint)


async def test_the_hint_shows_the_keys_that_results_have(engine: Sandbox) -> None:
    @ez_tool
    def cities(n: int) -> list[dict[str, Any]]:
        """List cities."""
        return [{"name": "Oslo", "country": "no"}] * n

    result = await Toolkit([cities], sandbox=engine).execute_async("cities(2)[1]['city']")

    assert "`cities` gave dicts with the keys 'name', 'country'. Calls that were made" in result.hint


@pytest.mark.parametrize("given", ["Ask for help.", lambda result: "Ask for help." if result.error else ""])
async def test_the_hint_can_be_replaced(engine: Sandbox, given: Any) -> None:
    kit = Toolkit([add], sandbox=engine, error_hint=given)

    assert (await kit.execute_async("1/0")).text().endswith("\nAsk for help.")
    assert kit.filter(["add"]).execute_async is not None
    assert (await kit.filter(["add"]).execute_async("1/0")).hint == "Ask for help."


async def test_the_hint_can_be_left_out(engine: Sandbox) -> None:
    result = await Toolkit([add], sandbox=engine, error_hint="").execute_async("1/0")

    assert result.text().endswith("ZeroDivisionError: division by zero")
