"""Remove each gate in turn, in a copy of the checkout, and show the tests that notice.

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
_PACKAGES = "tests/npm/node_modules"  # many and large, and no mutant is in them
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
    if not chosen:
        parser.error("no gate has any of these words in its name")
    with TemporaryDirectory(prefix="toolcrib-mutants-") as folder:
        checkout = copied(Path(folder))
        every = dict.fromkeys(path for gate in chosen for path in gate.tests)
        if not (said := tested(checkout, tuple(every), _LONGEST * len(every))).passed:
            print(f"the tests fail without any mutant:\n{said.output}")
            return 1
        verdicts = [shown(judge(gate, checkout)) for gate in chosen]
    survivors = [verdict for verdict in verdicts if not verdict.died]
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} gates are held by a test")
    return 1 if survivors else 0


def copied(folder: Path) -> Path:
    """Copy what the tests need, so that nothing but the mutant differs from one run to the next."""
    folder.chmod(0o755)  # some tests run as another user
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    if (ROOT / _PACKAGES).is_dir():
        (folder / _PACKAGES).symlink_to(ROOT / _PACKAGES)
    return folder


def judge(gate: Gate, checkout: Path) -> Verdict:
    """Remove one gate, run the tests that should notice, and put it back."""
    begun = time.perf_counter()
    source = checkout / "src/toolcrib" / gate.file
    text = source.read_text("utf-8") if source.is_file() else ""
    if (found := text.count(gate.was)) != 1:
        return Verdict(gate, (), 0.0, f"the patch does not apply: its text is in {gate.file} {found} times")
    source.write_text(text.replace(gate.was, gate.becomes), "utf-8")
    try:
        said = tested(checkout, gate.tests, _LONGEST)
    finally:
        source.write_text(text, "utf-8")
    killers = tuple(_FAILED.findall(said.output))
    problem = "" if killers or said.passed else said.output.strip().splitlines()[-1]
    if any(killer.endswith(".py") for killer in killers):
        problem = f"{killers[0]} cannot even be imported without it"
    return Verdict(gate, killers, time.perf_counter() - begun, problem)


@dataclass(frozen=True, slots=True)
class Said:
    """How a run of pytest ended."""

    passed: bool
    output: str


def tested(checkout: Path, tests: tuple[str, ...], longest: float) -> Said:
    """Run tests of a checkout against its own source, up to the first that fails."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    plugins = ("-p", "no:cacheprovider", "-p", "tests.mutants.order")
    command = (sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "--timeout=20", *plugins, *tests)
    try:
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=longest)
    except subprocess.TimeoutExpired:
        return Said(False, f"no end within {longest} s")
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
