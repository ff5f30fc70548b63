"""`python -m benchmarks [--only NAME] [--rounds N] [--json FILE]`: measure, print the ratios, judge nothing."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks._machine import machine
from benchmarks._measure import Results
from benchmarks._rounds import run
from benchmarks._table import lines
from benchmarks.measures import MEASURES, find


def main() -> None:
    """Run what the command line asks for."""
    options = _options()
    chosen = [find(name) for name in options.only] if options.only else list(MEASURES)
    here, started = machine(), perf_counter()
    print("; ".join(f"{name} {value}" for name, value in here.items()))
    print(
        "each contender in its own process, one after the other in every round; "
        "figures and ratios are medians over the rounds\n"
    )
    results: list[Results] = []
    for measure in chosen:
        results.append(run(measure, options.rounds))
        print("\n".join(lines(results[-1])), flush=True)
    print(f"took {perf_counter() - started:.0f} s")
    if options.json:
        document = {"machine": here, "rounds": options.rounds, "measures": [_as_json(r) for r in results]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure Toolcrib beside its peers.")
    names = [measure.name for measure in MEASURES]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help="one of " + ", ".join(names))
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="rounds of the slow measures (default 5; fewer say little); the quick ones get more",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure there")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def _as_json(results: Results) -> dict[str, Any]:
    measure = results.measure
    return {
        "name": measure.name,
        "title": measure.title,
        "units": {metric.key: metric.unit for metric in measure.metrics},
        "samples": results.samples,
        "missing": results.missing,
        "targets": [
            {
                "metric": target.metric,
                "contender": target.contender,
                "against": target.against,
                "at_most": target.at_most,
                "reached": results.reached(target),
            }
            for target in measure.targets
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
