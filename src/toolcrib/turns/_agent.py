"""Agent: a queue of turns, run in order or several at a time, with what it remembers between them."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Never, Protocol, Self

from toolcrib._numbers import count_text, require_number
from toolcrib.approvals import Approver, require_approver
from toolcrib.calls import ApprovalRequest, Identity, StoredFields, versioned
from toolcrib.errors import SafeExecutionError, UnknownTool, UnregisteredAgentError, explain_missing, explain_options
from toolcrib.hooks import AgentHook, HookMethod, HookType, Observed, Observers, TurnHook, tag_set
from toolcrib.pipeline import Pipeline, Run, run_for
from toolcrib.record import ActivityTrace, Sink, require_sinks, trace_activity
from toolcrib.registry import Registry
from toolcrib.schema import RunContext
from toolcrib.tools import Tool, ToolRegistry, require_arguments
from toolcrib.toolsets import ToolEntry, Toolset, ToolsetLike
from toolcrib.turns._agent_run import AgentRun, Results
from toolcrib.turns._binding import TurnBinding, fire_event, names_in
from toolcrib.turns._context import ContextPool, ContextQueue
from toolcrib.turns._locked import Locked, locked
from toolcrib.turns._queue import TurnQueue
from toolcrib.turns._turn import Turn


class TurnBackend(Protocol):
    """Takes what is put on an agent, and what the agent sends to others, and acts when it is paused or resumed."""

    async def add(self, turn: Turn[Any]) -> None:
        """Add a turn that was put on the agent."""
        ...

    async def send(self, agent_name: str, turn: Turn[Any]) -> None:
        """Put a turn on another agent."""
        ...

    async def stop(self) -> None:
        """Start no further turn."""
        ...

    async def go(self) -> None:
        """Start turns again."""
        ...


_OF_A_MODEL = re.compile(
    r"(anthropic|azure|bedrock|cohere|deepseek|gateway|gemini|google|groq|mistral|ollama|openai|openrouter|xai)[\w-]*:\S"
)
_MODEL = "`Session(model, system=..., tools=...)`, a conversation with a model; an Agent is a queue of turns"


@explain_missing(
    {
        **dict.fromkeys(("invoke", "ainvoke", "iter", "kickoff", "run_stream", "run_sync", "stream"), _MODEL),
        **dict.fromkeys(("__enter__", "__aenter__"), "`agent = Agent(...)`, which nothing has to close"),
        **dict.fromkeys(("add_tool", "tool", "tool_plain"), "`Agent(name, description, tools)`, of `@tool` functions"),
        **dict.fromkeys(("enqueue", "submit"), "`await agent.put(Turn(tool, kwargs=...))`"),
    }
)
@explain_options(
    {
        **dict.fromkeys(("instructions", "model", "output_type", "result_type", "system_prompt"), _MODEL),
        **dict.fromkeys(("deps", "deps_type"), "an option of a run: `Session(..., run=Run(deps=...))`"),
    },
    missing=f"Write Agent(name, description, tools); with the name of a model it is {_MODEL}",
)
class Agent(Observed):
    """A queue of turns, the tools they may use, and what they remember.

    A returned or yielded `Turn` joins the queue, a `ContextItem` goes to the context, and anything else to the
    caller of `run()`. Tools and hooks with a `ContextQueue` or `ContextPool` parameter are given this agent's.

    Args:
        name: The name that it is registered by.
        tools: A toolset, a toolset class, or a sequence of tools; a tool brings its subtools.
        context_pool: Items by id; an empty pool when None.
        context_queue: The latest items; an empty queue without a limit when None.
        tags: Words by which global hooks choose.
        approver: Is asked when a turn needs approval, while the turn's clock stands; without one the turn is suspended
            until `approve` or `deny`, and the agent goes on.
        sinks: Where the events of its runs, its turns and their calls go.
        register: Whether it is found by its name. An agent that nothing refers to any more gives its name back.

    Raises:
        DuplicateNameError: An agent of that name is registered. A ValueError.
    """

    before_turn = HookMethod(AgentHook.BEFORE_TURN)
    after_turn = HookMethod(AgentHook.AFTER_TURN)
    on_turn_value = HookMethod(AgentHook.ON_TURN_VALUE)
    before_put = HookMethod(AgentHook.BEFORE_PUT)
    after_put = HookMethod(AgentHook.AFTER_PUT)
    on_pause = HookMethod(AgentHook.ON_PAUSE)
    on_resume = HookMethod(AgentHook.ON_RESUME)
    before_run = HookMethod(TurnHook.BEFORE_RUN)
    after_run = HookMethod(TurnHook.AFTER_RUN)
    on_timeout = HookMethod(TurnHook.ON_TIMEOUT)
    on_error = HookMethod(TurnHook.ON_ERROR)
    on_complete = HookMethod(TurnHook.ON_COMPLETE)

    description: Locked[str] = locked("description", "What it is for.")
    context_pool: Locked[ContextPool] = locked("context_pool", "What it remembers by id.")
    context_queue: Locked[ContextQueue] = locked("context_queue", "What it remembers of late.")
    approver: Locked[Approver | None] = locked("approver", "The approver that is asked when a turn needs approval.")

    def __init__(
        self,
        name: str,
        description: str,
        tools: ToolsetLike,
        context_pool: ContextPool | None = None,
        context_queue: ContextQueue | None = None,
        tags: Iterable[str] | None = None,
        approver: Approver | None = None,
        *,
        sinks: Iterable[Sink] = (),
        register: bool = True,
    ) -> None:
        if not name.strip():
            raise ValueError(f"an agent: name is {name!r:.80}; give a text, by which it is found and recorded")
        if _OF_A_MODEL.match(name):
            raise ValueError(f"an agent: name is {name!r:.80}, which names a model. With a model it is {_MODEL}")
        require_approver(f"the agent `{name}`", approver)
        self._name, self._description, self._approver = name, description, approver
        self._pipeline = Pipeline(tools, sinks=require_sinks("Agent", sinks))
        self._run: ActivityTrace | None = None
        self._names = names_in(self._pipeline.toolset)
        self._context_pool = ContextPool() if context_pool is None else context_pool
        self._context_queue = ContextQueue() if context_queue is None else context_queue
        self._observers = Observers(tag_set(tags, f"the agent `{name}`"))
        self._queue = TurnQueue()
        self._backend: TurnBackend | None = None
        self._is_paused = self._is_running = False
        if register:
            AgentRegistry.register(name, self)

    # --- what it is

    @property
    def name(self) -> str:
        """The name that it is registered by."""
        return self._name

    @property
    def tags(self) -> frozenset[str]:
        """The words by which global hooks choose."""
        return self._observers.tags

    @property
    def toolset(self) -> Toolset:
        """The tools that its turns may use, with their gates."""
        return self._pipeline.toolset

    @property
    def tools(self) -> list[Tool[..., Any]]:
        """The tools that its turns may use."""
        return self.toolset.tools()

    @property
    def observers(self) -> Observers:
        """The table of its observers, those of its turns among them."""
        return self._observers

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """The sinks of the events of its calls and runs."""
        return self._pipeline.sinks

    @property
    def turns(self) -> list[Turn[Any]]:
        """The turns that wait to be run, in order."""
        return list(self._queue.waiting)

    @property
    def running_turns(self) -> list[Turn[Any]]:
        """The turns that run now."""
        return list(self._queue.running)

    @property
    def requests(self) -> list[ApprovalRequest]:
        """The requests that people have to answer before turns that wait for approval can go on."""
        return [outcome.request for _, outcome in self._queue.suspended.values()]

    @property
    def is_paused(self) -> bool:
        """True if the agent starts no turn until `resume`."""
        return self._is_paused

    @property
    def is_running(self) -> bool:
        """True if a caller iterates over `run()`."""
        return self._is_running

    def busy(self) -> str:
        """Return the activity that forbids changes, in words."""
        return "is running" if self._is_running else "is paused" if self._is_paused else ""

    # --- giving it work

    @explain_options(dict.fromkeys(("id", "turn_id", "work_id"), "`turn.id = str(uuid4())`, before it is put"))
    async def put(self, turn: Turn[Any]) -> None:
        """Enqueue a turn behind the others; it may be put at any time, also while the agent runs.

        Raises:
            TypeError: It is not a turn.
            UnknownTool: The turn's tool is not one of the agent's, or only another of its name is.
        """
        if not isinstance(turn, Turn):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may pass anything
            raise TypeError(f"put a Turn on `{self.name}`, as in Turn(my_tool, kwargs={{}}), and not {turn!r:.80}")
        if turn.tool not in self._names:
            self._names |= names_in(self.toolset)  # a source may have renewed its tools
            if turn.tool not in self._names:
                raise self._unknown(turn.tool)
        observed = bool(self._observers.table())
        if observed:
            await self._fire(AgentHook.BEFORE_PUT, turn)
        if self._backend is None:
            self._queue.add(turn)
        else:
            await self._backend.add(turn)
        if observed:
            await self._fire(AgentHook.AFTER_PUT, turn)

    async def send(self, agent_name: str, turn: Turn[Any]) -> None:
        """Put a turn on another agent; raises UnregisteredAgentError without one of that name."""
        if self._backend is None:
            await AgentRegistry.get(agent_name).put(turn)
        else:
            await self._backend.send(agent_name, turn)

    async def pause(self) -> None:
        """Start no further turn until `resume`; those that run go on to their end."""
        if not self._is_paused:
            self._is_paused = True
            if self._run is not None:
                self._run.changed(state="paused")
            if self._backend is not None:
                await self._backend.stop()
            await self._fire(AgentHook.ON_PAUSE)

    async def resume(self) -> None:
        """Start turns again."""
        if self._is_paused:
            self._is_paused = False
            if self._run is not None:
                self._run.changed(state="running")
            self._queue.wake()
            if self._backend is not None:
                await self._backend.go()
            await self._fire(AgentHook.ON_RESUME)

    def approve(self, request: ApprovalRequest | str, by: str | Identity = "host", **options: Any) -> None:
        """Approve a request, or the one with that id: its turn is the next to be run.

        Args:
            by: Who says yes, for the record.
            options: Other fields of the `Grant`, such as `override_args` or `user_input`.

        Raises:
            ApprovalError: No turn waits for it.
            InvalidArguments: The tool does not take the `override_args`; the turn waits on.
        """
        asked = self._queue.request(request)
        grant = asked.grant(by, **options)
        if grant.override_args is not None and asked.asked_by is None:
            require_arguments(self.toolset[asked.tool].tool, grant.override_args)
        self._queue.answer(asked, grant)

    def deny(
        self,
        request: ApprovalRequest | str,
        *unnamed: Never,
        by: str | Identity = "host",
        message: str = "",
        **unknown: Never,
    ) -> None:
        """Deny a request, or the one with that id: its turn ends as an ERROR, and its tool never runs.

        Raises:
            ApprovalError: No turn waits for it.
        """
        asked = self._queue.request(request)
        self._queue.answer(asked, asked.deny(*unnamed, by=by, message=message, **unknown))

    # --- running

    @explain_options(further=f"What it runs is put: `await agent.put(Turn(tool))`. With a text it is {_MODEL}")
    def run(self, *, wait: bool = False, max_concurrency: int = 1, run: Run | None = None) -> Results:
        """Run the turns, and yield `(turn, value)` as values come, until the queue is empty or a check says it is done.

        What a turn raises ends the run; the turns behind it stay in the queue, and so do those that it interrupts.
        Leaving early stops what runs. A turn that was refused gives no value, and the agent goes on.

        Args:
            wait: On an empty queue wait for further turns, until a completion check returns True.
            max_concurrency: The most turns that run at a time; with 1 they run strictly in order.
            run: The run to be part of, with its deps, limits, sinks and principal; a plain one when None.

        Raises:
            SafeExecutionError: The agent runs already, or something else runs its turns.
            CompletionCheckReturnError: A completion check returned something other than a bool.
            ToolConstraintError: A gate of the run, as its limits, is about a name that is nearly that of a tool.
        """
        if self._backend is not None:
            raise SafeExecutionError(f"{self!r} does not run its turns itself: {self._backend!r} does")
        require_number("Agent.run", "max_concurrency", max_concurrency, least=1)
        run = run_for(run, "agent")
        self._pipeline.check_run(run)
        agent_run = AgentRun(self, self._queue, run, wait=wait)
        return agent_run.in_order() if max_concurrency == 1 else agent_run.concurrently(max_concurrency)

    @contextmanager
    def occupied(self, run: Run) -> Generator[TurnBinding]:
        """Mark the agent as running for the body, which gets the binding that turns go through; for runs."""
        if self._is_running:
            raise SafeExecutionError(f"{self!r} is running already; one caller at a time takes its values")
        activity = trace_activity("agent", self._name, run.view(entry="agent"), self._pipeline.sinks, about=self._shown)
        self._is_running, self._run = True, activity
        try:
            yield self.binding(run if activity is None else run.view(parent_id=activity.id), self._pipeline)
        except BaseException as error:
            if activity is not None:
                activity.broken_off(error)
            raise
        finally:
            self._is_running, self._run = False, None
            if activity is not None:
                activity.closed("completed", suspended=list(self._queue.suspended))

    def binding(self, run: Run, pipeline: Pipeline, name: str = "agent") -> TurnBinding:
        """Return the binding that turns of a run go through to `pipeline`, whose tools are the agent's; for runs."""
        provided = {**run.provide, **self._provided()}
        approver = {} if run.approver is not None or self._approver is None else {"approver": self._approver}
        opened = run.view(provide=provided, entry=name, agent=self._name, **approver)
        ctx = RunContext[Any](run.deps, "", "", run.id, provided=provided)
        return TurnBinding(pipeline, opened, self._names, ctx=ctx, parent=self._observers)

    def with_backend(self, backend: TurnBackend) -> Self:
        """Return an agent with the same tools, hooks, tags, approver and sinks, whose turns `backend` runs.

        It has copies of the context, no turns yet, and is not registered. This agent stays what it is.
        """
        agent = copy(self)
        agent._backend, agent._queue, agent._run = backend, TurnQueue(), None
        agent._is_paused = agent._is_running = False
        agent._context_pool, agent._context_queue = self._context_pool.branch(), self._context_queue.branch()
        return agent

    def branch(self, name: str, description: str | None = None) -> Agent:
        """Return an agent of another name with the same tools, hooks and tags, and copies of context and waiting turns.

        From then on the two go their own ways. It is registered if this one is.
        """
        agent = type(self)(
            name,
            self._description if description is None else description,
            self.toolset,
            self._context_pool.branch(),
            self._context_queue.branch(),
            self.tags,
            self._approver,
            **_set_keywords(self._pipeline.sinks, AgentRegistry.holds(self._name, self)),
        )
        agent._observers.adopt(self._observers)
        agent._queue.waiting.extend(turn.copy() for turn in self._queue.waiting)
        return agent

    # --- writing it down

    def to_dict(self) -> dict[str, Any]:
        """Return the agent as JSON shapes, at any time: turns that are running come first in its queue.

        The real arguments are in it, so it is for safe keeping. Hooks, the approver and the gates of a toolset are left
        out.

        Raises:
            NotPortableError: A value does not go to JSON and back; it is named.
        """
        work, toolset = self._queue, self.toolset
        children = {child for tool in toolset.tools() for child in tool.subtools}
        data: dict[str, Any] = {
            "name": self._name,
            "description": self._description,
            "tool_names": [tool.__name__ for tool in toolset.tools() if tool not in children],
            "queue": [turn.to_dict() for turn in work.unfinished()],
            "tags": sorted(self.tags),
            "is_paused": self._is_paused,
            "suspended": [
                {"turn": turn.to_dict(), "outcome": outcome.to_dict()} for turn, outcome in work.suspended.values()
            ],
            "answers": {turn.id: answer.to_dict() for turn, answer in work.answers.items()},
            "context_queue": self._context_queue.to_dict(),
            "context_pool": self._context_pool.to_dict(),
            "guarded": any(_has_more_gates(entry) for entry in toolset),
        }
        return versioned("Agent", data)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        tools: ToolsetLike | None = None,
        approver: Approver | None = None,
        sinks: Iterable[Sink] = (),
        register: bool = True,
    ) -> Self:
        """Return the agent that `to_dict` described, registered in place of one of its name.

        Args:
            tools: Its toolset; without it the tools are looked up in the registry by name.
            approver: Is asked when a turn needs approval.
            sinks: Where the events of its runs go.
            register: Whether it is found by its name.

        Raises:
            UnregisteredToolError: A tool is not registered.
            ValueError: Its toolset had gates of its own, and `tools` is not given; or a field is missing.
        """
        data = StoredFields(cls, data)
        if tools is None and data.get("guarded"):
            raise ValueError(
                f"the agent `{data['name']}` had a toolset with hooks, approvals or other gates, which are not written "
                "down; give it again: Agent.from_dict(data, tools=...)"
            )
        toolset = Toolset.of([ToolRegistry.get(name) for name in data["tool_names"]] if tools is None else tools)
        if register and data["name"] in AgentRegistry:
            AgentRegistry.unregister(data["name"])
        pool, queue = data.get("context_pool"), data.get("context_queue")
        agent = cls(
            data["name"],
            data["description"],
            toolset,
            ContextPool.from_dict(pool) if pool else None,
            ContextQueue.from_dict(queue) if queue else None,
            data.get("tags"),
            approver,
            **_set_keywords(tuple(sinks), register),
        )
        agent._queue.restore(data, toolset.tools())
        agent._is_paused = data.get("is_paused", False)
        return agent

    # --- inside

    def _unknown(self, tool: Tool[..., Any]) -> UnknownTool:
        known = self.toolset.entries.get(tool.name)
        problem = "" if known is None else f"the agent has another tool of that name, {known.origin}, not {tool.origin}"
        return UnknownTool(tool.__name__, tuple(self.toolset.names()), problem)

    def _shown(self) -> dict[str, Any]:
        return {"description": self._description, "tools": self.toolset.names(), "turns": len(self._queue.waiting)}

    def _provided(self) -> dict[Any, Any]:
        queue, pool = self._context_queue, self._context_pool
        return {type(queue): queue, type(pool): pool, ContextQueue: queue, ContextPool: pool}

    async def _fire(self, event: HookType, *about: Any) -> None:
        table = self._observers.table()
        if table:
            ctx = RunContext[Any](None, "", "", self._name, provided=self._provided())
            await fire_event(table, event, self, *about, ctx=ctx)

    def __repr__(self) -> str:
        return f"<Agent {self._name} with {count_text(len(self._queue.waiting), 'turn')} waiting>"


def _set_keywords(sinks: tuple[Sink, ...], register: bool) -> dict[str, Any]:
    """Return the keywords that differ from their defaults: a subclass need not take those that it is not given."""
    keywords: dict[str, Any] = {"sinks": sinks} if sinks else {}
    return keywords if register else {**keywords, "register": False}


def _has_more_gates(entry: ToolEntry) -> bool:
    """Return whether a toolset adds to what the tool itself says."""
    alone = Toolset([entry.tool])
    return entry.name not in alone or alone[entry.name] != entry


AgentRegistry: Registry[Agent] = Registry(
    UnregisteredAgentError, weak=True, mend="Choose another name, let go of the first one, or pass register=False."
)
"""The registered agents, by name; an agent is in it for as long as it is used elsewhere."""


def require_agent(who: str, agent: object) -> None:
    """Raise TypeError for what is given in the place of an agent, such as tools or a session."""
    if not isinstance(agent, Agent):
        raise TypeError(
            f"{who} is made of an Agent, as in {who}(Agent('shop', 'Sells things.', tools)), and not of {agent!r:.80}; "
            "a session is kept in a store: Session(..., store='app.db', id='...')"
        )
