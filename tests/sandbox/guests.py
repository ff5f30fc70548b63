"""Guests at an address of this machine, as bare processes or in a container, and what they are reached by."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolcrib.sandbox import GUEST, RemoteWorkers, WorkerSandbox, guest_command

TOKEN = "a-token-for-tests-of-guests"


@contextmanager
def guest(*, inside: Sequence[str] = (), token: str = TOKEN, **options: Any) -> Generator[str]:
    """Run a guest that serves at an address of this machine, and return the address."""
    command = [*inside, *guest_command(os.path.realpath(sys.executable), serve="address", **options)]
    with subprocess.Popen(command, env={"TOOLCRIB_TOKEN": token, "PATH": os.environ["PATH"]}, stdout=-1) as process:
        assert process.stdout is not None
        try:
            host, port = json.loads(process.stdout.readline())["address"]
            yield f"{host}:{port}"
        finally:
            process.send_signal(signal.SIGKILL)


def container() -> list[str]:
    """Return the beginning of a command that runs in a container with the network of this machine."""
    seen = [part for folder in ("/usr", "/lib", "/lib64", sys.base_prefix, str(GUEST)) for part in _shown(folder)]
    apart = ("--unshare-all", "--share-net", "--die-with-parent", "--proc", "/proc", "--dev", "/dev")
    return ["bwrap", *apart, *seen, "--"]


def _shown(folder: str) -> list[str]:
    return ["--ro-bind-try", folder, folder]


def remote(address: str, *, token: str = TOKEN, tls: ssl.SSLContext | None = None, **options: Any) -> WorkerSandbox:
    """Return a sandbox whose workers are at an address."""
    return WorkerSandbox(RemoteWorkers(address, token=token, tls=tls, **options), "remote")
