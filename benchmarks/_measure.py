"""What a measure is made of, and what comes out of one. Values only: running is `_rounds`, timing is `_timing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

Sample: TypeAlias = Callable[[], Mapping[str, float]]
"""Runs the timed work once and returns a value per metric, in the metric's unit."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One of those that are compared.

    Attributes:
        name: Its row in the table; names that begin with `toolcrib` are ours.
        setup: Called once in the contender's own process. It imports the library (inside the function, as only this
            process may pay for it), makes what is needed, checks one answer, and returns the sample.
    """

    name: str
    setup: Callable[[], Sample]


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of figures, less being better."""

    key: str
    title: str
    unit: str


@dataclass(frozen=True, slots=True)
class Target:
    """`contender` should need at most `at_most` times what `against` needs, in `metric`.

    Where `against` is empty, `at_most` is a figure in the metric's own unit.
    """

    metric: str
    contender: str
    against: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A question, those who answer it, and what we aim at.

    Attributes:
        name: For `--only`.
        baseline: The contender whose figures are 1.0 in the table.
        fresh: Whether each round needs a new process, because the work can be done only once in one.
        often: How many rounds are made of one that is asked for; quick work is taken often, as a busy machine asks.
        notes: What a reader has to know to read the figures rightly.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    contenders: tuple[Contender, ...]
    baseline: str
    targets: tuple[Target, ...] = ()
    fresh: bool = False
    often: int = 1
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Results:
    """What one measure came to.

    Attributes:
        samples: By contender, one mapping of metrics per round.
        missing: By contender, why it could not be measured.
    """

    measure: Measure
    samples: dict[str, list[Mapping[str, float]]] = field(default_factory=dict[str, list[Mapping[str, float]]])
    missing: dict[str, str] = field(default_factory=dict[str, str])

    def values(self, contender: str, metric: str) -> list[float]:
        """Return the contender's figures, one per round."""
        return [sample[metric] for sample in self.samples.get(contender, [])]

    def reached(self, target: Target) -> float | None:
        """Return what a target's contender came to: a ratio, or its median figure; None when it was not measured."""
        if target.against:
            return self.ratio(target.contender, target.against, target.metric)
        values = self.values(target.contender, target.metric)
        return median(values) if values else None

    def ratio(self, contender: str, against: str, metric: str) -> float | None:
        """Return the median over the rounds of one's figure by the other's, or None when one of them is missing.

        Both were measured within seconds in each round, so a machine that slows down for a while slows both.
        """
        pairs = list(zip(self.values(contender, metric), self.values(against, metric), strict=False))
        if not pairs or any(other <= 0 for _, other in pairs):
            return None
        return median(own / other for own, other in pairs)
