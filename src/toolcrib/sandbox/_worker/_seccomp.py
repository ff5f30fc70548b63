"""The filter of system calls: an allow-list with rules on arguments, which the kernel applies before each call."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ._syscalls import ALLOWED, ARCHITECTURES, HOSTILE, LOADING, prctl, syscall

ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000  # the whole process, not the thread that called

_LOAD: Final = 0x20
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_AND: Final = 0x54
_RETURN: Final = 0x06

# Where the kernel lays out what a filter may look at.
_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4
_ARGUMENTS_AT: Final = 16

_SIGKILL: Final = 9
_X32: Final = 0x40000000  # calls of the x32 ABI carry this bit, with the same architecture as x86_64


def failing(number: int) -> int:
    """Return the verdict that makes a call fail with an error number."""
    return 0x00050000 | number


_DENY: Final = failing(errno.EPERM)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a filter: an operation, how far to jump when it holds and when not, and its constant."""

    code: int
    constant: int
    then: int = 0
    otherwise: int = 0

    def encode(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.then, self.otherwise, self.constant)


@dataclass(frozen=True, slots=True)
class Filter:
    """The program, whole but for the one number that differs: the process's own."""

    before: bytes
    after: bytes

    @classmethod
    def for_machine(cls, machine: str, *, loads: bool = False) -> Filter:
        """Build the filter of a machine, as `os.uname()` names it.

        Args:
            loads: Whether the process is to become another program, whose code it maps from files, read-only.

        Raises:
            OSError: There is no table of its calls.
        """
        if machine not in ARCHITECTURES:
            raise OSError(f"no table of system calls for {machine}; there are: {', '.join(ARCHITECTURES)}")
        column, audit = ARCHITECTURES[machine]
        head = [
            Instruction(_LOAD, _ARCHITECTURE_AT),
            Instruction(_IF_EQUAL, audit, 1, 0),
            *_verdict(KILL),
            Instruction(_LOAD, _NUMBER_AT),
            *([] if machine != "x86_64" else [Instruction(_IF_AT_LEAST, _X32, 0, 1), *_verdict(KILL)]),
        ]
        rest: list[Instruction] = []
        rules = _RULES | _LOADING_RULES if loads else _RULES
        for name, numbers in (ALLOWED | LOADING if loads else ALLOWED).items():
            if name != "tgkill":
                rest += _on(numbers[column], rules.get(name, _verdict(ALLOW)))
        for numbers in HOSTILE.values():
            rest += _on(numbers[column], _verdict(KILL))
        # A signal to itself is what abort() is made of; the rule comes first, so that its number is in a known place.
        # Not SIGKILL: the host takes that as a sign that somebody else has ended the process.
        tgkill = ALLOWED["tgkill"][column] or 0
        head += [
            Instruction(_IF_EQUAL, tgkill, 0, 6),
            _argument(2),
            Instruction(_IF_EQUAL, _SIGKILL, 3, 0),
            _argument(0),
        ]
        rest = [*_verdict(ALLOW), *_verdict(_DENY), *rest, *_verdict(_DENY)]
        return cls(_encode(head), _encode(rest))

    def program(self, process: int) -> bytes:
        """Return the program for the process of that number, eight bytes for each instruction."""
        return self.before + Instruction(_IF_EQUAL, process, 0, 1).encode() + self.after

    def load(self) -> None:
        """Filter this process's calls from here on; there is no way back.

        Raises:
            OSError: The kernel has no filters, or another filter forbids this one.
        """
        program = self.program(os.getpid())
        text = ctypes.create_string_buffer(program, len(program))
        handle = struct.pack("@HP", len(program) // 8, ctypes.addressof(text))
        set_mode_filter, no_flags = 1, 0
        prctl(38, 1)  # without no_new_privs, a filter is for root only
        syscall("seccomp", set_mode_filter, no_flags, ctypes.c_char_p(handle))


def _encode(instructions: Sequence[Instruction]) -> bytes:
    return b"".join(instruction.encode() for instruction in instructions)


def _verdict(value: int) -> list[Instruction]:
    return [Instruction(_RETURN, value)]


def _on(number: int | None, body: list[Instruction]) -> list[Instruction]:
    """Return the instructions for one call; every body ends in a verdict, so that later ones see nothing it loaded."""
    return [] if number is None else [Instruction(_IF_EQUAL, number, 0, len(body)), *body]


# --- rules on arguments ----------------------------------------------------------------------------------------------


def _argument(place: int, *, high: bool = False) -> Instruction:
    """Load one half of an argument; both architectures are little-endian."""
    return Instruction(_LOAD, _ARGUMENTS_AT + 8 * place + (4 if high else 0))


def _one_of(place: int, values: Sequence[int], *, mask: int | None = None, otherwise: int = _DENY) -> list[Instruction]:
    """Allow an argument that the kernel reads as an int, when it is one of these."""
    tests = [Instruction(_IF_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    masked = [] if mask is None else [Instruction(_AND, mask)]
    return [_argument(place), *masked, *tests, *_verdict(otherwise), *_verdict(ALLOW)]


def _both(first: list[Instruction], second: list[Instruction]) -> list[Instruction]:
    """Allow what two rules allow; the first ends by allowing, which is where the second goes on."""
    return [*first[:-1], *second]


def _none_of_bits(place: int, bits: int) -> list[Instruction]:
    """Allow flags without these."""
    return [_argument(place), Instruction(_IF_ANY_BIT, bits, 0, 1), *_verdict(_DENY), *_verdict(ALLOW)]


def _null(place: int) -> list[Instruction]:
    """Allow a pointer that points nowhere: both halves are 0."""
    return [
        _argument(place),
        Instruction(_IF_EQUAL, 0, 0, 3),
        _argument(place, high=True),
        Instruction(_IF_EQUAL, 0, 0, 1),
        *_verdict(ALLOW),
        *_verdict(_DENY),
    ]


_WRITABLE: Final = 0x2
_EXECUTABLE: Final = 0x4
_ANONYMOUS: Final = 0x20  # memory of no file
_WRITING: Final = 0o1103  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_NEW_THREAD: Final = (0x3D0F00, 0x7D0F00)  # the flags of pthread_create in glibc and in musl; fork has others
_PLAIN_FUTEX: Final = (0, 1, 3, 4, 5, 9, 10)  # wait, wake, requeue; not the priority-inheriting kind
_OF_A_PROCESS: Final = 0x80000000  # a clock that is below 0 is the processor time of a process or thread, by its number
_ADVICE: Final = (4, 8, 14, 15, 102, 103)  # what allocators give: not needed, free, huge pages or not, guard pages
_OUT_OF_BAND: Final = 1  # MSG_OOB: nothing needs it on a Unix socket, and kernels have been broken through it
_DESCRIPTOR_FLAGS: Final = (1, 2, 3, 4)  # F_GETFD, F_SETFD, F_GETFL, F_SETFL

_RULES: Final[dict[str, list[Instruction]]] = {
    "clock_getres": _none_of_bits(0, _OF_A_PROCESS),
    "clock_gettime": _none_of_bits(0, _OF_A_PROCESS),
    "clock_nanosleep": _none_of_bits(0, _OF_A_PROCESS),
    "clone": _one_of(0, _NEW_THREAD),
    "clone3": _verdict(failing(errno.ENOSYS)),  # its flags lie in memory, out of a filter's sight; clone is tried next
    "fcntl": _one_of(1, _DESCRIPTOR_FLAGS),
    "futex": _one_of(1, _PLAIN_FUTEX, mask=0x7F),
    "getsockopt": _one_of(2, (3, 4, 38, 39)),  # SO_TYPE, SO_ERROR, SO_PROTOCOL, SO_DOMAIN; not who the peer is
    "ioctl": _one_of(1, (0x5421, 0x5450, 0x5451)),  # FIONBIO, FIONCLEX, FIOCLEX
    "madvise": _one_of(2, _ADVICE, otherwise=failing(errno.EINVAL)),  # as from a kernel that does not know it
    "mmap": _none_of_bits(2, _EXECUTABLE),
    "mprotect": _none_of_bits(2, _EXECUTABLE),
    "prlimit64": _both(_one_of(0, (0,)), _null(2)),  # reading its own limits, not setting them
    "sched_getaffinity": _one_of(0, (0,)),  # its own processors: of others it would say which processes there are
    "recvfrom": _none_of_bits(3, _OUT_OF_BAND),
    "sendto": _both(_none_of_bits(3, _OUT_OF_BAND), _null(4)),  # to where the socket is connected
    "socketpair": _both(_one_of(0, (1,)), _one_of(1, (1,), mask=0xF)),  # AF_UNIX, SOCK_STREAM
}
_LOADING_RULES: Final[dict[str, list[Instruction]]] = {
    "mmap": [
        _argument(2),
        Instruction(_IF_ANY_BIT, _EXECUTABLE, 1, 0),
        *_verdict(ALLOW),
        *_both(_none_of_bits(2, _WRITABLE), _none_of_bits(3, _ANONYMOUS)),
    ],
    "openat": _none_of_bits(2, _WRITING),
}
