"""Reasons that end a program from outside, and their messages: the same whichever engine ran the program."""

from __future__ import annotations

from toolcrib._numbers import count_text
from toolcrib.sandbox._protocol import ProgramError, Raised, SandboxLimits
from toolcrib.sandbox._worker.messages import THREADS_IN_KERNEL
from toolcrib.sandbox._worker_end import WorkerEnd

LIMITS = (
    *("limit:program_time", "limit:wall_time", "limit:sleep_time", "limit:memory", "limit:output", "limit:calls"),
)
CLOSED = ProgramError("stopped", "SandboxError", "the sandbox was closed while the program ran")
CALL_CANCELLED = ProgramError("stopped", "CancelledError", "a tool call was cancelled")


class ProgramEnded(Exception):
    """The program has to end, for the reason in `error`; None when its `Conversation` or `_Run` knows the reason."""

    def __init__(self, error: ProgramError | None) -> None:
        super().__init__(error)
        self.error = error


def computed_too_long(limits: SandboxLimits, line: int = 0) -> ProgramError:
    """Return the error of a program that computes for more than `program_time`."""
    message = (
        f"the program computed for {limits.program_time:g} s, which is all it may (with all its threads; waiting for "
        "tools not counted). "
        "Look for a loop without an end, or let a tool do the work."
    )
    return ProgramError("time", "TimeoutError", message, line)


def took_too_long(limits: SandboxLimits) -> ProgramError:
    """Return the error of a program that takes more than `wall_time`, its tool calls included."""
    seconds = limits.wall_time or 0
    message = f"the program was not done after {seconds:g} s (wall_time), its tool calls included"
    return ProgramError("time", "TimeoutError", message)


def slept_too_long(seconds: float, limits: SandboxLimits, line: int = 0) -> ProgramError:
    """Return the error of a program that wants to sleep more than is left of `sleep_time`."""
    message = f"the program wants to sleep {round(seconds, 2):g} s more, and may sleep {limits.sleep_time:g} s in all"
    return ProgramError("time", "TimeoutError", message, line)


def out_of_memory(limits: SandboxLimits, line: int = 0, traceback: str = "") -> ProgramError:
    """Return the error of a program whose values take more than `memory`."""
    message = (
        f"the program needs more than the {limits.memory // 1024 // 1024} MB of memory it may use. Work on the "
        "data in parts, and keep only what you need."
    )
    return ProgramError("memory", "MemoryError", message, line, traceback)


def printed_too_much(limits: SandboxLimits) -> ProgramError:
    """Return the error of a program that prints more than `output_killed_at`."""
    most = limits.output_killed_at
    message = f"the program printed more than {most} characters. Print only what you need to see."
    return ProgramError("output", "OutputLimit", message)


def too_many_calls(name: str, limits: SandboxLimits, line: int = 0) -> ProgramError:
    """Return the error of a program that makes more than `calls`."""
    most = f"{count_text(limits.calls, 'call')}, and {'it is' if limits.calls == 1 else 'they are'}"
    message = (
        f"`{name}` was not called: the program may make {most} used up. Fetch "
        "more with each call, or work on fewer items."
    )
    return ProgramError("calls", "CallLimit", message, line)


def too_many_threads(found: int) -> ProgramError:
    """Return the error of a program that goes round Python to have more threads than it may."""
    message = f"the program was ended: it has {found} threads at a time, and a program may have {THREADS_IN_KERNEL}"
    return ProgramError("stopped", "ThreadLimit", message)


def arguments_too_large(name: str, most: int, line: int = 0) -> ProgramError:
    """Return the error of a program whose open calls have larger arguments than the host holds."""
    message = (
        f"`{name}` was not called: the arguments of the calls that have no result yet take more than {most >> 20} MB. "
        "Wait for some of them before making more."
    )
    return ProgramError("calls", "CallLimit", message, line)


def result_too_large(name: str, size: int, limits: SandboxLimits) -> Raised:
    """Return the reply to a call whose result is larger than `reply_size`."""
    return Raised(
        "ValueError",
        f"`{name}` returned about {size} characters, and {limits.reply_size} is the most a program can take in at "
        "once (SandboxLimits.reply_size). Ask it for less, or for one part at a time.",
    )


def tables_too_large(name: str, size: int, limits: SandboxLimits) -> Raised:
    """Return the reply to a call whose result has tables of more bytes than `bytes_in`."""
    return Raised(
        "ValueError",
        f"`{name}` returned tables of {size} bytes, and {limits.bytes_in} is the most a program can take in at once "
        "(SandboxLimits.bytes_in). Ask it for fewer rows or columns.",
    )


def worker_died(end: WorkerEnd | None, limits: SandboxLimits) -> ProgramError:
    """Return the error of a program whose process is gone.

    Args:
        end: How it ended; None where that is not known, as of a process on another machine.
    """
    died = "the worker process died, and the program with it"
    if end is None:
        may = f"{limits.program_time:g} s, {limits.memory // 1024 // 1024} MB"
        why = f"it crashed, or took more time or memory than it may ({may}) or than the machine has"
        return ProgramError("sandbox", "SandboxLost", f"{died}: {why}")
    if end.cause == "time":
        return computed_too_long(limits)
    return ProgramError("sandbox", "SandboxError" if end.cause == "program" else "SandboxLost", f"{died}: {end.how}")


def protocol_broken(error: Exception) -> ProgramError:
    """Return the error of a program whose worker does not keep to the protocol."""
    return ProgramError("sandbox", "SandboxError", f"the worker broke the protocol, and was ended: {error}")


def replay_diverged(difference: Exception) -> ProgramError:
    """Return the error of a program that does something else when it is run again."""
    message = (
        f"the program was run again to resume it, and did something else than before: {difference}. It was ended "
        "before anything new was begun."
    )
    return ProgramError("sandbox", "ReplayDiverged", message)
