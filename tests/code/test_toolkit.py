from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from toolcrib._run_sync import run_sync
from toolcrib.approvals import MemoryApprovalStore, approve_all, deny_all
from toolcrib.calls import ApprovalRequest, Denial, Reject, RunNormally
from toolcrib.code import SandboxLimits, Toolkit
from toolcrib.errors import UnknownTool
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Channel, Run
from toolcrib.record import ListSink
from toolcrib.sandbox import MontySandbox
from toolcrib.schema import RunContext
from toolcrib.tools import ez_tool, tool
from toolcrib.toolsets import Toolset


@ez_tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@tool(requires_approval=True)
async def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


@ez_tool
def fail(message: str) -> None:
    """Fail."""
    raise LookupError(message)


@pytest.fixture
def kit(sandbox: MontySandbox) -> Toolkit:
    return Toolkit([add, book, fail], sandbox=sandbox)


def test_a_program_runs_from_plain_code(kit: Toolkit) -> None:
    result = kit.execute("total = 0\nfor i in range(4):\n    total = add(total, i)\nprint(total)\ntotal * 2")

    assert (result.success, result.output, result.return_value, result.error) == (True, "6\n", 12, None)
    assert [call["result"] for call in result.tool_calls] == [0, 1, 3, 6]


async def test_a_program_runs_from_async_code(kit: Toolkit) -> None:
    result = await kit.execute_async("add(1, b=2)")

    assert result.return_value == 3


async def test_plain_code_is_refused_in_an_event_loop_with_what_to_write(kit: Toolkit) -> None:
    with pytest.raises(RuntimeError, match=r"await toolkit\.execute_async\(code\)"):
        kit.execute("1")


async def test_calls_are_listed_in_order_with_their_outcomes(kit: Toolkit) -> None:
    result = await kit.execute_async("add(1)\ntry:\n    fail('no')\nexcept LookupError:\n    pass\nadd(2, b=3)")

    told = [{key: call[key] for key in call if key not in ("id", "duration_ms")} for call in result.tool_calls]
    assert told == [
        {"name": "add", "arguments": {"a": 1}, "outcome": "completed", "result": 1},
        {"name": "fail", "arguments": {"message": "no"}, "outcome": "failed", "error": "LookupError: no"},
        {"name": "add", "arguments": {"a": 2, "b": 3}, "outcome": "completed", "result": 5},
    ]
    assert len({call["id"] for call in result.tool_calls}) == 3
    assert all(call["duration_ms"] > 0 for call in result.tool_calls)


async def test_a_failure_is_a_result_with_the_programs_own_line(kit: Toolkit) -> None:
    result = await kit.execute_async("print('begun')\nfail('gone')")

    assert (result.success, result.output) == (False, "begun\n")
    assert result.error == "LookupError (line 2): gone"
    assert result.error_output.splitlines() == [
        "Traceback (most recent call last):",
        '  File "program.py", line 2, in <module>',
        "    fail('gone')",
        "LookupError: gone",
    ]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("add()", "TypeError"),
        ("add(1, 2, 3)", "TypeError"),
        ("add(1, c=2)", "TypeError"),
        ("add(1, a=2)", "TypeError"),
        ("add('one')", "ValueError"),
        ("add([])", "ValueError"),
    ],
)
async def test_a_bad_call_is_an_exception_that_names_tool_and_argument(kit: Toolkit, call: str, kind: str) -> None:
    sink = ListSink()
    run = Run(sinks=(sink,), limits=CallLimits(total=5))

    result = await kit.execute_async(f"try:\n    {call}\nexcept {kind} as error:\n    print(error)", run)

    assert result.output.startswith("`add` cannot take these arguments: ")
    assert result.tool_calls[0]["outcome"] == "failed"
    assert [record.outcome["code"] for record in sink.records] == ["invalid_arguments"]
    assert (run.calls, run.retries) == ({"add": 1}, {"add": 1})


