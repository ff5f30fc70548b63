"""What a confined worker cannot do: under the whole seal, and with a layer left out, where another one holds."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.sandbox.acting import CPU, MEMORY, act, acting_pool, ask
from toolcrib.sandbox._layers import LAYERS
from toolcrib.sandbox._worker.messages import THREADS_IN_KERNEL
from toolcrib.sandbox._worker_pool import WorkerPool

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the seal is the Linux kernel's")

KERNEL = [int(number) for number in re.findall(r"\d+", platform.release())[:2]]
ABSTRACT = f"toolcrib-test-{os.getpid()}"
SYSCALL = "ctypes.CDLL(None, use_errno=True).syscall"
ACTS = {
    "open": "os.open('/etc/passwd', os.O_RDONLY)",
    "write": "os.open('/tmp/toolcrib-test', os.O_CREAT | os.O_WRONLY)",
    "list": "os.listdir('/')[0]",
    "stat": "os.stat('/etc/passwd')",
    "process": "os.open('/proc/self/environ', os.O_RDONLY)",
    "tcp": "socket.socket().connect(('127.0.0.1', {port}))",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "abstract": "socket.socket(socket.AF_UNIX).connect('\\0{abstract}')",
    "raw": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "run": "os.execv('/bin/true', ['true'])",
    "parent": "os.kill(os.getppid(), 0)",
    "fork": "os.fork() or os._exit(0)",
    "limits": "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))",
}

# What the others hold without seccomp: Landlock lets stat and UDP through, and nothing but seccomp stops fork.
WITHOUT_SECCOMP = set(ACTS) - {"fork"}
ONLY_LANDLOCK = {"open", "write", "list", "process", "tcp", "abstract", "parent", "raw", "limits"}
ONLY_NAMESPACES = {"open", "write", "list", "stat", "process", "tcp", "udp", "abstract", "raw", "run", "limits"}


@pytest.fixture(scope="module")
def pools() -> Iterator[Callable[..., WorkerPool]]:
    """Give out pools, one for each set of layers left out, all closed at the end."""
    with ExitStack() as opened:

        @cache
        def pool(*skip: str) -> WorkerPool:
            made = acting_pool(*skip)
            opened.callback(made.close)
            made.start()
            return made

        yield pool


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, object]]:
    """Listen on a port and on an abstract name, so that whoever gets through is let in."""
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{ABSTRACT}")
        abstract.listen()
        yield {"port": port.getsockname()[1], "abstract": ABSTRACT}


def failed(answer: str) -> bool:
    return not answer or answer.split(":")[0].endswith("Error") or answer == "[]"


@pytest.mark.parametrize("name", ACTS)
def test_not_under_the_whole_seal(pools: Callable[..., WorkerPool], names: dict[str, object], name: str) -> None:
    answer = act(pools(), ACTS[name].format(**names))

    assert answer.startswith(("PermissionError", "ValueError"))  # a program is told, and goes on


@pytest.mark.parametrize("layer", [each for each in LAYERS if each != "seccomp"])
def test_not_without_one_layer(pools: Callable[..., WorkerPool], names: dict[str, object], layer: str) -> None:
    pool = pools(layer)

    answers = {name: act(pool, source.format(**names)) for name, source in ACTS.items()}

    assert pool.report[layer] == "skipped"
    assert {name for name, answer in answers.items() if not failed(answer)} == set()


@pytest.mark.parametrize("name", sorted(WITHOUT_SECCOMP))
def test_not_without_seccomp(pools: Callable[..., WorkerPool], names: dict[str, object], name: str) -> None:
    pool = pools("seccomp")
    if not {"landlock", "empty_root"} <= set(pool.layers):
        pytest.skip("there is no other layer here")

    answer = act(pool, ACTS[name].format(**names))

    assert failed(answer), answer


@pytest.mark.parametrize("name", sorted(ONLY_LANDLOCK))
def test_not_under_landlock_alone(pools: Callable[..., WorkerPool], names: dict[str, object], name: str) -> None:
    pool = pools("seccomp", "namespaces", "empty_root")
    if "landlock" not in pool.layers:
        pytest.skip(pool.report["landlock"])

    answer = act(pool, ACTS[name].format(**names))

    assert failed(answer), answer


@pytest.mark.parametrize("name", sorted(ONLY_NAMESPACES))
def test_not_under_namespaces_alone(pools: Callable[..., WorkerPool], names: dict[str, object], name: str) -> None:
    pool = pools("seccomp", "landlock")
    if "empty_root" not in pool.layers:
        pytest.skip(pool.report["empty_root"])

    answer = act(pool, ACTS[name].format(**names))

    assert failed(answer), answer


def test_the_acts_succeed_where_nothing_holds(pools: Callable[..., WorkerPool], names: dict[str, object]) -> None:
    pool = pools(*(set(LAYERS) - {"rlimits"}))

    answers = {name: act(pool, ACTS[name].format(**names)) for name in ("open", "list", "stat", "tcp", "udp", "fork")}

    assert {name for name, answer in answers.items() if failed(answer)} == set()


@pytest.mark.parametrize(
    "source",
    [
        f"{SYSCALL}(101, 0, 0, 0, 0)",  # ptrace
        f"{SYSCALL}(425, 1, 0)",  # io_uring_setup
        f"{SYSCALL}(0x40000000 + 39)",  # getpid of x32
    ],
    ids=["ptrace", "io_uring", "x32"],
)
def test_hostile_calls_end_the_worker(pools: Callable[..., WorkerPool], source: str) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are of x86_64")

    assert act(pools(), source) == ""


def test_workers_cannot_end_each_other_without_seccomp(pools: Callable[..., WorkerPool]) -> None:
    pool = pools("seccomp")
    if "landlock" not in pool.layers:
        pytest.skip(pool.report["landlock"])
    other = pool.take(CPU, MEMORY)
    ask(other, "1")

    act(pool, "os.kill(-1, 9)")

    answer = ask(other, "1 + 1")
    other.close()
    assert answer == "2"


def test_no_descriptor_but_the_channel(pools: Callable[..., WorkerPool]) -> None:
    assert act(pools(), "[d for d in range(256) if is_open(d)]") == "[3]"


def test_no_variable_of_the_environment(pools: Callable[..., WorkerPool]) -> None:
    assert act(pools(), "dict(os.environ)") == "{}"


def test_nobody_inside(pools: Callable[..., WorkerPool]) -> None:
    assert act(pools(), "os.getuid() == 0 or os.getgid() == 0") == "False"


def test_threads_and_pairs_are_allowed(pools: Callable[..., WorkerPool]) -> None:
    started = "[t.start() or t.join() for t in [threading.Thread(target=int) for _ in range(4)]]"

    assert act(pools(), started) == "[None, None, None, None]"
    assert act(pools(), "[s.close() for s in socket.socketpair()]") == "[None, None]"


@pytest.mark.skipif(KERNEL < [5, 14], reason="older kernels count all threads of a user together")
def test_the_kernel_counts_the_threads_of_each_worker_apart(pools: Callable[..., WorkerPool]) -> None:
    pool = pools()
    if "namespaces" not in pool.layers:
        pytest.skip(pool.report["namespaces"])
    workers = [pool.take(CPU, MEMORY) for _ in range(2)]

    started = [ask(worker, "take_threads()") for worker in workers]
    seen = [worker.usage().threads for worker in workers]

    for worker in workers:
        worker.close()
    assert started == [str(THREADS_IN_KERNEL - 1)] * 2
    assert seen == [THREADS_IN_KERNEL] * 2


def test_memory_is_limited_from_what_there_is(pools: Callable[..., WorkerPool]) -> None:
    worker = pools().take(CPU, MEMORY)

    enough, too_much = ask(worker, f"len(bytes({MEMORY // 2}))"), ask(worker, f"len(bytes({MEMORY + (8 << 20)}))")

    worker.close()
    assert (enough, too_much) == (str(MEMORY // 2), "MemoryError: ")


def test_limits_of_the_kernel(pools: Callable[..., WorkerPool]) -> None:
    names = ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE")

    answer = act(pools(), f"[resource.getrlimit(getattr(resource, name)) for name in {names}]")

    assert answer == "[(5, 6), (0, 0), (0, 0), (64, 64), (0, 0), (0, 0)]"


UNPRIVILEGED = """
import os, sys
from tests.sandbox.acting import act, acting_pool
sys.executable = sys.argv[1]
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
pool = acting_pool(*sys.argv[2:])
pool.start()
print(*pool.layers)
print(act(pool, "os.listdir('/')"))
print(act(pool, "os.getuid()"))
pool.close()
"""


@pytest.mark.parametrize("skip", [(), ("namespaces",), ("seccomp",)], ids=["whole", "namespaces", "seccomp"])
def test_host_that_is_not_root(skip: tuple[str, ...]) -> None:
    if os.getuid() != 0:
        pytest.skip("all tests are run so here")
    python = next((each for each in (sys.executable, "/usr/bin/python3") if runs_for_everybody(each)), None)
    if python is None:
        pytest.skip("no Python here that anybody may run")
    root = Path(__file__).parents[2]

    ran = subprocess.run([sys.executable, "-c", UNPRIVILEGED, python, *skip], cwd=root, capture_output=True, text=True)

    layers, answer, user = ran.stdout.splitlines() or [ran.stderr, "", ""]
    assert {"no_new_privs", "dropped_root", "landlock", "rlimits"} - set(skip) <= set(layers.split()), ran.stderr
    assert failed(answer)
    assert user == "65534"


def runs_for_everybody(python: str) -> bool:
    tried = [python, "-c", "import sys, resource; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(tried, user=65534, group=65534, extra_groups=[], cwd="/", env={}).returncode == 0
    except OSError:
        return False
