"""`make attacks`: every hostile program against the sandboxes, with packages too, and the control; layers off in turn.

python -m tests.attacks.run [--engine process|packages|bubblewrap|gvisor|monty|control] [--only PATTERN] [--quick]

Exits with 1 when a program gets through a sandbox with its required layers, or when the control holds what a detector
should have seen.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from tests.attacks.harness import NOBODY, Attack, Finding, attacks, run_attacks
from tests.attacks.hogs import HOGS, watched

ENGINES = ["process", "packages", "bubblewrap", "gvisor", "monty", "control"]
LAYERS = ("namespaces", "empty_root", "no_capabilities", "landlock", "seccomp", "dropped_root")
# What the control shows nothing of: it has no wire to speak on, no guard to go round, and Python itself stops a few.
SILENT = frozenset(
    [
        "a08_cf_thread",
        "a11_tool_closure",
        "b09_symlink_chroot",
        "d12_recursion",
        "d14_nested_source",
        "e09_rpc_forge_call",
        "e10_rpc_garbage",
        "e11_rpc_huge",
        "e12_rpc_json_bomb",
        "e13_pickle",
        "e16_ptrace",
        "f01_done_twice",
        "f02_forged_approval",
        "f03_odd_ids",
        "f04_clock_bomb",
        "f07_never_reads",
        "h01_keywords",
        "h08_sleep_cheat",
        "h10_nested_arguments",
        "h11_many_requests",
    ]
)


def main() -> int:
    """Run what the command line asks for, and return the exit status."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--engine", choices=ENGINES)
    asked.add_argument("--only", default="*", metavar="PATTERN", help="file names, such as 'e*'")
    asked.add_argument("--quick", action="store_true", help="all layers on, as this user only; no control")
    options = asked.parse_args()
    chosen = attacks(options.only)
    engines = [options.engine] if options.engine else ENGINES
    root = os.geteuid() == 0
    users: list[int | None] = [None, NOBODY] if root and not options.quick else [None]
    worst = 0
    for user in users:
        for engine in engines:
            if engine in ("packages", "bubblewrap", "gvisor") and user is not None:
                continue  # the Python that such a user may start is another, without packages
            if engine == "control":
                if not options.quick and user is None:
                    worst |= _control(chosen)
                continue
            worst |= _report(engine, (), user, run_attacks(engine, chosen, user=user), len(chosen))
            if engine == "process" and not options.quick:
                worst |= _hogs(user)
                for layer in LAYERS:
                    _report(engine, (layer,), user, run_attacks(engine, chosen, skip=(layer,), user=user), len(chosen))
    return worst


def _hogs(user: int | None) -> int:
    """Run each hog in a host of its own, and where what holds it is missing."""
    wrong = 0
    for name in HOGS:
        found = [watched(name, control, user) for control in (False, True)]
        wrong |= found[0] == "HOGGED" or found[1] == "held"
        print(f"{time.strftime('%H:%M:%S')} {name}: {found[0]}; where nothing holds it: {found[1]}", flush=True)
    return wrong


def _control(chosen: Sequence[Attack]) -> int:
    if os.geteuid() != 0:
        print("control: not run; it needs root, for a process namespace that ends what the programs leave behind")
        return 0
    findings = run_attacks("control", chosen)
    _report("control", (), None, findings, len(chosen))
    blind = sorted({finding.name for finding in findings if not finding.traces} - SILENT)
    if blind:
        print(f"  NOT SEEN, and it should have been: {', '.join(blind)}")
    return int(bool(blind))


def _report(engine: str, skip: Sequence[str], user: int | None, findings: Sequence[Finding], total: int) -> int:
    through = [finding for finding in findings if finding.traces]
    who = "root" if os.geteuid() == 0 and user is None else "unprivileged"
    without = f" without {', '.join(skip)}" if skip else ""
    print(f"{time.strftime('%H:%M:%S')} {engine}{without}, {who}: {len(through)} of {total} got through", flush=True)
    for finding in through:
        print(f"  {finding.name:24} {', '.join(sorted(finding.traces)):30} {finding.said[:90]!r}")
    return int(bool(through))


if __name__ == "__main__":
    sys.exit(main())