async def test_without_an_approver_the_program_ends_at_the_call(kit: Toolkit) -> None:
    result = await kit.execute_async("add(1)\ntry:\n    book('Oslo')\nexcept BaseException:\n    pass\nadd(2)")

    assert (result.success, result.is_paused) == (False, True)
    (request,) = result.suspended
    assert (request.tool, request.arguments) == ("book", {"city": "Oslo"})
    asked = f"`book` is suspended until a person answers (request {request.id}); it has not run."
    assert result.error == f"Paused (line 3): {asked}"
    assert [(call["name"], call["outcome"]) for call in result.tool_calls] == [
        ("add", "completed"),
        ("book", "suspended"),
    ]


async def test_several_calls_may_wait_at_once(kit: Toolkit) -> None:
    result = await kit.execute_async("import asyncio\nawait asyncio.gather(book('Oslo'), book('Rome'))")

    assert [request.arguments["city"] for request in result.suspended] == ["Oslo", "Rome"]


async def test_an_approver_is_asked_while_the_program_waits(sandbox: MontySandbox) -> None:
    kit = Toolkit([book], sandbox=sandbox, approver=approve_all)

    assert (await kit.execute_async("book('Oslo')")).return_value == "booked Oslo"


async def test_a_denial_is_an_exception_with_what_the_person_said(sandbox: MontySandbox) -> None:
    async def no(request: ApprovalRequest) -> Denial:
        return request.deny(message="too dear")

    kit = Toolkit([book], sandbox=sandbox, approver=no)
    result = await kit.execute_async("try:\n    book('Oslo')\nexcept PermissionError as error:\n    print(error)")

    assert result.success
    assert "too dear" in result.output
    assert result.tool_calls[0]["outcome"] == "rejected"


@pytest.mark.parametrize(
    "code", ["f = book\nf('Oslo')", "{'b': book}['b']('Oslo')", "import functools\nfunctools.partial(book, 'Oslo')()"]
)
async def test_a_guarded_tool_is_guarded_by_any_name(kit: Toolkit, code: str) -> None:
    result = await kit.execute_async(code)

    assert result.is_paused


async def test_decision_hooks_are_asked(sandbox: MontySandbox) -> None:
    hooks = HookSet()

    @hooks.on(add)
    async def small(call: Any, given: Any) -> Any:
        return Reject("too large") if given.a > 10 else RunNormally(given)

    kit = Toolkit([add], sandbox=sandbox, hooks=hooks)
    result = await kit.execute_async("try:\n    add(11)\nexcept PermissionError as error:\n    print(error)\nadd(1)")

    assert (result.output, result.return_value) == ("too large\n", 1)


