"""What the kernel counts of a worker's process."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from toolcrib.sandbox._worker_end import NOTHING, usage_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors of processes are Linux's")


def test_seconds_and_threads_of_a_process() -> None:
    handle = os.pidfd_open(os.getpid())
    before = usage_of(handle)
    until = threading.Event()
    thread = threading.Thread(target=until.wait)

    thread.start()
    begun = time.process_time()
    while time.process_time() < begun + 0.1:
        pass
    after = usage_of(handle)
    until.set()
    thread.join()
    os.close(handle)

    assert after.threads == before.threads + 1
    assert after.seconds >= before.seconds + 0.05


def test_nothing_is_known_of_a_process_that_is_gone() -> None:
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {})
    handle = os.pidfd_open(child)
    os.waitpid(child, 0)

    assert usage_of(handle) == NOTHING
    os.close(handle)
    assert usage_of(handle) == NOTHING
