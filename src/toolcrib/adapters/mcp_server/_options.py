"""Options of an MCP server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from toolcrib._numbers import require_number, require_numbers
from toolcrib.approvals import ApprovalStore, SuspendedCallStore
from toolcrib.errors import explain_options
from toolcrib.pipeline import CallLimits, ErrorPolicy, Executor, Run
from toolcrib.record import Sink
from toolcrib.sandbox import Sandbox, SandboxName
from toolcrib.serving import require_plain_function


@explain_options()
@dataclass(frozen=True, slots=True)
class TaskOptions:
    """The options of tasks: calls that go on after their request was answered.

    A client of the revision 2025-11-25 asks for a task with its call. For one of the newer generation, which declares
    the extension for tasks, a call becomes one when it takes long or waits for a person. A tool's tags say otherwise:
    `task` has its calls be tasks at once where the client can have them, `task_required` refuses clients that cannot,
    and `task_forbidden` makes none of them a task.

    Attributes:
        after: Seconds after which a call of a newer client becomes a task.
        ttl: For how long a task is kept, from its beginning; one that waits for a person at least as long as its
            suspended call. A client may ask for another time.
        longest_ttl: The longest time that a client may ask for.
        most: Tasks of one principal that are kept at a time; calls beyond it fail, or are answered when they end.
        poll: Milliseconds after which a client should ask again.
    """

    after: float = 2.0
    ttl: timedelta = timedelta(days=1)
    longest_ttl: timedelta = timedelta(days=7)
    most: int = 1_000
    poll: int = 1_000

    def __post_init__(self) -> None:
        sizes = {"most": 1, "poll": 1}
        require_numbers("TaskOptions", self, sizes, seconds_from_zero=("after",), spans=("ttl", "longest_ttl"))
        if self.ttl > self.longest_ttl:
            raise ValueError(f"TaskOptions: ttl must be at most longest_ttl, {self.longest_ttl}, and is {self.ttl}")


ApproveBy: TypeAlias = Literal["store", "elicit"]
AskClient: TypeAlias = Literal["elicit", "sample", "roots", "log"]

OpenRun: TypeAlias = Callable[[str], Run]
"""Opens the run that all the calls of one principal belong to, given its name."""


@explain_options(
    {
        "approval": "Toolset(...).with_approval(...)",
        "approver": "approve_by",
        "budgets": "Toolset(...).with_gates(Budgets([...]))",
        "gates": "Toolset(...).with_gates(...)",
        "host": "HttpOptions(host=...)",
        "port": "HttpOptions(port=...)",
        "timeout": "Toolset(...).with_timeout(...)",
        "tokens": "HttpOptions(tokens=...)",
    }
)
@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a toolset that is served over MCP.

    Attributes:
        name: The server's name.
        title: The same for people.
        version: Of what is served; this package's when None.
        instructions: The instructions that clients get, before those of the tools.
        approve_by: The approver of a call that needs approval: `store` keeps the request in `approvals` until it is
            answered there; `elicit` asks the client, whose answer is not verified, and falls back to the store where
            the client cannot be asked.
        elicit_always: The longest time for which a client that is asked may let further calls run, within bounds that
            its form has and that are shown to it again word for word. None where it may answer for its call alone: a
            model may drive a client, and fill in its forms.
        approvals: The store of approval requests and answers; in memory when None.
        suspended_calls: The store of the calls that wait for an answer; when None, in the database of `approvals` if it
            has one, else in memory.
        answered_in: The place where a person answers, as clients are shown it: the console's address, say. Never a
            command that approves: a model that can run commands would approve its own calls.
        wait: Seconds that a call waits for its answer in the store before the client has to call again.
        kept_for: How long a suspended call can be continued; after that the same call asks anew.
        max_pending: Requests of one principal that may be pending at a time, those that the client shows as a form
            among them; None for any number. Each counts for as long as its call is kept. Calls beyond it fail.
        keys: Secrets of at least 32 bytes that seal the state which clients hand back, the first one for new states;
            servers behind one address share them. A key of this process alone when empty.
        state_seconds: How long such a state is valid.
        principal: The principal of requests without a token, as over stdio; the user's name when None.
        run: Opens the run of a principal, once; its calls, retries and found tools are counted there.
        limits: The budget of each principal, where `run` is None.
        deps: The object that the tools get as `ctx.deps`, where `run` is None.
        sinks: The sinks for the events of calls.
        executor: Wraps each execution.
        code_mode: Serve one tool that runs programs with the tools as functions, and one that finds them.
        sandbox: Where these programs run; the toolkit's own choice when None.
        errors: The text for clients of an exception that was not made for a model: its `message`, or a reference
            (`masked`), under which the operator finds it in the log and the record. When None, `masked` over HTTP, and
            as the run says over stdio.
        tasks: How calls become tasks, which go on after their request was answered; None for no tasks.
        ask_client: The ways in which tools may use the client that called them: `elicit` its user, `sample` its model,
            its `roots`, and have it `log`; an empty tuple for nothing.
        max_asking: Calls of one principal that may wait for such an answer of a client of the stateless generation,
            which fetches it between two requests; each for `state_seconds` at most, then it is stopped.
        page: The most that a page of a list has: tools, resources, prompts.
        search: List a few tools (a number gives how many, True means five), and a tool that finds the others.
    """

    name: str = "toolcrib"
    title: str | None = None
    version: str | None = None
    instructions: str = ""
    approve_by: ApproveBy = "store"
    elicit_always: timedelta | None = None
    approvals: ApprovalStore | None = None
    suspended_calls: SuspendedCallStore | None = None
    answered_in: str = "the approvals of this server"
    wait: float = 0.0
    kept_for: timedelta = timedelta(days=7)
    max_pending: int | None = 100
    keys: Sequence[bytes | str] = ()
    state_seconds: float = 600.0
    principal: str | None = None
    run: OpenRun | None = None
    limits: CallLimits | None = None
    deps: Any = None
    sinks: tuple[Sink, ...] = ()
    executor: Executor | None = None
    code_mode: bool = False
    sandbox: Sandbox | SandboxName | None = None
    search: bool | int = False
    tasks: TaskOptions | None = field(default_factory=TaskOptions)
    errors: ErrorPolicy | None = None
    ask_client: Collection[AskClient] = ("elicit", "sample", "roots", "log")
    max_asking: int = 20
    page: int = 1_000

    def __post_init__(self) -> None:
        if self.approve_by not in ("store", "elicit"):
            raise ValueError(f"approve_by must be 'store' or 'elicit', not {self.approve_by!r}")
        unknown = set(self.ask_client) - set(get_args(AskClient))
        if isinstance(self.ask_client, str) or unknown:
            raise ValueError(
                f"ask_client must have some of {', '.join(get_args(AskClient))}, and is {self.ask_client!r}"
            )
        require_plain_function("ServerOptions", self.run)
        if self.run is not None and not callable(self.run):
            raise TypeError(
                "ServerOptions: run must be a function of the principal's name: run=lambda principal: Run(...)"
            )
        sizes = {"max_asking": 1, "page": 1, "max_pending": 1}
        spans = ("kept_for",) if self.elicit_always is None else ("kept_for", "elicit_always")
        require_numbers("ServerOptions", self, sizes, ("state_seconds",), ("wait",), spans)
        if not isinstance(self.search, bool):
            require_number("ServerOptions", "search", self.search, least=0)
        if self.code_mode and self.search:
            raise ValueError("code_mode has a search of its own: give one of code_mode and search")
