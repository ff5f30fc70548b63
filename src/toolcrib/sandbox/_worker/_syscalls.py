"""System calls of the seal: their numbers, and a way to make one from Python."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, Final, NamedTuple


class Architecture(NamedTuple):
    """A machine whose system calls are known here.

    Attributes:
        column: Its place in the tables below.
        audit: The kernel's name of it where a filter asks.
    """

    column: int
    audit: int


ARCHITECTURES: Final = {"x86_64": Architecture(0, 0xC000003E), "aarch64": Architecture(1, 0xC00000B7)}

Numbers = tuple[int | None, int | None]

# What Python needs for computing, threads, timers, asyncio and one socket: each name with its number on x86_64 and on
# aarch64, None where there is no such call. Seen in use, or what a C library falls back to. `_seccomp` narrows some of
# them by their arguments.
ALLOWED: Final[dict[str, Numbers]] = {
    # Those a program makes most come first: the filter is read from the top.
    "futex": (202, 98),
    "read": (0, 63),
    "write": (1, 64),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "poll": (7, None),
    "ppoll": (271, 73),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    # memory
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    "brk": (12, 214),
    # threads and signals of its own
    "clone": (56, 220),
    "clone3": (435, 435),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "tgkill": (234, 131),
    "restart_syscall": (219, 128),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # time and chance
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "nanosleep": (35, 101),
    "setitimer": (38, 103),
    "getrandom": (318, 278),
    # descriptors it has, and a pair of its own for waking a loop
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "socketpair": (53, 199),
    "getsockname": (51, 204),
    "getsockopt": (55, 209),
    # who and how much it is
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "times": (100, 153),
    "prlimit64": (302, 261),
}

# What it takes besides to become another program, and to load that one's libraries.
LOADING: Final[dict[str, Numbers]] = {
    "execveat": (322, 281),
    "openat": (257, 56),
    "newfstatat": (262, 79),
    "pread64": (17, 67),
    "access": (21, None),
    "faccessat": (269, 48),
    "arch_prctl": (158, None),
    "set_tid_address": (218, 96),
}

# Calls that no program makes by mistake, through which kernels have been broken: the process ends.
HOSTILE: Final[dict[str, Numbers]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "modify_ldt": (154, None),
    "ioperm": (173, None),
    "iopl": (172, None),
}

# What the seal itself calls without a function of the C library.
OWN: Final[dict[str, Numbers]] = {
    "capset": (126, 91),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "pivot_root": (155, 41),
    "seccomp": (317, 277),
}


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def function(name: str, *arguments: Any) -> int:
    """Call a function of the C library; numbers go as unsigned longs.

    Raises:
        OSError: It is not there, or it returned less than 0.
    """
    try:
        called = getattr(_library(), name)
    except AttributeError:
        raise OSError(f"this system has no {name}()") from None
    called.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    result: int = called(*(ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(name: str, *arguments: Any) -> int:
    """Make one of the calls of `OWN` by its number.

    Raises:
        OSError: The kernel refused, or the machine is not in the table.
    """
    machine = os.uname().machine
    known = ARCHITECTURES.get(machine)
    number = None if known is None else OWN[name][known.column]
    if number is None:
        raise OSError(f"no number for {name} on {machine}")
    try:
        return function("syscall", number, *arguments)
    except OSError as error:
        raise OSError(error.errno, f"{name}: {os.strerror(error.errno or 0)}") from None


def prctl(option: int, *arguments: int) -> int:
    """Change or read an attribute of this process.

    Raises:
        OSError: The kernel refused, or it is not Linux.
    """
    return function("prctl", option, *(*arguments, 0, 0, 0, 0)[:4])
