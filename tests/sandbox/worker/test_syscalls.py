"""The numbers of the system calls, against the tables of a package that has nothing to do with ours."""

from __future__ import annotations

import sys

import pytest

from toolcrib.sandbox._worker._syscalls import ALLOWED, ARCHITECTURES, HOSTILE, OWN, function, syscall

theirs = pytest.importorskip("seccompy.syscalls")

ALL = [*ALLOWED.items(), *HOSTILE.items(), *OWN.items()]


@pytest.mark.parametrize(("name", "numbers"), ALL, ids=[name for name, _ in ALL])
def test_number_of_both_architectures(name: str, numbers: tuple[int | None, int | None]) -> None:
    expected = (theirs.X86_64_SYSCALLS.get(name), theirs.AARCH64_SYSCALLS.get(name))

    assert numbers == expected


def test_how_architectures_call_themselves() -> None:
    expected = {"x86_64": theirs.AUDIT_ARCH_X86_64, "aarch64": theirs.AUDIT_ARCH_AARCH64}

    assert {name: each.audit for name, each in ARCHITECTURES.items()} == expected


def test_nothing_is_both_allowed_and_hostile() -> None:
    assert not set(ALLOWED) & set(HOSTILE)


@pytest.mark.parametrize("name", ["open", "openat", "socket", "connect", "fork", "vfork", "execve", "kill", "stat"])
def test_what_is_never_allowed(name: str) -> None:
    assert name not in ALLOWED
    assert name not in HOSTILE  # a program may try these by mistake, and goes on with an error


def test_a_refusal_of_the_kernel_is_an_error() -> None:
    if sys.platform != "linux":
        pytest.skip("there are no such calls")

    with pytest.raises(OSError, match="landlock_restrict_self"):
        syscall("landlock_restrict_self", 2**31 - 1, 0)


def test_a_missing_function_is_an_error() -> None:
    with pytest.raises(OSError, match="no_such_function"):
        function("no_such_function")
