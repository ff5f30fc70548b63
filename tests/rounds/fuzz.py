"""`make fuzz`: a million rounds for each provider, from conversations that no run has made before.

Beside them come replies that are spoilt: cut, with values of a wrong kind, and with items that no provider has.
Run it from the repository root as `python -m tests.rounds.fuzz`. It says how far it is, can be interrupted with Ctrl-C,
and stops at the first transcript that a provider would refuse. Exit status: 0 when there is none, 1 otherwise, 130 when
it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from typing import TypeAlias

from tests.rounds.conversations import Counts, drive
from tests.rounds.replies import FORMATS
from tests.rounds.spoilt import HELD, spoil_many
from toolcrib.rounds import WireFormat

BATCH = 2_000  # rounds in one go
PAUSE = 10.0  # seconds between two lines of progress

Made: TypeAlias = tuple[WireFormat, Counts]


def batch(format: WireFormat, rounds: int, seed: int) -> Made:
    """Return what came of some rounds, after half as many replies that are spoilt."""
    asyncio.run(spoil_many(format, rounds // 2 if format in HELD else 0, seed))
    return format, asyncio.run(drive(format, rounds, seed))


class Progress:
    """How far the run is, said now and then."""

    def __init__(self, formats: Sequence[WireFormat], rounds: int) -> None:
        self.counts = {format: Counts() for format in formats}
        self.goal = rounds * len(formats)
        self.began = self.told = time.monotonic()

    def add(self, format: WireFormat, counts: Counts) -> None:
        """Add what came of a batch."""
        self.counts[format].add(counts)
        if time.monotonic() - self.told > PAUSE:
            self.told = time.monotonic()
            done = sum(made.decoded for made in self.counts.values())
            rate = done / (self.told - self.began)
            left = max(0, self.goal - done) / rate / 60
            print(f"{done:,} of {self.goal:,} rounds, {rate:,.0f} a second, {left:.0f} min to go", flush=True)

    def tell(self) -> None:
        """Print what came of all of it."""
        for format, made in self.counts.items():
            print(f"{format:18}{made}")
        print(f"in {(time.monotonic() - self.began) / 60:.1f} min", flush=True)


def fuzz(formats: Sequence[WireFormat], rounds: int, seed: int, processes: int) -> int:
    """Drive the rounds and return the exit status."""
    progress = Progress(formats, rounds)
    with ProcessPoolExecutor(processes, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            _gather(_batches(pool, formats, rounds, seed), progress)
        except AssertionError as error:
            print(error, file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted; until then no transcript was refused", file=sys.stderr)
            return 130
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            progress.tell()
    return 0


def _batches(pool: Executor, formats: Sequence[WireFormat], rounds: int, seed: int) -> list[Future[Made]]:
    starts = range(0, rounds, BATCH)
    return [pool.submit(batch, one, min(BATCH, rounds - at), seed + at) for at in starts for one in formats]


def _gather(futures: Iterable[Future[Made]], progress: Progress) -> None:
    for future in as_completed(futures):
        progress.add(*future.result())


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive what the command line asks for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.rounds.fuzz", description="Drive rounds at random.")
    parser.add_argument("--rounds", type=int, default=1_000_000, metavar="N", help="for each provider")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS, help="which providers")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**40), help="the first conversation's")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="at a time")
    options = parser.parse_args(arguments)
    print(f"{options.rounds:,} rounds for each of {', '.join(options.formats)}, from seed {options.seed}", flush=True)
    return fuzz(options.formats, options.rounds, options.seed, options.processes)


if __name__ == "__main__":
    sys.exit(main())
