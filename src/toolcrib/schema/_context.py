"""RunContext: the run as a tool sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar

from toolcrib import schema
from toolcrib._cut import cut_shapes
from toolcrib.errors import ClientUnavailable

if TYPE_CHECKING:
    from toolcrib.schema import CallClient, ClientRoot, Elicited, LogLevel, Sampled

D = TypeVar("D", default=Any)
T = TypeVar("T")


@dataclass(slots=True)  # not frozen: one is made for each call that wants it, and freezing doubles what that costs
class RunContext(Generic[D]):
    """The run as its tools see it; a parameter annotated with it is filled by the pipeline and hidden from the model.

    Attributes:
        deps: The object that the host gave the run for its tools, typed by the parameter: `ctx: RunContext[Database]`.
        metadata: One dict for this call, shared by its hooks and the tool.
        user_input: The text that a person typed when they approved the call, after `process_user_input`.
        approved: Whether this call was approved; `approved_by` says by whom.
        idempotency_key: Stays the same when the call is executed again; the call's id unless the adapter knows better.
        provided: The values that the run supplies for `Injectable` and `Injected` parameters, by type or name.
        revealed: The tools that were found in this run, in the order they were; a name put in may be called from then
            on, although it is not offered by default.
        report: Says to sinks how far the call has come, with any value; None where there are no sinks.
        ask: Has a person answer something else than the call itself, as the run's approver does; None without one.
        run: The `Run` itself, or None.
        trace: Takes what the tool asks and logs, for sinks, or None.
        hide: Hides the secrets of the call in a text, which it cuts to a number of characters, or in JSON shapes.
        supplied: The values that the tool's function was given besides the call's arguments, each with the tool's spec.
    """

    deps: D
    call_id: str
    tool_name: str
    run_id: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    user_input: Any = field(default=None, repr=False)
    approved: bool = False
    approved_by: str | None = None
    idempotency_key: str = ""
    provided: Mapping[type | str, Any] = field(default_factory=dict[type | str, Any])
    revealed: dict[str, None] = field(default_factory=dict[str, None])
    report: Callable[[Any], None] | None = None
    ask: Callable[[Any], Awaitable[Any]] | None = None
    run: Any = field(default=None, repr=False, compare=False)
    trace: Any = field(default=None, repr=False, compare=False)
    hide: Callable[..., Any] = field(default=cut_shapes, repr=False, compare=False)
    supplied: list[tuple[Any, Mapping[str, Any]]] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.idempotency_key:
            self.idempotency_key = self.call_id

    def context(self) -> RunContext[D]:
        """Return this context: what `ambient` holds is a context, or a run that makes one."""
        return self

    # --- the client that made the call

    @overload
    async def elicit(self, message: str, form: type[T], *, id: str = "") -> Elicited[T]: ...

    @overload
    async def elicit(
        self, message: str, form: Mapping[str, Any] | None = None, *, url: str | None = None, id: str = ""
    ) -> Elicited[Any]: ...

    async def elicit(self, message: str, form: Any = None, *, url: str | None = None, id: str = "") -> Elicited[Any]:
        """Ask the person at the client, while the call goes on. The answer approves nothing.

        Where the client cannot ask, the approver of the run does; without one the question waits in the run's approval
        store, for `Run.question_wait` seconds. A wrong answer is asked for once more. No deadline counts the time.

        Args:
            message: The question.
            form: The form: a model, a dataclass or a TypedDict whose fields are plain, a plain type such as
                `int` or `Literal["a", "b"]`, or a JSON schema; None for a bare yes or no.
            url: A page to visit in the place of a form, for what the client must not see.
            id: Names the question among those of the call, for clients that show it; made up when empty.

        Raises:
            ClientUnavailable: No person can be asked.
            ClientAnswerError: The answer does not fit the form, also the second time.
            TypeError: The form has a field that is not plain, or both a form and a URL are given.
        """
        return await self._client("a person").elicit(message, form, url, id)

    async def sample(self, messages: Any, tools: Any = (), **options: Any) -> Sampled:
        """Ask the client's model, while the call goes on; where the client has none, what the host gave the run.

        Args:
            messages: A text, or messages as the protocol has them: `{"role": "user", "content": ...}`, whose content is
                a text, media, blocks, or several of them; or a `SampleRequest`, which goes as it is.
            tools: The tools that the model may want to use, or their definitions; you run them: see `Sampled`.
            options: Other parameters of `sampling/createMessage`, as `max_tokens=500` or `system_prompt="..."`.

        Raises:
            ClientUnavailable: The client has no model for it, nor has the host.
            TypeError: There is no such option.
        """
        return await self._client("a model").sample(messages, tools, options)

    async def roots(self) -> tuple[ClientRoot, ...]:
        """Return the folders that the client lets its servers work in; none where it names none."""
        return () if self.run is None else await self._client("folders").roots()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the call has come, to sinks, to a live view, and to an MCP client that asks for it.

        It is for the code of a tool in a thread, too. Of many reports in a row, sinks receive some ten in a second, and
        the one with `done == total`.

        Args:
            done: The part that is done; it grows with each report.
            total: The number that it grows to, if that is known.
            message: The step that is done now.
        """
        if self.report is not None:
            self.report(schema.Progress(done, total, self.hide(message)))

    async def log(self, level: LogLevel, data: Any, *, logger: str | None = None) -> None:
        """Send the client a line for its log; it goes to the log of this process and to the record as well.

        Args:
            level: How bad it is; the client says from which level on it wants lines.
            data: A text, or any value that JSON can carry.
            logger: Names the part that it comes from; the tool's name when None.
        """
        await self._client("a log").log(schema.LogLine(level, data, logger))

    def _client(self, wanted: str) -> CallClient:
        if self.run is None:
            raise ClientUnavailable(self.tool_name, wanted, "the call belongs to no run")
        return self.run.client_of(self)
