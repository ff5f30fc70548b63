"""Remove each gate of the pipeline in turn, in a copy of the source, and show the tests that notice.

Run by `make mutants`. Exits with 1 when a gate can be removed without a test failing, or a patch no longer applies.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.gates import GATES, Gate  # noqa: E402 -- the script may be run from anywhere

_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_LONGEST = 300  # seconds for the tests of one gate


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant: the tests that failed, or why there is no telling."""

    gate: Gate
    killers: tuple[str, ...]
    seconds: float
    problem: str = ""

    @property
    def died(self) -> bool:
        return bool(self.killers) and not self.problem


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the gates that the arguments name, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only gates whose name has one of these words in it")
    names: list[str] = parser.parse_args(arguments).names
    chosen = [gate for gate in GATES if not names or any(name in gate.name for name in names)]
    with TemporaryDirectory(prefix="toolcrib-mutants-") as folder:
        if not (said := untouched(Path(folder))).passed:
            print(f"the tests fail without any mutant:\n{said.output}")
            return 1
        verdicts = [shown(judge(gate, Path(folder))) for gate in chosen]
    survivors = [verdict for verdict in verdicts if not verdict.died]
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} gates are held by a test")
    return 1 if survivors else 0


def judge(gate: Gate, folder: Path) -> Verdict:
    """Remove one gate and run the tests that should notice."""
    begun = time.perf_counter()
    source = ROOT / "src/toolcrib" / gate.file
    text = source.read_text("utf-8") if source.is_file() else ""
    if (found := text.count(gate.was)) != 1:
        return Verdict(gate, (), 0.0, f"the patch does not apply: its text is in {gate.file} {found} times")
    package = fresh_copy(folder)
    (package / gate.file).write_text(text.replace(gate.was, gate.becomes), "utf-8")
    said = tested(package.parent, gate.tests)
    killers = tuple(_FAILED.findall(said.output))
    problem = "" if killers or said.passed else said.output.strip().splitlines()[-1]
    return Verdict(gate, killers, time.perf_counter() - begun, problem)


def untouched(folder: Path) -> Said:
    """Run the tests against a copy that nothing was removed from."""
    every = dict.fromkeys(path for gate in GATES for path in gate.tests)
    return tested(fresh_copy(folder).parent, tuple(every))


def fresh_copy(folder: Path) -> Path:
    """Return a copy of the package as it is in the working tree."""
    package = folder / "src/toolcrib"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src/toolcrib", package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


@dataclass(frozen=True, slots=True)
class Said:
    """How a run of pytest ended."""

    passed: bool
    output: str


def tested(source: Path, tests: tuple[str, ...]) -> Said:
    """Run tests against the package in `source`, up to the first that fails."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", "--timeout=10", *tests]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return Said(False, f"no end within {_LONGEST} s")
    # a test that hangs takes the process with it, and says so on stderr
    hung = re.search(r"Timeout.*", done.stderr) if done.returncode and "FAILED" not in done.stdout else None
    output = done.stdout or done.stderr
    return Said(done.returncode == 0, output + (f"\nFAILED {hung[0]}\n" if hung else ""))


def shown(verdict: Verdict) -> Verdict:
    """Print one line of the table."""
    what = verdict.problem or ", ".join(verdict.killers) or "SURVIVED"
    print(
        f"{'dead ' if verdict.died else 'ALIVE'}  {verdict.seconds:5.1f} s  {verdict.gate.name:44}  {what}", flush=True
    )
    return verdict


if __name__ == "__main__":
    sys.exit(main())
