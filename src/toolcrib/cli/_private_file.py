"""Files that their owner alone can read, written in one step."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def create_private(path: Path, data: bytes) -> None:
    """Write a new file; FileExistsError where there is one."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def write_private(path: Path, data: bytes) -> None:
    """Write a file, or replace it: a reader sees all of one or all of the other."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        create_private(fresh, data)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
