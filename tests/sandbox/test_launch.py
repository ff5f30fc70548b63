"""Workers in stock: how they come, how they end, and that nothing is left of them."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.sandbox.acting import CPU, FORKS, MEMORY, NOTHING_REQUIRED, act, acting_pool, ask, descendants, gone, until
from toolcrib.errors import SandboxError, SandboxUnavailable
from toolcrib.sandbox import ProcessSandbox
from toolcrib.sandbox._layers import LAYERS, REQUIRED, LayerCheck
from toolcrib.sandbox._worker._seal import LAYERS as INNER_LAYERS
from toolcrib.sandbox._worker_pool import WorkerPool
from toolcrib.sandbox._zygote import Ready

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the seal is the Linux kernel's")

ROOT = Path(__file__).parents[2]


Own = Callable[[], dict[int, str]]


@pytest.fixture
def own() -> Own:
    """Return what tells the processes that the test has started.

    Other tests keep some for their session, which start others at any time: a Postgres server does.
    """
    before = descendants(os.getpid())
    return lambda: descendants(os.getpid(), before)


@pytest.fixture
def pool(own: Own) -> Iterator[WorkerPool]:
    made = acting_pool()
    yield made
    made.close()


def test_every_layer_is_reported(pool: WorkerPool) -> None:
    pool.start()

    assert tuple(pool.report) == LAYERS
    assert pool.layers == tuple(name for name in LAYERS if pool.report[name] == "on")
    assert {"no_new_privs", "seccomp", "rlimits", "closed_descriptors", "empty_environment"} <= set(pool.layers)


def test_both_sides_name_the_same_layers() -> None:
    assert LAYERS == INNER_LAYERS


def test_a_required_layer_that_is_missing_is_named_with_the_remedy() -> None:
    pool = WorkerPool(skip=frozenset({"seccomp"}))

    with pytest.raises(SandboxUnavailable, match=r"seccomp is skipped\. It needs Linux.*MontySandbox") as raised:
        pool.start()

    assert raised.value.layer == "seccomp"
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_workers_belong_to_the_control_group_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("")

    with ProcessSandbox(cgroup=tmp_path) as sandbox:
        assert "cgroup" in sandbox.layers

    assert (tmp_path / "cgroup.procs").read_text() == "0"  # which is the process that writes it


def test_a_control_group_that_cannot_be_had_is_named_with_the_remedy(tmp_path: Path, own: Own) -> None:
    with ProcessSandbox(cgroup=tmp_path / "none") as sandbox, pytest.raises(SandboxUnavailable) as refused:
        _ = sandbox.layers

    assert f"the control group {tmp_path / 'none'}" in str(refused.value)
    assert "cgroup.procs" in str(refused.value)
    assert not own()


def test_all_layers_can_be_required() -> None:
    with (
        ProcessSandbox(require="all", skip={"landlock"}) as sandbox,
        pytest.raises(SandboxUnavailable, match="landlock is skipped"),
    ):
        _ = sandbox.layers


def test_a_layer_that_could_be_in_force_is_a_warning_with_the_remedy_and_only_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lacking = dict.fromkeys(LAYERS, "on") | {"namespaces": "unavailable: not permitted", "landlock": "skipped"}
    check = LayerCheck(skip=frozenset({"landlock"}), warn=True, require=NOTHING_REQUIRED)

    for layers in (lacking, lacking):
        check.take(Ready(layers, {}))  # this kernel may have them all

    [warning] = caplog.records
    assert (warning.name, warning.levelname) == ("toolcrib.sandbox", "WARNING")
    assert "namespaces is unavailable: not permitted. Allow user namespaces" in warning.getMessage()
    assert "landlock" not in warning.getMessage()


def test_either_of_two_layers_is_enough() -> None:
    neither = WorkerPool(skip=frozenset({"landlock", "empty_root"}))

    with pytest.raises(SandboxUnavailable, match="landlock is skipped, and empty_root is skipped"):
        neither.start()

    assert "landlock|empty_root" in REQUIRED


@pytest.mark.parametrize("names", [{"skip": frozenset({"walls"})}, {"require": frozenset({"seccomp|walls"})}])
def test_layers_that_do_not_exist(names: dict[str, frozenset[str]]) -> None:
    with pytest.raises(ValueError, match="no layer walls; there are no_new_privs"):
        WorkerPool(**names)  # pyright: ignore[reportArgumentType] -- one or the other


def test_an_entry_that_cannot_be_loaded_is_an_error() -> None:
    pool = WorkerPool(entry=Path("/no/such/entry.py"))

    with pytest.raises(SandboxUnavailable, match="did not start: FileNotFoundError"):
        pool.start()


BROKEN = """
from toolcrib.sandbox._worker._seal import LAYERS, Seal
from toolcrib.sandbox._worker._selftest import broken_layers
seal = Seal(frozenset(LAYERS))
seal.report.update(dict.fromkeys(LAYERS, "on"))
print(*sorted(set(LAYERS) - {"rlimits", "closed_descriptors"} - set(broken_layers(seal))))
"""


def test_the_self_test_names_each_layer_that_is_not_there() -> None:
    ran = subprocess.run([sys.executable, "-c", BROKEN], cwd=ROOT, capture_output=True, text=True)

    held = ran.stdout.split()
    assert ran.stderr == ""
    assert set(held) <= ({"dropped_root", "no_capabilities"} if os.getuid() else set())


KEEPS_ITS_ENVIRONMENT = """
import os

class Kept(dict):
    def clear(self):
        pass

def warm_up():
    os.environ = Kept(left="over")
