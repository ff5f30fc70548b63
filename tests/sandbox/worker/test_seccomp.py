"""What the filter says of a call, for both architectures, by running its program on a machine of our own."""

from __future__ import annotations

import errno

import pytest

from tests.sandbox.worker.bpf import ARCHITECTURES, Call, verdict
from toolcrib.sandbox._worker._seccomp import ALLOW, KILL, Filter, failing
from toolcrib.sandbox._worker._syscalls import ALLOWED, HOSTILE, LOADING

SELF = 4242
PROGRAMS = {machine: Filter.for_machine(machine).program(SELF) for machine in ARCHITECTURES}
LOADERS = {machine: Filter.for_machine(machine, loads=True).program(SELF) for machine in ARCHITECTURES}
COLUMNS = {"x86_64": 0, "aarch64": 1}
DENY = failing(errno.EPERM)

# Calls with a rule on an argument: some that pass, some that do not.
NULL, POINTER, HIGH_POINTER = 0, 0x7000_1000, 0x7F00_0000_0000_0000
ARGUMENTS = {
    "clock_getres": ([(0,), (1,), (2,), (3,), (11,)], [(0xFFFFFFF2,), (0xFFFFFFFFFFFFFFF2,)]),
    "clock_gettime": ([(0,), (1,), (2,), (3,), (11,)], [(0xFFFFFFF2,), (0xFFFFFFFFFFFFFFF2,)]),
    "clock_nanosleep": ([(0, 1), (1, 0)], [(0xFFFFFFF2, 0)]),
    "clone": ([(0x3D0F00,), (0x7D0F00,)], [(0x11,), (0x1200011,), (0x4011,), (0x3D0F00 | 0x10000000,)]),
    "fcntl": ([(3, 1), (3, 2, 1), (3, 3), (3, 4, 2048)], [(3, 0), (3, 1030), (3, 8), (3, 1033)]),
    "futex": ([(1, 0), (1, 128), (1, 129), (1, 393)], [(1, 6), (1, 128 | 6), (1, 11), (1, 13), (1, 2)]),
    "getsockopt": ([(3, 1, 3), (3, 1, 4)], [(3, 1, 17), (3, 1, 77)]),
    "ioctl": ([(3, 0x5421), (3, 0x5451)], [(3, 0x5413), (0, 0x5412), (3, 0x8912)]),
    "mmap": ([(0, 4096, 3), (0, 4096, 0)], [(0, 4096, 4), (0, 4096, 5), (0, 4096, 7)]),
    "mprotect": ([(4096, 4096, 3)], [(4096, 4096, 5), (4096, 4096, 7)]),
    "prlimit64": (
        [(0, 7, NULL, POINTER)],
        [(0, 7, POINTER), (0, 7, HIGH_POINTER), (1, 7, POINTER, POINTER), (1, 7, NULL, POINTER), (SELF, 7, NULL)],
    ),
    "sched_getaffinity": ([(0, 128, POINTER)], [(1, 128, POINTER), (SELF, 128, POINTER)]),
    "recvfrom": ([(3, POINTER, 9, 0), (3, POINTER, 9, 0x40)], [(3, POINTER, 9, 1), (3, POINTER, 9, 0x41)]),
    "sendto": (
        [(3, POINTER, 9, 0, NULL), (3, POINTER, 9, 0x4000, NULL)],
        [(3, POINTER, 9, 0, POINTER), (3, POINTER, 9, 0, HIGH_POINTER), (3, POINTER, 9, 1), (3, POINTER, 9, 0x4001)],
    ),
    "socketpair": ([(1, 1), (1, 0x80801)], [(2, 1), (16, 3), (10, 1), (1, 2), (1, 5), (1, 0x80002)]),
    "tgkill": ([(SELF, 1, 6), (SELF, 1, 11)], [(1, 1, 6), (SELF + 1, 1, 6), (0, 0, 6), (SELF, 1, 9)]),
}
# Of a process that becomes another program: code is mapped from files alone, and files are read alone.
LOADING_ARGUMENTS = {
    "mmap": (
        [(0, 4096, 3, 0x22), (0, 4096, 1, 2), (0, 4096, 5, 2), (0, 4096, 5, 0x802)],
        [(0, 4096, 7, 0x22), (0, 4096, 5, 0x22), (0, 4096, 4, 0x22), (0, 4096, 7, 2), (0, 4096, 6, 2)],
    ),
    "mprotect": ([(4096, 4096, 1)], [(4096, 4096, 5)]),
    "openat": ([(3, POINTER, 0), (3, POINTER, 0x80000)], [(3, POINTER, 1), (3, POINTER, 2), (3, POINTER, 0x40)]),
}
RULED = {*ARGUMENTS, "clone3", "madvise"}


