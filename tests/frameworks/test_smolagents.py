"""smolagents: what its ways in do not show."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
from collections.abc import Coroutine, Iterator
from io import BytesIO
from typing import Any, Literal

import pytest
from PIL import Image
from smolagents import AgentError, CodeAgent, MultiStepAgent, Tool, ToolCallingAgent, tool
from smolagents.local_python_executor import PythonExecutor
from smolagents.memory import ActionStep
from smolagents.models import get_tool_json_schema

from tests.frameworks.booking import booking
from tests.frameworks.scripted_smolagents import QUIET, Script
from toolcrib.adapters.smolagents import (
    SandboxExecutor,
    _calls,
    answers,
    approval_requests,
    as_tools,
    from_tools,
    guard,
    run_agent,
)
from toolcrib.adapters.smolagents._calls import CallLoop
from toolcrib.adapters.smolagents._tools import inputs_of
from toolcrib.approvals import MemoryApprovalStore, approve_all
from toolcrib.calls import Completed, Media, Suspended, ToolCall
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.provenance import Provenance
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool


def deleting(ran: list[str]) -> Tool:
    """Return a tool of smolagents that notes what it was called with."""

    @tool
    def delete(path: str) -> str:
        """Delete a file.

        Args:
            path: The file.
        """
        ran.append(path)
        return f"deleted {path}"

    return delete


def observed(agent: MultiStepAgent) -> list[str]:
    """Return what the model was told after each step."""
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    return [str(step.observations or step.error) for step in steps]


def png(color: str = "red") -> bytes:
    """Return a picture."""
    made = BytesIO()
    Image.new("RGB", (2, 2), color).save(made, format="png")
    return made.getvalue()


# --- our tools in their agents


def test_a_call_that_waits_ends_the_run_and_an_answer_goes_on_with_it() -> None:
    ran: list[str] = []
    model = Script([("book", {"city": "Oslo"}), ("weather", {})])
    agent = as_tools([booking(ran, requires_approval=True), weather], ToolCallingAgent([], model, **QUIET))

    with pytest.raises(AgentError, match="interrupted"):
        agent.run("go")
    [request] = approval_requests(agent)
    task = answers(agent, request.grant("ann", override_args={"city": "Rome"}))
    done = agent.run(task, reset=False)

    assert (request.arguments, ran, done) == ({"city": "Oslo"}, ["Rome"], "done")
    assert "suspended" in observed(agent)[0]
    assert '{"temp": 3}' in observed(agent)[0]
    assert "book(city='Oslo'): booked Rome" in task
    assert approval_requests(agent) == []


@ez_tool
async def weather() -> dict[str, int]:
    """Say how cold it is."""
    return {"temp": 3}


@pytest.mark.parametrize("executor", [None, SandboxExecutor], ids=["local", "sandbox"])
def test_a_program_ends_at_a_call_that_waits_and_its_names_stay(executor: Any) -> None:
    ran: list[str] = []
    program = "city = 'Oslo'\ntry:\n    book(city)\nexcept Exception as error:\n    print('no:', error)"
    model = Script(program, "final_answer(city + '!')")
    made = None if executor is None else executor()
    agent = as_tools([booking(ran, requires_approval=True)], CodeAgent([], model, executor=made, **QUIET))

    with agent:
        with pytest.raises(AgentError, match="interrupted"):
            agent.run("go")
        task = answers(agent, approval_requests(agent)[0].grant("ann"))
        done = agent.run(task, reset=False)

    assert (ran, done) == (["Oslo"], "Oslo!")
    assert "no: " in observed(agent)[0]


def test_an_approver_is_asked_while_the_agent_waits() -> None:
    ran: list[str] = []
    agent = ToolCallingAgent([], Script([("book", {"city": "Oslo"})]), **QUIET)
    as_tools([booking(ran, requires_approval=True)], agent, run=lambda agent: Run(approver=approve_all))

    assert (agent.run("go"), ran) == ("done", ["Oslo"])


def test_an_answer_of_the_store_is_found_and_a_denial_is_recorded() -> None:
    ran: list[str] = []
    sink, store = RecordingSink(), MemoryApprovalStore()
    model = Script([("book", {"city": "Oslo"}), ("book", {"city": "Rome"})])
    agent = ToolCallingAgent([], model, **QUIET)
    as_tools([booking(ran, requires_approval=True)], agent, run=lambda agent: Run(approvals=store), sinks=[sink])

    with pytest.raises(AgentError):
        agent.run("go")
    oslo, rome = sorted(approval_requests(agent), key=lambda request: request.arguments["city"])
    asyncio.run(store.answer(oslo.grant("ann")))
    task = answers(agent, oslo, rome.deny(message="too far", by="ben"))

    assert ("booked Oslo" in task, "Rejected: too far" in task, ran) == (True, True, ["Oslo"])
    assert sink.records[-1].approval["approver"] == "ben"  # type: ignore[index]


def test_an_answer_to_nothing_that_waits_and_a_second_one_are_errors() -> None:
    agent = ToolCallingAgent([], Script([("book", {"city": "Oslo"})]), **QUIET)
    as_tools([booking([], requires_approval=True)], agent)
    with pytest.raises(AgentError):
        agent.run("go")
    [request] = approval_requests(agent)
    other = asyncio.run(Pipeline([booking([], requires_approval=True)]).run(ToolCall("book", {"city": "Oslo"})))
    assert isinstance(other, Suspended)

    with pytest.raises(ApprovalError, match="no call that waits"):
        answers(agent, other.request.grant())
    answers(agent, request.grant())
    with pytest.raises(ApprovalError):
        answers(agent, request.grant())


def test_limits_hold_in_one_run_of_an_agent_and_state_is_the_deps() -> None:
    seen: list[Any] = []

    @ez_tool
    async def whose(ctx: RunContext) -> str:
        """Say whose."""
        seen.append((ctx.deps["user"], ctx.provided[MultiStepAgent]))  # type: ignore[index]
        return "hers"

    model = Script([("whose", {}), ("whose", {})], [("final_answer", {"answer": "1"})], [("whose", {})])
    agent = ToolCallingAgent([], model, max_tool_threads=1, **QUIET)
    as_tools([whose], agent, run=lambda agent: Run(limits=CallLimits(total=1)))

    agent.run("go", additional_args={"user": "ann"})
    first = observed(agent)[0]
    agent.run("again")

    assert seen == [("ann", agent)] * 2
    assert ("hers" in first, "Rejected" in first) == (True, True)


def test_a_lock_holds_between_the_threads_of_a_step() -> None:
    inside: list[int] = []
    loops: set[Any] = set()

    @ez_tool(lock=True)
    async def alone(n: int) -> int:
        """Be alone."""
        loops.add(asyncio.get_running_loop())
        inside.append(n)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        inside.append(n)
        return n

    model = Script([("alone", {"n": n}) for n in range(8)])
    agent = as_tools([alone], ToolCallingAgent([], model, **QUIET))

    agent.run("go")

    assert inside[::2] == inside[1::2]
    assert len(loops) == 1


def test_steps_are_streamed_and_the_result_is_the_full_one() -> None:
    ran: list[str] = []
    agent = ToolCallingAgent([], Script([("book", {"city": "Oslo"})]), stream_outputs=True, **QUIET)
    as_tools([booking(ran)], agent)

    outputs = [each.observation for each in agent.run("go", stream=True) if type(each).__name__ == "ToolOutput"]

    assert (outputs, ran) == (["booked Oslo", "done"], ["Oslo"])


@pytest.mark.parametrize("kind", ["calls", "code"])
def test_the_model_is_shown_an_image_after_the_step(kind: Literal["calls", "code"]) -> None:
    @ez_tool
    async def draw() -> Media:
        """Draw."""
        return Media("image/png", png(), name="dot.png")

    model = Script([("draw", {})]) if kind == "calls" else Script("print(draw().size)")
    make = ToolCallingAgent if kind == "calls" else CodeAgent
    agent = as_tools([draw], make([], model, **QUIET))

    agent.run("go")

    shown = [part for message in model.seen[1] for part in message.content if part["type"] == "image"]
    assert [part["image"].getpixel((0, 0)) for part in shown] == [(255, 0, 0)]
    assert ("dot.png" if kind == "calls" else "(2, 2)") in observed(agent)[0]


def test_what_a_model_is_shown_of_parameters() -> None:
    @ez_tool
    async def plan(days: int, kind: Literal["a", "b"], where: list[dict[str, int]], note: str | None = None) -> str:
        """Plan."""
        return "planned"

    agent = as_tools([plan], ToolCallingAgent([], Script(), **QUIET))

    shown = get_tool_json_schema(agent.tools["plan"])["function"]["parameters"]

    properties = shown["properties"]
    assert shown["required"] == ["days", "kind", "where"]
    assert [properties[name]["type"] for name in ("days", "kind", "where", "note")] == [
        "integer",
        "string",
        "array",
        "string",
    ]
    assert (properties["kind"]["enum"], properties["note"]["nullable"]) == (["a", "b"], True)
    assert "def plan(days: integer" in agent.tools["plan"].to_code_prompt()


def test_types_that_hold_each_other_are_written_out_once() -> None:
    fields = {f"f{n}": {"$ref": f"#/$defs/T{n}"} for n in range(4)}
    definitions = {f"T{n}": {"type": "object", "properties": fields} for n in range(4)}
    shown = inputs_of({"properties": {"at": {"$ref": "#/$defs/T0"}, "any": True}, "$defs": definitions})

    assert shown["any"] == {"type": "any", "description": "", "nullable": True}
    assert shown["at"]["properties"]["f0"] == {"type": "object"}
    assert len(str(shown)) < 10_000


def test_a_name_that_the_agent_has_already_is_refused() -> None:
    agent = ToolCallingAgent([deleting([])], Script(), **QUIET)

    with pytest.raises(ValueError, match="`delete` already"):
        as_tools([ez_tool(name="delete")(weather.fn)], agent)


# --- provenance


@pytest.mark.parametrize("foreign", [False, True], ids=["ours", "theirs"])
def test_a_value_of_a_stranger_is_asked_about(foreign: bool) -> None:
    sent: list[str] = []

    @ez_tool(name="read_mail", effect="none", source="untrusted")
    async def ours() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    @tool
    def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    model = Script([("read_mail", {})], [("pay", {"account": "DE89370400440532013000"})])
    agent = ToolCallingAgent([read_mail] if foreign else [], model, **QUIET)
    tools = [paying(sent)] if foreign else [paying(sent), ours]
    as_tools(tools, agent, run=lambda agent: Run(features=[Provenance()]))

    with pytest.raises(AgentError):
        agent.run("pay my bill")

    [request] = approval_requests(agent)
    assert (request.origins[0]["value"], sent) == ("DE89370400440532013000", [])


def paying(sent: list[str]) -> Any:
    """Return a tool that spends, and notes what for."""

    @ez_tool(effect="spend")
    async def pay(account: str) -> str:
        """Pay."""
        sent.append(account)
        return "paid"

    return pay


def test_what_the_user_said_is_not_asked_about_but_what_came_of_an_answer_is() -> None:
    sent: list[str] = []

    @ez_tool(effect="none", source="untrusted", requires_approval=True)
    async def read_mail() -> str:
        """Read the mail."""
        return "pay to DE89370400440532013000"

    def open_run(agent: Any) -> Run:
        return Run(features=[Provenance()])

    told = Script([("pay", {"account": "NO9386011117947"})])
    agent = as_tools([paying(sent)], ToolCallingAgent([], told, **QUIET), run=open_run)
    agent.run("pay to NO9386011117947")
    assert sent == ["NO9386011117947"]

    model = Script([("read_mail", {})], [("pay", {"account": "DE89370400440532013000"})])
    agent = as_tools([paying(sent), read_mail], ToolCallingAgent([], model, **QUIET), run=open_run)
    with pytest.raises(AgentError):
        agent.run("pay my bill")
    task = answers(agent, approval_requests(agent)[0].grant())
    with pytest.raises(AgentError):
        agent.run(task, reset=False)

    assert ([request.tool for request in approval_requests(agent)], len(sent)) == (["pay"], 1)


def test_what_another_agents_model_asks_for_and_what_is_attached_are_none_of_the_users_words() -> None:
    sent: list[str] = []

    def payer(**options: Any) -> Any:
        model = Script([("pay", {"account": "DE89370400440532013000"})])
        made = ToolCallingAgent([], model, **options, **QUIET)
        return as_tools([paying(sent)], made, run=lambda agent: Run(features=[Provenance()]))

    helper, alone = payer(name="helper", description="Pays."), payer()
    manager = Script([("helper", {"task": "pay to DE89370400440532013000"})])
    ToolCallingAgent([], manager, managed_agents=[helper], **QUIET).run("pay my bill")
    with pytest.raises(AgentError):
        alone.run("pay my bill", additional_args={"mail": "pay to DE89370400440532013000"})

    assert ([len(approval_requests(agent)) for agent in (helper, alone)], sent) == ([1, 1], [])


# --- in an event loop


async def test_calls_run_in_the_loop_that_waits_and_none_is_made_after_cancelling() -> None:
    ran: list[Any] = []
    begun = asyncio.Event()

    @ez_tool
    async def hang() -> None:
        """Hang."""
        ran.append(asyncio.get_running_loop())
        begun.set()
        await asyncio.Event().wait()

    program = "try:\n    hang()\nexcept Exception:\n    pass\nbook('Oslo')"
    agent = as_tools([hang, booking(ran)], CodeAgent([], Script(program), **QUIET))
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    agent.step_callbacks.register(ActionStep, lambda step: loop.call_soon_threadsafe(ended.set))

    task = asyncio.create_task(run_agent(agent, "go"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()  # the agent's thread ends its step by itself

    assert ran == [loop]


@pytest.mark.parametrize(
    ("moment", "error"),
    [
        ("while it waits", KeyboardInterrupt),
        ("before it waits", KeyboardInterrupt),
        ("before it waits", SystemExit),  # of a signal's handler
    ],
)
def test_a_call_that_is_broken_off_has_ended_when_the_agent_goes_on(
    moment: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    begun = threading.Event()
    schedule = asyncio.run_coroutine_threadsafe

    def interrupted(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
        monkeypatch.undo()
        schedule(work, loop)
        begun.wait()
        raise error

    async def hang() -> None:
        try:
            begun.set()
            if moment == "while it waits":
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("hang")

    if moment == "before it waits":
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(error):
        CallLoop().run(hang())

    assert ended == ["hang"]


def test_a_call_that_blocks_its_loop_is_not_waited_for_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_calls, "_END_SECONDS", 0.01)
    released = threading.Event()

    async def block() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait()

    with pytest.raises(KeyboardInterrupt):
        CallLoop().run(block())

    released.set()


async def test_an_answer_and_the_task_that_follows_in_an_event_loop() -> None:
    ran: list[str] = []
    model = Script([("book", {"city": "Oslo"})])
    agent = as_tools([booking(ran, requires_approval=True)], ToolCallingAgent([], model, **QUIET))

    with pytest.raises(AgentError):
        await run_agent(agent, "go")
    done = await run_agent(agent, "Be brief.", given=[approval_requests(agent)[0].grant("ann")])

    assert (done, ran) == ("done", ["Oslo"])
    assert str(agent.task).endswith("Be brief.")
    with pytest.raises(TypeError, match="stream"):
        await run_agent(agent, "go", stream=True)


# --- our sandbox as their executor


@pytest.fixture
def executor() -> Iterator[SandboxExecutor]:
    made = SandboxExecutor()
    yield made
    made.cleanup()


def test_programs_run_in_the_sandbox_with_all_tools_and_keep_their_names(executor: SandboxExecutor) -> None:
    ran: list[str] = []
    model = Script(
        "import os\nprint(os.listdir('/'))\nx = delete(path='a')",
        "print(user['name'])\nbook(x)",
        "for n in range(3):\n    final_answer(n)\n    book('never')",
    )
    agent = CodeAgent([deleting(ran)], model, executor=executor, **QUIET)
    as_tools([booking(ran)], agent)

    done = agent.run("go", additional_args={"user": {"name": "ann"}})

    assert (done, ran) == (0, ["a", "deleted a"])
    assert "home" not in observed(agent)[0]
    assert "ann\nLast output from code snippet:\nbooked deleted a" in observed(agent)[1]


def test_a_program_that_fails_says_why_and_what_it_printed(executor: SandboxExecutor) -> None:
    agent = CodeAgent([], Script("print('so far')\n1 / 0"), executor=executor, **QUIET)

    agent.run("go")

    [first, _] = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert "so far" in str(first.observations)
    assert "ZeroDivisionError" in str(first.error)


def test_a_variable_that_is_no_json_is_refused_by_its_name(executor: SandboxExecutor) -> None:
    with pytest.raises(TypeError, match="`picture`"):
        executor.send_variables({"picture": Image.new("RGB", (1, 1))})


# --- their tools with us


async def test_a_picture_that_their_tool_returns_is_media() -> None:
    class Draw(Tool):
        name, description, output_type = "draw", "Draws.", "image"
        inputs = {"color": {"type": "string", "description": "", "nullable": True}}  # noqa: RUF012 -- as theirs

        def forward(self, color: str | None = None) -> Image.Image:
            return Image.new("RGB", (2, 2), color or "red")

    outcome = await Pipeline(from_tools([Draw()])).run(ToolCall("draw", {"color": None}))

    assert isinstance(outcome, Completed)
    assert outcome.value == Media("image/png", png())


# --- gates around what an agent has


@pytest.mark.parametrize("kind", ["calls", "code", "sandbox"])
def test_a_guard_asks_about_the_tools_that_an_agent_has(kind: str) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    agent: Any = ToolCallingAgent([deleting(ran)], Script([("delete", {"path": "x"})]), **QUIET)
    if kind != "calls":
        executor = SandboxExecutor() if kind == "sandbox" else None
        agent = CodeAgent([deleting(ran)], Script("delete('x')"), executor=executor, **QUIET)
    guard(agent, GuardPolicy(approve=["delete"], sinks=(sink,)))

    with pytest.raises(AgentError, match="interrupted"):
        agent.run("go")
    [request] = approval_requests(agent)
    assert ran == []
    task = answers(agent, request.grant("ben"))

    assert ("deleted x" in task, ran, agent.run(task, reset=False)) == (True, ["x"], "done")
    assert sink.records[-1].approval["approver"] == "ben"  # type: ignore[index]
    if kind != "calls":
        agent.cleanup()


def test_a_guard_is_around_managed_agents_whose_calls_are_one_run_and_end_the_whole() -> None:
    ran: list[str] = []
    helper = ToolCallingAgent(
        [deleting(ran)], Script([("delete", {"path": "x"})]), name="helper", description="Helps.", **QUIET
    )
    agent = ToolCallingAgent([], Script([("helper", {"task": "clean"})]), managed_agents=[helper], **QUIET)
    guard(agent, GuardPolicy(approve=True))

    with pytest.raises(AgentError, match="interrupted"):
        agent.run("go")

    [request] = approval_requests(agent)
    assert (request.tool, ran) == ("delete", [])
    assert "deleted x" in answers(agent, request.grant())


def test_a_team_has_one_run() -> None:
    ran: list[str] = []
    model = Script([("delete", {"path": "x"})], [("final_answer", {"answer": "1"})], [("delete", {"path": "y"})])
    helper = ToolCallingAgent([deleting(ran)], model, name="helper", description="Helps.", **QUIET)
    manager = Script([("helper", {"task": "clean"})], [("helper", {"task": "more"})])
    agent = ToolCallingAgent([], manager, managed_agents=[helper], **QUIET)
    guard(agent, GuardPolicy(run=lambda agent: Run(limits=CallLimits(total=1))))

    agent.run("go")

    assert ran == ["x"]
    assert "Rejected" in observed(helper)[0]


def test_a_guarded_tool_gives_the_agent_what_it_returned() -> None:
    class Draw(Tool):
        name, description, output_type = "draw", "Draws.", "image"
        inputs: dict[str, Any] = {}  # noqa: RUF012 -- as theirs

        def forward(self) -> Image.Image:
            return Image.new("RGB", (2, 2), "red")

    agent = guard(ToolCallingAgent([Draw()], Script([("draw", {})]), **QUIET), GuardPolicy())

    agent.run("go")

    assert "Stored 'image.png'" in observed(agent)[0]
    assert agent.state["image.png"].to_raw().size == (2, 2)


def test_what_cannot_be_guarded_is_refused_and_nothing_is_changed() -> None:
    class Elsewhere(PythonExecutor):
        def send_tools(self, tools: Any) -> None: ...
        def send_variables(self, variables: Any) -> None: ...
        def __call__(self, code_action: str) -> Any: ...

    theirs = deleting([])
    remote = CodeAgent([theirs], Script(), executor=Elsewhere(), **QUIET)
    mixed = as_tools([weather], ToolCallingAgent([theirs], Script(), **QUIET))

    with pytest.raises(ValueError, match="Elsewhere"):
        guard(remote, GuardPolicy())
    with pytest.raises(ValueError, match=r"leave=\['weather'\]"):
        guard(mixed, GuardPolicy())

    assert (remote.tools["delete"], mixed.tools["delete"]) == (theirs, theirs)
    assert guard(mixed, GuardPolicy(leave=["weather"])).tools["delete"] is not theirs


def test_the_end_of_a_run_in_our_sandbox_is_no_failure_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with CodeAgent([], Script(), executor=SandboxExecutor(), **QUIET) as agent:
        answer = agent.run("go")

    assert (answer, caplog.records) == ("done", [])


def test_the_memory_of_programs_that_failed_is_kept_by_pickle() -> None:
    ran: list[str] = []
    agent = as_tools([booking(ran, requires_approval=True)], CodeAgent([], Script("1 / 0", "book('Oslo')"), **QUIET))
    with pytest.raises(AgentError):
        agent.run("go")

    kept = pickle.loads(pickle.dumps(agent.memory.steps))

    errors = [step.error.dict() for step in agent.memory.steps if isinstance(step, ActionStep) and step.error]
    assert [step.error.dict() for step in kept if isinstance(step, ActionStep) and step.error] == errors
    assert len(errors) == 2
    agent.memory.steps = kept
    assert agent.run(answers(agent), reset=False) == "done"
