"""Gates: conditions between a call and its tool, as data that a pipeline asks in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from inspect import isfunction
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from toolcrib import calls
from toolcrib.errors import ToolcribError, explain_options, nearest, require_result
from toolcrib.hooks._parameters import name_of, require_list, require_parameters

Stage: TypeAlias = Literal["resolve", "validate", "decide", "edit", "authorize", "approve"]
"""Stages of a call, in order, at which gates are asked; the arguments are read after `validate`."""

Occasion: TypeAlias = Literal["new", "recovered", "edited", "overridden"]
"""Reasons for which a call passes its gates.

The call is `new`; it comes back from a store (`recovered`); the host edited its arguments after it was admitted
(`edited`), or an approver did (`overridden`).
"""

EVERY_OCCASION: Final[frozenset[Occasion]] = frozenset(get_args(Occasion))
"""The occasions of a gate that names none."""
ON_ARRIVAL: Final[frozenset[Occasion]] = frozenset({"new", "recovered"})
"""The occasions of a gate that looks at no arguments."""
WITH_ARGUMENTS: Final[frozenset[Occasion]] = frozenset({"new", "recovered", "edited"})
"""The occasions of a gate that asks a person: not about the arguments that an approver gave."""
_STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


@runtime_checkable
class Gate(Protocol):
    """A condition between a call and its tool. A class of your own with these two attributes is one.

    A gate may also have `name`, which the record and errors show (else its class's name), `occasions`, the reasons for
    which calls pass it (else all of them), and `begin(call)`, which is asked right before the tool's first line, once a
    call has passed every gate and has its approval: a gate that counts calls counts them there. `check_tools(tools,
    is_complete=...)` is asked where a toolset is given the gate, with the tools by name, and whether no more come
    later, and once more when these have come; it raises ValueError where the gate cannot hold for them. `tool_names`
    are the names of tools, or patterns such as `shop_*`, that the gate is about: where all tools are known, a name that
    none of them has is an error. `explain(name, tool)` returns in words what it holds for a tool, for
    `Pipeline.explain` and `toolcrib inspect`.

    Attributes:
        stage: The stage of a call at which it is asked. From `decide` on, `call.arguments` are read and validated.
    """

    @property
    def stage(self) -> Stage:
        """The stage of a call at which it is asked."""
        ...

    def check(self, call: Any) -> Any:
        """Check a call (`Call`); a plain method or an async one.

        Returns:
            None lets the call go on. `Reject(reason)` refuses it, `Ask(reason)` has a person approve it, and an outcome
            (`Completed`, `Rejected`, `Failed`) ends it. A gate that raises fails the call.
        """
        ...


GateLike: TypeAlias = Gate | Callable[[Any], Any]
"""A gate, or a function of the call, which is asked at the stage `authorize`."""


@explain_options()
@dataclass(frozen=True, slots=True)
class GateStep:
    """A gate in the form that a pipeline asks.

    Attributes:
        name: The name that the record and errors show.
        stage: The stage of a call at which it is asked.
        check: Checks a call, as `Gate.check`.
        occasions: The reasons for which calls pass it.
        kind: The noun for it in errors.
        reads_host_arguments: Whether it looks at the arguments of a host's own call, which are validated for it.
        resume: Checks a call again that waits by a request of the gate's own (`Call.suspend`), given the answer or None
            where it is not known; None for a gate that suspends no call.
        begin: Checks a call right before its tool begins, and answers as `check`; None for a gate that does not.
        check_tools: Checks the tools of a toolset that is given the gate; None for a gate that does not.
        explain: Says in words what it holds for a tool, given its name and the tool; None for a gate that does not.
        tool_names: The names and patterns of tools that the gate is about.
    """

    name: str
    stage: Stage
    check: Callable[[Any], Any]
    occasions: frozenset[Occasion] = EVERY_OCCASION
    kind: str = "gate"
    reads_host_arguments: bool = True
    resume: Callable[[Any, calls.Grant | calls.Denial | None], Awaitable[Any]] | None = None
    begin: Callable[[Any], Any] | None = None
    check_tools: Callable[..., None] | None = None
    tool_names: tuple[str, ...] = ()
    explain: Callable[[str, Any], str] | None = None

    def title(self, name: str, tool: Any) -> str:
        """Return the line that explains it for a tool."""
        kind = "" if self.kind == "gate" else f" ({self.kind})"
        detail = "" if self.explain is None else self.explain(name, tool)
        return f"{self.name}{kind}" + (f": {detail}" if detail else "")


_MENDS: Final = {
    "ApproverRule": "rules are those of one gate: ApproverRules([ApproverRule(...)], groups)",
    "CallLimits": "the limits of a run are an option of it: Run(limits=CallLimits(...))",
    "Limit": "limits are those of one gate: Budgets([Limit(...)])",
    "Provenance": "a policy of provenance is a feature: Run(features=[Provenance()])",
}
"""Remedies for objects that are mistaken for gates, by the names of their classes."""
_OPTIONAL: Final = ("begin", "occasions")
"""Attributes that a gate may have, and that nothing reads under a misspelt name."""


def stage_of(step: GateStep) -> int:
    """Return the number of a gate's stage, by which gates are sorted."""
    return _STAGES.index(step.stage)


def gate_steps(who: str, gates: Iterable[GateLike]) -> tuple[GateStep, ...]:
    """Return the steps of gates.

    Args:
        who: The object that they are given to, for errors.
        gates: Gates and functions.

    Raises:
        TypeError: One is neither a gate nor a function of the call.
        ValueError: A stage or an occasion does not exist.
    """
    if isinstance(gates, Gate) or callable(gates):
        raise TypeError(f"{who}: gates must be a list of them, as in gates=[{name_of(gates)}]")
    require_list(who, "gates", gates, "check")
    return tuple(_step_of(who, gate) for gate in gates)


def _step_of(who: str, gate: GateLike) -> GateStep:
    name = name_of(gate)
    if not isinstance(gate, Gate):
        if not callable(gate) or isinstance(gate, type):
            mend = _MENDS.get(
                type(gate).__name__, "give an object with `stage` and `check(call)`, or a function of the call"
            )
            raise TypeError(f"{who}: {gate!r:.80} is not a gate; {mend}")
        _require_gate(gate)
        check = gate if isfunction(gate) else gate.__call__  # the method of this object, and not of one that equals it
        return GateStep(name, "authorize", check)
    if isinstance(gate, type):
        raise TypeError(f"{who}: the gate {name} is a class; give an object of it, as in gates=[{name}()]")
    _require_gate(gate.check)
    for attribute in vars(type(gate)):
        if attribute not in _OPTIONAL and (near := nearest(attribute, _OPTIONAL, cutoff=0.85)):
            raise TypeError(f"{who}: the gate {name} has `{attribute}`, which nothing asks. Did you mean `{near[0]}`?")
    occasions = frozenset(cast("Iterable[Any]", getattr(gate, "occasions", EVERY_OCCASION)))
    for option, values, known in (("stage", {gate.stage}, _STAGES), ("occasion", occasions, get_args(Occasion))):
        if unknown := values.difference(known):
            raise ValueError(
                f"{who}: the gate {name} has the {option} {min(unknown)!r}; it is one of {', '.join(known)}"
            )
    begin: Callable[[Any], Any] | None = getattr(gate, "begin", None)
    if begin is not None:
        _require_gate(begin)
    tool_names: Any = getattr(gate, "tool_names", ())
    if isinstance(tool_names, str):
        raise TypeError(f"{who}: tool_names of the gate {name} is a list of names, as in [{tool_names!r}]")
    further: dict[str, Any] = {method: getattr(gate, method, None) for method in ("check_tools", "explain")}
    return GateStep(name, gate.stage, gate.check, occasions, begin=begin, tool_names=tuple(tool_names), **further)


def _require_gate(check: Callable[[Any], Any]) -> None:
    require_parameters("gate", check, "call")
    require_result("gate", check)


def refused_by(call: Any, error: ToolcribError) -> calls.Failed:
    """Return the outcome of a call (`Call`) that a gate does not let pass for this reason."""
    return calls.Failed(call.name, call.id, error.code, str(error), type(error).__name__, exception=error)