def said(machine: str, name: str, arguments: tuple[int, ...] = (), programs: dict[str, bytes] = PROGRAMS) -> int | None:
    number = (ALLOWED | HOSTILE | LOADING)[name][COLUMNS[machine]]
    if number is None:
        return None
    return verdict(programs[machine], Call(number, arguments, ARCHITECTURES[machine]))


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_allowed_calls_pass(machine: str) -> None:
    verdicts = {name: said(machine, name) for name in ALLOWED if name not in RULED}

    assert {name for name, each in verdicts.items() if each not in (ALLOW, None)} == set()


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_hostile_calls_end_the_process(machine: str) -> None:
    verdicts = {name: said(machine, name) for name in HOSTILE}

    assert {name for name, each in verdicts.items() if each not in (KILL, None)} == set()


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_all_other_calls_fail(machine: str) -> None:
    listed = {numbers[COLUMNS[machine]] for numbers in (ALLOWED | HOSTILE).values()}
    others = [number for number in (*range(700), 2**30 - 1) if number not in listed]

    verdicts = {verdict(PROGRAMS[machine], Call(each, (), ARCHITECTURES[machine])) for each in others}

    assert verdicts == {DENY}


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_decide(machine: str, name: str) -> None:
    passing, failing_ones = ARGUMENTS[name]

    assert {said(machine, name, each) for each in passing} == {ALLOW}
    assert {said(machine, name, each) for each in failing_ones} == {DENY}


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("name", LOADING_ARGUMENTS)
def test_a_process_that_becomes_another_program_loads_files_and_makes_no_code(machine: str, name: str) -> None:
    passing, failing_ones = LOADING_ARGUMENTS[name]

    assert {said(machine, name, each, LOADERS) for each in passing} == {ALLOW}
    assert {said(machine, name, each, LOADERS) for each in failing_ones} == {DENY}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_it_may_do_no_more_besides(machine: str) -> None:
    more = {name: said(machine, name, (), LOADERS) for name in LOADING}
    hostile = {name: said(machine, name, (), LOADERS) for name in HOSTILE}

    assert set(more.values()) <= {ALLOW, None}
    assert {said(machine, name) for name in LOADING} <= {DENY, None}
    assert set(hostile.values()) <= {KILL, None}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_clone3_looks_as_if_it_were_not_there(machine: str) -> None:
    assert said(machine, "clone3") == failing(errno.ENOSYS)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_what_allocators_say_of_memory_is_understood(machine: str) -> None:
    understood = {advice for advice in range(128) if said(machine, "madvise", (4096, 4096, advice)) == ALLOW}

    assert understood == {4, 8, 14, 15, 102, 103}
    assert said(machine, "madvise", (4096, 4096, 12)) == failing(errno.EINVAL)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_another_architecture_ends_the_process(machine: str) -> None:
    others = {0x40000003, 0x40000028, 0, *ARCHITECTURES.values()} - {ARCHITECTURES[machine]}

    assert {verdict(PROGRAMS[machine], Call(1, (), each)) for each in others} == {KILL}


@pytest.mark.parametrize("number", [0x40000000, 0x40000001, 0x40000000 + 59, 0xFFFFFFFF])
def test_the_x32_calls_end_the_process(number: int) -> None:
    assert verdict(PROGRAMS["x86_64"], Call(number)) == KILL


def test_each_process_has_its_own_number_in_the_filter() -> None:
    of_another = Filter.for_machine("x86_64").program(SELF + 1)

    assert verdict(of_another, Call(234, (SELF, 1, 6))) == DENY
    assert verdict(of_another, Call(234, (SELF + 1, 1, 6))) == ALLOW


@pytest.mark.parametrize("machine", ["riscv64", "i686", ""])
def test_no_filter_without_a_table(machine: str) -> None:
    with pytest.raises(OSError, match="x86_64, aarch64"):
        Filter.for_machine(machine)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_kernel_takes_programs_of_that_size(machine: str) -> None:
    assert len(PROGRAMS[machine]) % 8 == 0
    assert len(PROGRAMS[machine]) // 8 < 4096
