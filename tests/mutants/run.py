"""Remove each gate in turn, in a copy of the checkout, and show the tests that notice.

Run by `make mutants`. Exits with 1 when a gate can be removed without a test failing, when the test that noticed fails
without that, too, or when a patch no longer applies. Which test noticed is kept in `killers.json`, and asked first when
this is run again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import cache_from_source, find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.gates import GATES, Gate  # noqa: E402 -- the script may be run from anywhere
from tests.mutants.trial import scratch, tried, warmed  # noqa: E402

_PACKAGES = "tests/npm/node_modules"  # many and large, and no mutant is in them
HAS_FRAMEWORKS = find_spec("agents") is not None
"""Whether this is the environment of the adapters of other frameworks, where nothing but their gates is tried."""

_LONGEST = 300  # seconds for the tests of one gate
_KILLERS = ROOT / "tests/mutants/killers.json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant: the tests that failed, or why there is no telling.

    Attributes:
        late: Whether the tests failed only because they came to no end.
    """

    gate: Gate
    killers: tuple[str, ...]
    seconds: float
    problem: str = ""
    late: bool = False

    @property
    def died(self) -> bool:
        return bool(self.killers) and not self.problem


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the gates that the arguments name, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only gates of these names, or with one of these words in their names")
    parser.add_argument("--files", nargs="+", help="only gates in these files or folders of src/toolcrib", default=())
    given = parser.parse_args(arguments)
    wanted = [gate for gate in named(given.names) if not given.files or is_in(gate, given.files)]
    chosen = [gate for gate in wanted if gate.needs_frameworks is HAS_FRAMEWORKS]
    if len(chosen) < len(wanted):
        other = "make mutants" if HAS_FRAMEWORKS else "make mutants-frameworks"
        print(f"left out: {len(wanted) - len(chosen)} gates whose tests need another environment, that of `{other}`")
    if not chosen:
        parser.error("no gate has any of these words in its name, or is in any of these files")
    known: dict[str, str] = json.loads(_KILLERS.read_text("utf-8"))
    with scratch("toolcrib-mutants-") as folder:
        checkout = copied(folder)
        warmed(checkout)
        verdicts = sound([shown(judge(gate, checkout, known.get(gate.name))) for gate in chosen], checkout)
    keep({**known, **{verdict.gate.name: verdict.killers[0] for verdict in verdicts if verdict.died}})
    survivors = [verdict for verdict in verdicts if not verdict.died]
    late = [verdict.gate.name for verdict in verdicts if verdict.died and verdict.late]
    print(f"\n{len(verdicts) - len(survivors)} of {len(verdicts)} gates are held by a test")
    print(f"of which by one that came to no end: {', '.join(late)}" if late else "")
    for verdict in survivors:
        shown(verdict)
    return 1 if survivors else 0


def named(names: Iterable[str]) -> list[Gate]:
    """Return the gates of these names, where a word that is no gate's name stands for all that have it in theirs."""
    exact = {gate.name for gate in GATES}.intersection(names)
    words = [name for name in names if name not in exact]
    return [gate for gate in GATES if gate.name in exact or any(word in gate.name for word in words) or not names]


def is_in(gate: Gate, places: Iterable[str]) -> bool:
    """Whether the source of a gate is one of these files, or in one of these folders."""
    return any(Path(gate.file).is_relative_to(place.removeprefix("src/toolcrib/")) for place in places)


def copied(folder: Path) -> Path:
    """Copy what the tests need, so that nothing but the mutant differs from one run to the next."""
    folder.chmod(0o755)  # some tests run as another user
    checkout = folder / "checkout"
    for name in ("src", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    if (ROOT / _PACKAGES).is_dir():
        (checkout / _PACKAGES).symlink_to(ROOT / _PACKAGES)
    return checkout


def keep(killers: Mapping[str, str]) -> None:
    """Write down which test noticed which gate."""
    kept = {gate.name: killers[gate.name] for gate in GATES if gate.name in killers}
    _KILLERS.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", "utf-8")


def judge(gate: Gate, checkout: Path, killer: str | None) -> Verdict:
    """Remove one gate, run the tests that should notice, first the one that did before, and put it back."""
    begun = time.perf_counter()
    source = checkout / "src/toolcrib" / gate.file
    text = source.read_text("utf-8") if source.is_file() else ""
    if (found := text.count(gate.was)) != 1:
        return Verdict(gate, (), 0.0, f"the patch does not apply: its text is in {gate.file} {found} times")
    write(source, text.replace(gate.was, gate.becomes))
    try:
        for tests in (*([killer] if killer else []), *gate.tests):
            told = tried(checkout, (tests,), _LONGEST)
            if told.failed or told.broken:  # that from before may be gone, which is no failure
                break
    finally:
        write(source, text)
    problem = "" if told.failed or told.passed else told.output.strip().splitlines()[-1]
    if told.broken:
        problem = f"{told.broken[0]} cannot even be imported without it"
    late = bool(told.failed) and set(told.failed) == set(told.late)
    return Verdict(gate, told.failed, time.perf_counter() - begun, problem, late)


def write(source: Path, text: str) -> None:
    """Put text into a module, which may be as long as that before, and come within the same second."""
    source.write_text(text, "utf-8")
    Path(cache_from_source(str(source))).unlink(missing_ok=True)


def sound(verdicts: Sequence[Verdict], checkout: Path) -> list[Verdict]:
    """Run every test that noticed once more, without a mutant: what fails nevertheless shows nothing."""
    killers = dict.fromkeys(killer for verdict in verdicts for killer in verdict.killers)
    told = tried(checkout, tuple(killers), _LONGEST * 10, first=False) if killers else None
    failed = set[str]() if told is None or told.passed else {*told.failed, *([] if told.failed else killers)}
    failed = {killer for killer in failed if not tried(checkout, (killer,), _LONGEST).passed}  # of itself
    problem = "that test fails without the mutant, too"
    return [replace(one, problem=problem) if failed.intersection(one.killers) else one for one in verdicts]


def shown(verdict: Verdict) -> Verdict:
    """Print one line of the table."""
    late = "no end" if verdict.late else ""
    what = "; ".join(filter(None, (verdict.problem, ", ".join(verdict.killers), late))) or "SURVIVED"
    print(
        f"{'dead ' if verdict.died else 'ALIVE'}  {verdict.seconds:5.1f} s  {verdict.gate.name:44}  {what}", flush=True
    )
    return verdict


if __name__ == "__main__":
    sys.exit(main())
