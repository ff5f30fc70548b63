"""What a program that was not made for the seal can do under it, as a broken interpreter could: a shell acts for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from toolcrib.sandbox._monty import SealedProgram

pytestmark = pytest.mark.skipif(not Path("/usr/bin/perl").exists(), reason="it is Perl that acts, on Linux")

PERL = "/usr/bin/perl"
ACTS = {
    "open": "open(my $f, '<', '{file}') && print('GOT')",
    "write": "open(my $f, '>', '{file}') && print('GOT')",
    "list": "opendir(my $d, '/etc') && print('GOT')",
    "stat": "-e '{file}' && print('GOT')",
    "process": "open(my $f, '<', '/proc/self/environ') && print('GOT')",
    "tcp": "socket(my $s, 2, 1, 0); connect($s, pack('Sna4x8', 2, {port}, pack('C4', 127, 0, 0, 1))) && print('GOT')",
    "udp": "socket(my $s, 2, 2, 0); connect($s, pack('Sna4x8', 2, {port}, pack('C4', 127, 0, 0, 1))) && print('GOT')",
    "run": "exec('/bin/echo', 'GOT')",
    "fork": "defined(fork()) && print('GOT')",
    "parent": "kill(0, getppid()) && print('GOT')",
    "root": "$< == 0 && print('GOT')",
    "change of root": "chroot('/') && print('GOT')",
    "code": "syscall(9, 0, 4096, 7, 0x22, -1, 0) > 0 && print('GOT')",
    "environment": "%ENV && print('GOT')",
    "descriptor": "open(my $f, '<&=', {descriptor}) && print('GOT')",
    "error stream": "print(STDERR 'GOT')",
}
# What the other layers hold without seccomp.
WITHOUT_SECCOMP = sorted(set(ACTS) - {"fork", "code", "parent"})
Act = Callable[..., str]
GIVES_UP_ROOT = """
import os, sys
from toolcrib.sandbox._monty import SealedProgram
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    sys.executable = next(each for each in (sys.executable, "/usr/bin/python3") if os.access(each, os.X_OK))
print(SealedProgram(sys.argv[1], (), frozenset()).report.layers["seccomp"])
"""


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Act]:
    """Return what has a program act under a seal without some layers, and returns what it says."""
    sealed = cache(lambda *skip: SealedProgram(PERL, (), frozenset(skip)))
    file = tmp_path_factory.mktemp("host") / "secret"
    file.write_text("secret\n")
    with socket.create_server(("127.0.0.1", 0)) as port, file.open() as opened:
        names = {"file": file, "port": port.getsockname()[1], "descriptor": opened.fileno()}

        def do(name: str, *skip: str) -> str:
            ran = subprocess.run(
                [PERL if "all" in skip else sealed(*skip).command],
                input=f"$| = 1; print('ran '); {ACTS[name].format(**names)}".encode(),
                env={"SECRET": "secret"},
                capture_output=True,
                pass_fds=[opened.fileno()],
            )
            return (ran.stdout + ran.stderr).decode()

        yield do


@pytest.mark.parametrize("name", ACTS)
def test_not_under_the_whole_seal(act: Act, name: str) -> None:
    assert act(name) == "ran "


@pytest.mark.parametrize("name", WITHOUT_SECCOMP)
def test_not_without_seccomp(act: Act, name: str) -> None:
    assert act(name, "seccomp") == "ran "


def test_a_layer_that_is_lacking_later_ends_the_program_before_it_begins() -> None:
    sealed = SealedProgram(PERL, (), frozenset({"landlock"}))
    script = Path(sealed.command).read_text()
    lacking = script.replace('"landlock": "skipped"', '"landlock": "on"')

    ran = subprocess.run([sys.executable, "-IS", "-c", lacking], input=b"print('ran')", capture_output=True)

    assert (script != lacking, ran.returncode, ran.stdout) == (True, 1, b"")


def test_the_script_goes_with_its_object() -> None:
    sealed = SealedProgram(PERL, (), frozenset())
    script = Path(sealed.command)
    before = script.exists()

    del sealed

    assert before
    assert not script.parent.exists()


def test_a_process_that_has_given_up_root_seals_programs_too() -> None:
    ran = subprocess.run([sys.executable, "-c", GIVES_UP_ROOT, PERL], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("on\n", "")


def test_a_program_that_does_not_start_under_the_seal_has_none() -> None:
    sealed = SealedProgram("/bin/false", (), frozenset())

    assert sealed.command == "/bin/false"
    assert set(sealed.report.layers.values()) == {"unavailable: the program does not start under it (status 1)"}


@pytest.mark.skipif(os.getuid() != 0, reason="the acts are those of root")
@pytest.mark.parametrize("name", ACTS)
def test_without_a_seal_all_of_it_is_done(act: Act, name: str) -> None:
    assert "GOT" in act(name, "all")
