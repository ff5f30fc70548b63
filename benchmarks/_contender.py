"""A contender's own process: `python -m benchmarks._contender MEASURE CONTENDER`.

It prints one JSON line when it is ready or cannot be, then one line of figures for each line it reads.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from benchmarks._measure import Contender, Sample
from benchmarks.measures import find


def main() -> None:
    """Serve samples of the contender that the command line names, until standard input ends."""
    measure_name, contender_name = sys.argv[1:3]
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what a library prints must not come between the answers
        contender = next(c for c in find(measure_name).contenders if c.name == contender_name)
        sample = _prepared(contender, answers)
        if sample is None:
            return
        for _ in sys.stdin:
            _answer(answers, dict(sample()))


def _prepared(contender: Contender, answers: TextIO) -> Sample | None:
    try:
        sample = contender.setup()
    except ImportError as error:
        _answer(answers, {"missing": _why(contender, error)})
    except Exception as error:  # the peer's code: one that fails must not end the run
        _answer(answers, {"missing": f"failed: {type(error).__name__}: {error}"})
    else:
        _answer(answers, {"ready": True})
        return sample
    return None


def _why(contender: Contender, error: ImportError) -> str:
    if contender.name.startswith("toolcrib") and (error.name or "").startswith("toolcrib"):
        return f"not there yet: {error}"
    return f"cannot be imported: {error}"


def _answer(answers: TextIO, value: object) -> None:
    print(json.dumps(value), file=answers, flush=True)


if __name__ == "__main__":
    main()
