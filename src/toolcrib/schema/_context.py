"""RunContext: the run as a tool sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

__all__ = ["RunContext"]

D = TypeVar("D", default=Any)


@dataclass(slots=True)  # not frozen: one is made for each call that wants it, and freezing doubles what that costs
class RunContext(Generic[D]):
    """The run as its tools see it; a parameter annotated with it is filled by the pipeline and hidden from the model.

    Attributes:
        deps: What the host gave the run for its tools, typed by the parameter: `ctx: RunContext[Database]`.
        metadata: One dict for this call, shared by its hooks and the tool.
        user_input: What a person typed when they approved the call, after `process_user_input`.
        approved: Whether this call was approved; `approver` says by whom.
        idempotency_key: Stays the same when the call is executed again; the call's id unless the adapter knows better.
        provided: What the run supplies for `Injectable` and `Injected` parameters, by type or by parameter name.
        revealed: The tools that were found in this run, in the order they were; a name put in may be called from then
            on, although it is not offered by default.
        report: Says to sinks how far the call has come, with any value; None where there are no sinks.
        ask: Has a person answer something else than the call itself, as the run's approver does; None without one.
        run: The `Run` itself; None where there is none.
    """

    deps: D
    call_id: str
    tool_name: str
    run_id: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    user_input: Any = None
    approved: bool = False
    approver: str | None = None
    idempotency_key: str = ""
    provided: Mapping[type | str, Any] = field(default_factory=dict[type | str, Any])
    revealed: dict[str, None] = field(default_factory=dict[str, None])
    report: Callable[[Any], None] | None = None
    ask: Callable[[Any], Awaitable[Any]] | None = None
    run: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.idempotency_key:
            self.idempotency_key = self.call_id

    def context(self) -> RunContext[D]:
        """Return this context: what `ambient` holds is a context, or a run that makes one."""
        return self