"""


def test_a_layer_that_does_not_hold_is_named_and_nothing_runs(tmp_path: Path) -> None:
    entry = tmp_path / "entry.py"
    entry.write_text(KEEPS_ITS_ENVIRONMENT)
    pool = WorkerPool(entry=entry)

    with pytest.raises(
        SandboxUnavailable, match="empty_environment is in force and does not hold, there are variables"
    ):
        pool.start()


def test_a_worker_is_ready_for_its_first_frame(pool: WorkerPool) -> None:
    worker = pool.take(CPU, MEMORY)

    answer = ask(worker, "1 + 1")

    worker.close()
    assert answer == "2"


def test_spares_are_for_the_limits_used_last(pool: WorkerPool) -> None:
    act(pool, "1")
    other = pool.take(CPU + 2, MEMORY)

    limits = ask(other, "resource.getrlimit(resource.RLIMIT_CPU)")

    other.close()
    assert limits == f"({CPU + 2}, {CPU + 3})"


def test_workers_share_nothing(pool: WorkerPool) -> None:
    act(pool, "setattr(os, 'left_behind', 1)")

    assert act(pool, "hasattr(os, 'left_behind')") == "False"


def test_a_worker_that_computes_for_ever_is_killed(pool: WorkerPool) -> None:
    worker = pool.take(CPU, MEMORY)
    worker.socket.sendall(b"[0 for _ in iter(int, 1)]\0")

    worker.kill()

    assert ask(worker, "1") == ""
    worker.close()
    worker.close()  # again is fine


def test_nothing_is_left_of_many_workers(pool: WorkerPool, own: Own) -> None:
    act(pool, "1")
    descriptors, processes = len(os.listdir("/proc/self/fd")), len(own()) + 2  # and spares, which may be on their way

    for _ in range(50):
        act(pool, "1")

    assert until(lambda: len(own()) <= processes)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 4  # a spare whose answer was not heard yet, or was


def test_nothing_is_left_of_a_closed_pool(own: Own) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    pool = acting_pool(spares=3)
    taken = pool.take(CPU, MEMORY)
    ask(taken, "1")

    pool.close()

    assert until(lambda: not own())
    taken.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(SandboxError, match="was closed"):
        pool.take(CPU, MEMORY)


def test_a_dead_zygote_is_replaced(pool: WorkerPool, own: Own) -> None:
    worker = pool.take(CPU, MEMORY)
    ask(worker, "1")

    processes = own()
    for process in processes:
        with suppress(ProcessLookupError):  # the zygote's end may have ended it
            os.kill(process, signal.SIGKILL)
    died = ask(worker, "1")

    worker.close()
    assert until(lambda: all(gone(process) for process in processes))  # also those that lost their parent
    assert died == ""
    assert act(pool, "1 + 1") == "2"


def test_a_worker_does_not_outlive_its_zygote() -> None:
    pool = acting_pool("namespaces")  # with them the kernel ends what is inside
    worker = pool.take(CPU, MEMORY)
    zygote = int(ask(worker, "os.getppid()"))

    os.kill(zygote, signal.SIGKILL)
    died = until(lambda: ask(worker, "1") == "")

    worker.close()
    pool.close()
    assert died


HOST = """
import os, sys, time
from tests.sandbox.acting import CPU, MEMORY, NOTHING_REQUIRED, acting_pool, ask
pool = acting_pool(*sys.argv[1:], spares=2)
worker = pool.take(CPU, MEMORY)
ask(worker, "1")
worker.socket.sendall(b"[0 for _ in iter(int, 1)]\\0")
print("ready", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("skip", [(), ("namespaces",)], ids=["namespaces", "none"])
def test_the_death_of_the_host_ends_everything(skip: tuple[str, ...]) -> None:
    with subprocess.Popen([sys.executable, "-c", HOST, *skip], cwd=ROOT, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"ready\n"
        below = descendants(host.pid)

        host.kill()

    assert len(below) >= 2
    assert until(lambda: all(gone(each) for each in below))


FORKING = """
import os, sys
from tests.sandbox.acting import CPU, MEMORY, NOTHING_REQUIRED, act, acting_pool, ask, descendants
pool = acting_pool()
worker = pool.take(CPU, MEMORY)
child = os.fork()
if child == 0:
    answer = act(pool, "20 + 1")
    pool.close()
    os._exit(0 if answer == "21" and worker.socket.fileno() == -1 else 1)
_, status = os.waitpid(child, 0)
print(status, ask(worker, "20 + 2"), act(pool, "20 + 3"))
worker.close()
pool.close()
"""


def test_a_fork_of_the_host_has_workers_of_its_own() -> None:
    ran = subprocess.run([*FORKS, FORKING], cwd=ROOT, capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("0 22 23\n", "")


def test_a_host_that_ends_without_closing_says_nothing() -> None:
    code = "from tests.sandbox.acting import act, acting_pool\np = acting_pool()\nprint(act(p, '1'))"

    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")


def test_nothing_but_limits() -> None:
    bare = acting_pool(*(set(LAYERS) - {"rlimits"}))

    answer = act(bare, "resource.getrlimit(resource.RLIMIT_FSIZE)")

    bare.close()
    assert bare.layers == ("rlimits",)
    assert answer == "(0, 0)"


def test_a_host_with_many_descriptors(pool: WorkerPool) -> None:
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]

    answer = act(pool, "[d for d in range(1024) if is_open(d)]")

    for each in opened:
        os.close(each)
    assert answer == "[3]"


def test_the_channel_is_a_blocking_stream(pool: WorkerPool) -> None:
    worker = pool.take(CPU, MEMORY)

    kind, blocking = worker.socket.type, worker.socket.getblocking()

    worker.close()
    assert (kind, blocking) == (socket.SOCK_STREAM, True)
