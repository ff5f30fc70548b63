"""Calls of an agent of smolagents: their run, the requests that wait, and what its model is shown of a result."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Generator, Iterator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeVar, cast
from weakref import finalize

from PIL import Image, UnidentifiedImageError
from smolagents import CodeAgent, MultiStepAgent
from smolagents.memory import ActionStep, PlanningStep, TaskStep

from toolcrib.calls import (
    ApprovalRequest,
    Completed,
    Media,
    Outcome,
    Rendered,
    ResultReader,
    Suspended,
    ToolCall,
    new_call_id,
    render,
)
from toolcrib.errors import ToolcribError
from toolcrib.pipeline import Run
from toolcrib.record import wants_activities
from toolcrib.rounds import recall_transcript
from toolcrib.serving import OriginalResults
from toolcrib.serving.frameworks import FrameworkRuns, FrameworkTools, UsageNames

_log = logging.getLogger("toolcrib.tools")

ENTRY = "smolagents"

ANSWERED = "A person has decided on the calls that waited:"
"""The first words of a task with the outcomes of answered calls; its text is not the user's."""

FINAL_ANSWER = "final_answer"
"""The tool by which an agent of smolagents ends its run."""

_USAGE = UsageNames("input_tokens", "output_tokens")

_PROGRAM = ResultReader(value_chars=10_000_000)
"""A program of a CodeAgent, which is given values."""

_ATTACHED = "\nYou have been provided with these additional arguments"
T = TypeVar("T")

_END_SECONDS = 5.0  # for a call to end that is broken off by Ctrl-C


class CallNotMade(ToolcribError):
    """A call in a program that has no result; the text says why."""

    def __init__(self, tool: str, text: str) -> None:
        super().__init__(tool, text)
        self.tool, self.text = tool, text

    def __str__(self) -> str:
        return self.text


class AgentCalls:
    """The calls of one agent.

    Attributes:
        above: The calls of the agent that manages it, where they belong to one run.
        tools: The tools of the agent whose calls these are, by name.
        waiting: The requests of suspended calls, by id.
    """

    def __init__(self, agent: MultiStepAgent, runs: FrameworkRuns, above: AgentCalls | None = None) -> None:
        self.agent, self.runs, self.above = agent, runs, above
        self.loop: CallLoop = CallLoop() if above is None else above.loop
        self.tools: dict[str, Any] = {}
        self.waiting: dict[str, ApprovalRequest] = {}
        self._images: list[Image.Image] = []
        self._task: object = None
        self._tasks = 0
        self._cancelled: object = None
        self._is_told_of_steps = False
        self._counts_steps = False

    async def make(self, tools: FrameworkTools, name: str, arguments: Mapping[str, Any]) -> Any:
        """Make a call, and return what the agent is given; a run in which one is suspended ends after the step.

        Raises:
            CallNotMade: The call of a program has no result.
        """
        top = self.top
        if top._cancelled is not None and top._cancelled is top._last_task():
            raise CallNotMade(name, "the run of the agent was cancelled")
        originals = OriginalResults()
        try:
            run = self.run_of(tools)
        except Exception as error:  # of the host's function, or of a name in its gates
            _log.error("the run of the agent ends before its call of `%s`: %s", name, error)
            self.interrupt()
            raise
        if self.count_steps(tools, run):
            for step in reversed(self.agent.memory.steps):
                if isinstance(step, TaskStep):
                    break
                self._record(step)
        options = {"reader": _PROGRAM} if isinstance(self.agent, CodeAgent) else {}
        run = run.view(provide={**run.provide, OriginalResults: originals, MultiStepAgent: self.agent}, **options)
        call = ToolCall(name, dict(arguments), new_call_id())
        outcome = await tools.call(call, run)
        if isinstance(outcome, Suspended):
            self.waiting[outcome.request.id] = outcome.request
            self.interrupt()
        elif isinstance(outcome, Completed):
            original = originals.of(call.id, outcome.value)
            if original is not None and not tools.pipeline.has_deliveries(name, run):
                return original
        return self.agent_result(outcome)

    def agent_result(self, outcome: Outcome) -> Any:
        """Return the result for an agent: text, or in a program the value."""
        if not isinstance(self.agent, CodeAgent):
            return self.result_text(outcome)
        shown = render(outcome, structured=True)
        if shown.is_error:
            raise CallNotMade(outcome.tool, shown.text)
        images = self._shown_later(shown)
        alone = isinstance(outcome, Completed) and isinstance(outcome.value, Media) and images
        return images[0] if alone else shown.text if shown.parts else shown.value

    def result_text(self, outcome: Outcome) -> str:
        """Return an outcome as text; its images are shown after the next step."""
        shown = render(outcome)
        self._shown_later(shown)
        return shown.text

    def settle(self, request: ApprovalRequest, outcome: Outcome) -> None:
        """Record the outcome of a call that was suspended."""
        self.waiting.pop(request.id, None)
        if isinstance(outcome, Suspended):
            self.waiting[outcome.request.id] = outcome.request

    @property
    def top(self) -> AgentCalls:
        """The calls of the agent that manages all others."""
        return self if self.above is None else self.above.top

    def run_of(self, tools: FrameworkTools) -> Run:
        """Return the run of the calls for one task of the agent, or of the one that manages it."""
        return self.top._own_run(tools)

    def interrupt(self) -> None:
        """End the run of the agent after this step, and those of the agents that manage it."""
        self.agent.interrupt()
        if self.above is not None:
            self.above.interrupt()

    async def cancel(self) -> None:
        """Stop the calls that run, and make no more of them for this task."""
        self._cancelled = self._last_task()
        self.interrupt()
        await self.loop.cancel()

    def count_steps(self, tools: FrameworkTools, run: Run) -> bool:
        """Record the usage of each step from now on, where a sink wants it; return whether that begins here."""
        if self._counts_steps or not wants_activities(tools.pipeline.sinks, run.sinks):
            return False
        self._counts_steps = True
        for kind in (ActionStep, PlanningStep):
            cast("Any", self.agent.step_callbacks).register(kind, self._record)
        return True

    # --- inside

    def _last_task(self) -> TaskStep | None:
        return next((step for step in reversed(self.agent.memory.steps) if isinstance(step, TaskStep)), None)

    def _own_run(self, tools: FrameworkTools) -> Run:
        agent = self.agent
        task = self._last_task()
        if task is not self._task:
            self._task, self._tasks = task, self._tasks + 1
        run = self.runs.find((id(self), self._tasks), agent, deps=agent.state or None, conversation=id(self))
        if run.features:
            recall_transcript(run, tools.pipeline.toolset, [*self._messages()])
        return run

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Yield the agent's memory as messages; a step is left out when the run itself knows its results."""
        managed = hasattr(self.agent, "inputs")  # its tasks are written by another agent's model
        now = False
        for step in self.agent.memory.steps:
            now = now or step is self._task
            if isinstance(step, TaskStep):
                text, _, attached = step.task.partition(_ATTACHED)
                if managed or text.startswith(ANSWERED):
                    text, attached = "", step.task
                if text:
                    yield {"role": "user", "content": text}
                if attached:
                    yield from _result("task", f"task {len(attached)}", attached)
            elif isinstance(step, ActionStep) and step.observations and not (now and self._knows(step)):
                for call in step.tool_calls or ():
                    yield from _result(call.name, call.id, step.observations)

    def _knows(self, step: ActionStep) -> bool:
        """Return whether all results that a step may show are those of calls of ours."""
        have = tools_of(self.agent)
        called = have if step.code_action is not None else [call.name for call in step.tool_calls or ()]
        return all(self.tools.get(name) is have.get(name) for name in called if name != FINAL_ANSWER)

    def _shown_later(self, shown: Rendered) -> list[Image.Image]:
        """Return the images of a result, and have the model be shown them after the step."""
        images = [image for part in shown.parts for image in _image_in(part)]
        self._images += images
        if images and not self._is_told_of_steps:  # smolagents reads the signature of a callback at every step
            self._is_told_of_steps = True
            cast("Any", self.agent.step_callbacks).register(ActionStep, self._show)
        return images

    def _show(self, step: ActionStep, agent: object = None) -> None:
        if self._images:
            step.observations_images = [*(step.observations_images or ()), *self._images]
            self._images = []

    def _record(self, step: ActionStep | PlanningStep, agent: object = None) -> None:
        """Record the usage of a step's request."""
        used, model = step.token_usage, getattr(self.agent.model, "model_id", None)
        ours = next((tool.tools for tool in self.tools.values()), None)
        if used is not None and ours is not None:
            of_step = f"{id(step)} {step.timing.start_time}"
            ours.record_usage(self.run_of(ours), [_USAGE.request(of_step, used, model)])


