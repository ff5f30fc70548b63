"""Features: parts of a run that bring their own gates, deliveries and state, such as a policy of provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.calls import ToolCall
from toolcrib.hooks._delivery import DeliveryStep
from toolcrib.hooks._gate import GateStep
from toolcrib.hooks._parameters import require_list

InputOrigin: TypeAlias = Literal[
    "result",
    "error",
    "value",
    "hook",
    "refusal",
    "restored",
    "client",
    "user",
    "description",
    "program",
    "artifacts",
    "tools",
    "transcript",
    "model",
    "call",
    "warning",
]
"""The kinds of source of a value that a model or a program reads.

A `result` is what a tool returned, an `error` what it raised, a `value` one of a stream or of `ctx.report`, before the
result. A `hook` gave a result in the tool's place, and a `refusal` is why a call did not run. What is `restored` is the
result of an earlier call, of a transcript or a journal. The `client` answered a question of a tool, the `user` said it,
a `description` is that of a tool, a `program` is the text of one that is about to run, and `artifacts` are the files
that one left.

Further kinds: `tools` are those that a model knows: the value is the toolset (`Toolset`). A `transcript` is about
to be read. In a transcript, the `model` said something before words of the user. The result of a `call` is read where
the call runs, and is not `restored` when a transcript has it. A `warning` says, in a set, that the result of a call is
`untrusted` or `private`, also where its tool declares another source.
"""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A value that a model or a program is about to read.

    Attributes:
        origin: The kind of its source.
        value: The value, after the deliveries of the call.
        call: The call of this run that it belongs to (`Call`); None where it belongs to none.
        request: The call as it was made; None where it belongs to none.
        entry: The tool in its toolset (`ToolEntry`); None for a tool that is not known.
        key: The name of the value: of values with the same key one is read. Empty for a value that is read each time.
        is_error: Whether it is the text of an error.
        is_text: Whether it is the text that a model was shown of a result, in a transcript.
        is_lost: Whether the value is not here: it was read in another process.
    """

    origin: InputOrigin
    value: Any = None
    call: Any = None
    request: ToolCall | None = None
    entry: Any = None
    key: str = ""
    is_error: bool = False
    is_text: bool = False
    is_lost: bool = False


class FeatureState:
    """The state of a feature in one run. The class of a feature overrides the methods that it needs."""

    def read_input(self, given: ModelInput, run: Any) -> None:
        """Read a value before a model or a program has it. An exception here is raised in the call.

        Args:
            given: The value.
            run: The run, or the view of it for the call (`Run`).
        """

    async def asks_about_program(self, code: str) -> bool:
        """Return whether the feature's gate has to check a program, as a call of its own, before it begins."""
        return False

    def approve(self, call: Any, origins: Sequence[Mapping[str, str]]) -> None:
        """Record that a person approved the question of the feature's gate.

        Args:
            call: The call (`Call`), with the arguments that were approved.
            origins: The `origins` of the gate's `Ask`.
        """

    def describe(self, call: Any) -> Mapping[str, Any]:
        """Return the record's data about a call (`Call`) that arrives, as JSON shapes."""
        return {}

    def to_dict(self) -> Mapping[str, Any]:
        """Return the state for another process, as JSON shapes; empty for nothing."""
        return {}

    def restore(self, data: Mapping[str, Any], *, is_same_run: bool) -> None:
        """Restore the state that `to_dict` returned in another process.

        Args:
            data: The JSON shapes.
            is_same_run: Whether they are of a run with the id of this one.
        """


@dataclass(frozen=True, slots=True)
class FeatureParts:
    """The parts that a feature registers with a run.

    Attributes:
        name: The key of all that the feature keeps for a run or a call, also in their JSON.
        open: Makes the feature's state of a run (`Run`), when it is first needed.
        gates: Its gates, the same objects for all runs.
        deliveries: Its delivery steps, after those of the run.
    """

    name: str
    open: Callable[[Any], FeatureState]
    gates: tuple[GateStep, ...] = ()
    deliveries: tuple[DeliveryStep, ...] = ()


@runtime_checkable
class Feature(Protocol):
    """An option of a run that brings its own gates, deliveries and state: `Run(features=[Provenance()])`."""

    def register(self) -> FeatureParts:
        """Return the parts that it registers with a run."""
        ...


def feature_parts(who: str, features: Iterable[Feature]) -> tuple[FeatureParts, ...]:
    """Return the parts of features, of each in order.

    Args:
        who: The object that they are given to, for errors.
        features: The features.

    Raises:
        TypeError: One is not a feature.
        ValueError: Two have one name.
    """
    if isinstance(features, Feature | type):
        raise TypeError(f"{who}: features must be a list of them, as in features=[{type(features).__name__}()]")
    require_list(who, "features", features, "Provenance()")
    parts: dict[str, FeatureParts] = {}
    for feature in features:
        if isinstance(feature, type) or not isinstance(feature, Feature):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            mend = "give features, as in features=[Provenance()]; gates, such as Budgets, are gates=[...]"
            raise TypeError(f"{who}: features has {feature!r:.80}; {mend}")
        found = feature.register()
        if found.name in parts:
            raise ValueError(f"{who}: features has {found.name} twice; give it once")
        parts[found.name] = found
    return tuple(parts.values())
