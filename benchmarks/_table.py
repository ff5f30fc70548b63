"""Prints results as plain text, the targets next to the figures."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks._measure import Metric, Results, Target


def lines(results: Results) -> Iterator[str]:
    """Yield the lines that show one measure."""
    measure = results.measure
    rounds = max(map(len, results.samples.values()), default=0)
    yield f"== {measure.name}: {measure.title} ({rounds} rounds)"
    for metric in measure.metrics:
        yield ""
        yield from _figures(results, metric)
        yield from (_verdict(results, target) for target in measure.targets if target.metric == metric.key)
    if results.missing:
        yield ""
        yield from (f"   not measured: {name} - {why}" for name, why in results.missing.items())
    yield from (f"   note: {note}" for note in measure.notes)
    yield ""


def _figures(results: Results, metric: Metric) -> Iterator[str]:
    measure = results.measure
    names = [c.name for c in measure.contenders if c.name in results.samples]
    width = max([len(name) for name in names] + [len(metric.title)])
    heads = (f"median {metric.unit}", "min", "max", f"x {measure.baseline}")
    sizes = (14, 10, 10, len(heads[3]) + 2)
    yield f"   {metric.title:<{width}}" + "".join(f"{head:>{size}}" for head, size in zip(heads, sizes, strict=True))
    for name in names:
        values = results.values(name, metric.key)
        cells = (
            number(median(values)),
            number(min(values)),
            number(max(values)),
            times(results.ratio(name, measure.baseline, metric.key)),
        )
        yield f"   {name:<{width}}" + "".join(f"{cell:>{size}}" for cell, size in zip(cells, sizes, strict=True))


def _verdict(results: Results, target: Target) -> str:
    unit = next(metric.unit for metric in results.measure.metrics if metric.key == target.metric)
    told, against = (times, f" x {target.against}") if target.against else (number, f" {unit}")
    aim = f"   target: {target.contender} at most {told(target.at_most)}{against}: "
    reached = results.reached(target)
    if reached is None:
        return aim + "not measured"
    if reached <= target.at_most:
        return aim + f"{told(reached)}, met"
    return aim + f"{told(reached)}, MISSED by {reached / target.at_most - 1:.0%}"


def number(value: float) -> str:
    """Return `value` with about three significant digits and no exponent."""
    size = abs(value)
    return (
        f"{value:,.0f}"
        if size >= 100
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 1
        else f"{value:.3f}"
    )


def times(ratio: float | None) -> str:
    """Return a ratio as people say it: `3.4`, or `1/8.2` below one."""
    if ratio is None:
        return "-"
    if ratio >= 0.995 or ratio <= 0:
        return number(ratio)
    return "1/" + f"{1 / ratio:.1f}".removesuffix(".0")