def tools_of(agent: MultiStepAgent) -> dict[str, Any]:
    """Return the tools of an agent, by name: the dict itself."""
    return cast("Any", agent).tools


def managed_by(agent: MultiStepAgent) -> list[MultiStepAgent]:
    """Return the agents that an agent manages."""
    return [*cast("Any", agent).managed_agents.values()]


def _result(name: str, id: str, text: str) -> Iterator[dict[str, Any]]:
    function = {"name": name, "arguments": "{}"}
    yield {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}
    yield {"role": "tool", "tool_call_id": id, "content": text}


def _image_in(part: str | Media) -> Iterator[Image.Image]:
    if isinstance(part, Media) and part.data is not None and part.mime_type.startswith("image/"):
        try:
            yield Image.open(BytesIO(part.data))
        except UnidentifiedImageError:  # the model is shown its name
            return


class CallLoop:
    """One event loop for all calls of an agent, so that locks and limits hold between the threads that they come from.

    It is the host's own while that waits for the agent, or else one that runs in a thread of its own.
    """

    def __init__(self) -> None:
        self._host: asyncio.AbstractEventLoop | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._opening = threading.Lock()
        self._running: dict[object, asyncio.Task[Any]] = {}  # by what is made for each call

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` from plain code, and return what it returns."""
        loop, call = self._host or self._opened(), object()
        future = None
        try:
            future = asyncio.run_coroutine_threadsafe(self._run(work, call), loop)
            return future.result()
        finally:
            if future is None or not future.done():  # at Ctrl-C, which may come before there is a future
                wait([asyncio.run_coroutine_threadsafe(self._break_off(call), loop)], _END_SECONDS)

    async def cancel(self) -> None:
        """Cancel what runs in the host's event loop, and wait until it has ended."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @contextmanager
    def hosted(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        """Run the calls in this loop while the body runs."""
        before, self._host = self._host, loop
        try:
            yield
        finally:
            self._host = before

    # --- inside

    async def _run(self, work: Coroutine[Any, Any, T], call: object) -> T:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("there is no task here")
        self._running[call] = task
        try:
            return await work
        finally:
            del self._running[call]

    async def _break_off(self, call: object) -> None:
        """Cancel a call, and wait until it has ended; one that was given to the loop before has begun."""
        if (task := self._running.get(call)) is not None:
            task.cancel()
            await asyncio.wait([task])

    def _opened(self) -> asyncio.AbstractEventLoop:
        with self._opening:
            if self._own is None:
                loop = self._own = asyncio.new_event_loop()
                threading.Thread(target=_turn, args=(loop,), name="smolagents: calls", daemon=True).start()
                finalize(self, loop.call_soon_threadsafe, loop.stop)
            return self._own


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
