"""Guests at an address of this machine, each connection a worker, and sandboxes that reach them through socat."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.sandbox.acting import until
from toolcrib.sandbox import CommandWorkers, WorkerSandbox, guest_command

_LISTENS = re.compile(r"listening on .*:(\d+)$", re.MULTILINE)
KEEP_ALIVE = "nodelay,keepalive,keepidle=15,keepintvl=5,keepcnt=3"


@contextmanager
def guest(*, tls: str = "") -> Generator[str]:
    """Run a guest for each connection to an address of this machine, and return the address.

    Args:
        tls: socat's options of its end of TLS; without them the connections are plain.
    """
    command = shlex.join(guest_command(os.path.realpath(sys.executable)))
    listens = f"OPENSSL-LISTEN:0,{tls}" if tls else "TCP-LISTEN:0"
    with TemporaryDirectory() as folder:
        script = Path(folder, "guest")
        script.write_text(f"#!/bin/sh\nexec setpriv --pdeathsig KILL {command}\n")
        script.chmod(0o700)
        listener = f"{listens},bind=127.0.0.1,fork,{KEEP_ALIVE}"
        log = Path(folder, "log")
        with (
            log.open("wb") as said,
            subprocess.Popen(["socat", "-dd", listener, f"EXEC:{script}"], stderr=said) as process,
        ):
            try:
                assert until(lambda: _LISTENS.search(log.read_text()) is not None)
                yield f"127.0.0.1:{_LISTENS.findall(log.read_text())[0]}"
            finally:
                process.kill()


def remote(address: str, *, tls: str = "", **options: Any) -> WorkerSandbox:
    """Return a sandbox whose workers are at an address.

    Args:
        address: The host and the port.
        tls: socat's options of its end of TLS.
        options: Those of `CommandWorkers`.
    """
    connects = f"OPENSSL:{address},{tls}" if tls else f"TCP:{address}"
    return WorkerSandbox(CommandWorkers(["socat", "FD:0", f"{connects},{KEEP_ALIVE}"], **options), "remote")