async def test_a_streaming_tool_gives_a_list(sandbox: MontySandbox) -> None:
    @tool()
    async def count(to: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(to):
            yield number

    assert (await Toolkit([count], sandbox=sandbox).execute_async("sum(count(4))")).return_value == 6


async def test_subtools_are_called_by_either_name(sandbox: MontySandbox) -> None:
    @tool()
    async def orders() -> list[int]:
        """List the orders."""
        return [1, 2]

    @orders.subtool()
    async def lines(number: int) -> str:
        """List the lines of an order."""
        return f"lines of {number}"

    result = await Toolkit([orders], sandbox=sandbox).execute_async(
        "[orders.lines(n) for n in orders()] + [orders__lines(3)]"
    )

    assert result.return_value == ["lines of 1", "lines of 2", "lines of 3"]


async def test_tools_with_other_names_are_called_by_python_ones(sandbox: MontySandbox) -> None:
    kit = Toolkit([ez_tool(name="get-it")(lambda: 1), ez_tool(name="open")(lambda: 2)], sandbox=sandbox)

    result = await kit.execute_async("[get_it(), open_()]")

    assert result.return_value == [1, 2]
    assert kit.get_tool("get_it") is kit.get_tool("get-it")


async def test_secrets_are_in_no_log(sandbox: MontySandbox) -> None:
    @ez_tool
    def login(user: str, password: SecretStr) -> int:
        """Log in."""
        return len(password.get_secret_value())

    result = await Toolkit([login], sandbox=sandbox).execute_async(
        "login('ada', 'hunter2')\ntry:\n    login('ada', ['hunter2'])\nexcept ValueError as error:\n    print(error)"
    )

    assert result.tool_calls[0]["result"] == 7
    assert "hunter2" not in str(result)


async def test_a_long_result_is_cut_in_the_log_and_not_in_the_program(sandbox: MontySandbox) -> None:
    kit = Toolkit([ez_tool(name="rows")(lambda: [{"n": n} for n in range(20_000)])], sandbox=sandbox)

    result = await kit.execute_async("len(rows())")

    assert result.return_value == 20_000
    assert len(result.tool_calls[0]["result"]) < 101_000


async def test_dependencies_and_sinks_reach_the_call(sandbox: MontySandbox) -> None:
    @ez_tool
    def who(ctx: RunContext[str]) -> str:
        """Say who asks."""
        return ctx.deps

    sink = ListSink()
    kit = Toolkit([who], sandbox=sandbox, deps="ada", sinks=[sink])
    result = await kit.execute_async("who()")

    assert result.return_value == "ada"
    assert [(record.tool, record.entry) for record in result.records] == [("who", "code")]
    assert sink.records == list(result.records)


async def test_a_run_of_the_hosts_is_used_and_counted(kit: Toolkit) -> None:
    scope = Run(limits=CallLimits(total=3), channel=Channel(entry="mine"), sinks=(ListSink(),))

    first = await kit.execute_async("add(1)\nadd(2)", scope)
    second = await kit.execute_async("add(3)\nadd(4)", scope)

    assert [record.entry for record in first.records] == ["mine", "mine"]
    assert first.success
    assert second.error is not None
    assert second.error.startswith("RuntimeError (line 2): `add` was not run: this run may make 3 calls")


async def test_what_a_run_of_the_hosts_leaves_open_is_the_toolkits(sandbox: MontySandbox) -> None:
    @ez_tool(requires_approval=True)
    def who(ctx: RunContext[str]) -> str:
        return f"{ctx.deps}, {ctx.approved_by}"

    kit = Toolkit([who], sandbox=sandbox, deps="ada", approver=approve_all, sinks=[ListSink()])
    first = await kit.execute_async("who()", Run())
    second = await kit.execute_async("who()", Run(deps="bo", approver=deny_all))

    assert (first.return_value, first.records[0].entry) == ("ada, approve_all", "code")
    assert second.error is not None
    assert second.error.startswith("PermissionError")


async def test_only_available_tools_are_offered(kit: Toolkit) -> None:
    result = await kit.execute_async("fail('x')", Run(available=frozenset({"add"})))

    assert result.tool_calls == []
    assert "name 'fail' is not defined" in str(result.error)


async def test_an_observer_that_raises_is_the_hosts_business(sandbox: MontySandbox) -> None:
    @tool()
    async def quiet() -> None:
        """Do nothing."""

    @quiet.before_invoke
    async def broken() -> None:
        raise ZeroDivisionError("in a hook")

    with pytest.raises(ZeroDivisionError, match="in a hook"):
        await Toolkit([quiet], sandbox=sandbox).execute_async("quiet()")


async def test_what_is_printed_is_heard_while_it_runs(kit: Toolkit) -> None:
    heard: list[tuple[str, str]] = []

    await kit.execute_async(
        "print('a')\nadd(1)\nprint('b')", on_output=lambda text, stream: heard.append((stream, text))
    )

    assert heard == [("stdout", "a\n"), ("stdout", "b\n")]


async def test_calls_see_the_context_of_who_runs_the_program(sandbox: MontySandbox) -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    user.set("ada")
    kit = Toolkit([ez_tool(name="who")(lambda: user.get())], sandbox=sandbox)

    result = await kit.execute_async("import asyncio\n[who(), *await asyncio.gather(who(), who())]")

    assert result.return_value == ["ada", "ada", "ada"]


async def test_cancelling_stops_the_tool_and_marks_its_call(sandbox: MontySandbox) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @tool()
    async def forever() -> None:
        """Never return."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    task = asyncio.create_task(Toolkit([forever], sandbox=sandbox).execute_async("forever()"))
    await begun.wait()
    task.cancel()
    (ended,) = await asyncio.gather(task, return_exceptions=True)

    assert isinstance(ended, asyncio.CancelledError)
    assert stopped.is_set()


async def test_limits_are_those_of_the_toolkit(sandbox: MontySandbox) -> None:
    kit = Toolkit([add], sandbox=sandbox, limits=SandboxLimits(calls=2))

    result = await kit.execute_async("for i in range(10):\n    add(i)")

    assert len(result.tool_calls) == 2
    assert "may make 2 calls" in str(result.error)


def test_tools_are_found_by_name(kit: Toolkit) -> None:
    assert kit.tools == [add, book, fail]
    assert kit.get_tool("add") is add
    with pytest.raises(UnknownTool, match="Did you mean `add`"):
        kit.get_tool("ad")


def test_a_filtered_toolkit_has_some_of_the_tools_and_the_same_gates(sandbox: MontySandbox) -> None:
    tagged = ez_tool(name="sub", tags=["math"])(lambda a, b: a - b)
    kit = Toolkit([add, book, tagged], sandbox=sandbox)

    assert [t.name for t in kit.filter(["book", "add"]).tools] == ["add", "book"]
    assert [t.name for t in kit.filter(tags=["math"]).tools] == ["sub"]
    assert [t.name for t in kit.filter(where=lambda entry: entry.name != "sub").tools] == ["add", "book"]
    assert kit.filter(["book"]).execute("book('Oslo')").is_paused
    with pytest.raises(UnknownTool):
        kit.filter(["nothing"])


def test_a_toolset_that_has_to_be_opened_is_refused_with_how() -> None:
    class Source:
        def open_source(self, ctx: Any) -> Any:
            raise NotImplementedError

    closed = Toolset([Source()])

    with pytest.raises(ValueError, match=r"async with tools\.open\(\) as bound"):
        Toolkit(closed)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (
            {"limits": {"memory": 1}},
            TypeError,
            r"`limits` of a toolkit must be SandboxLimits\(memory=1 << 30\), and not {",
        ),
        ({"extract": "frst"}, ValueError, "extract is 'frst'; did you mean 'first'"),
        ({"sandbox": "proces"}, ValueError, "sandbox is 'proces'; did you mean 'process'"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Toolkit([], **options)


def test_a_program_that_is_no_text_is_refused(kit: Toolkit) -> None:
    with pytest.raises(TypeError, match=r"Toolkit\.execute\w*\(\): code is b'1'; give a text"):
        kit.execute(b"1")  # type: ignore[arg-type]


def test_a_program_of_plain_code_belongs_to_the_run_that_is_given() -> None:
    @ez_tool(requires_approval=True)
    def pay(cents: int) -> str:
        """Pay."""
        return f"paid {cents}"

    store, kit = MemoryApprovalStore(), Toolkit([pay])
    waiting = kit.execute("print(pay(5))", Run(principal="ann", approvals=store))
    assert waiting.paused is not None
    [request] = [call.request for call in waiting.suspended_calls]
    run_sync(store.answer(request.grant("ben")))

    result = kit.resume(waiting.paused, Run(principal="ann", approvals=store))

    assert (request.principal, result.output.strip()) == ("ann", "paid 5")


def test_an_approver_that_is_no_function_is_refused_when_it_is_set() -> None:
    with pytest.raises(TypeError, match="a toolkit: approver is not 'ann'; it must be a function of the request"):
        Toolkit([add], approver="ann")  # type: ignore[arg-type] -- a mistake
