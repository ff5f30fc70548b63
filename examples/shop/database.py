"""The shop's SQLite file: made afresh for each run, or kept where the variable SHOP_DB says."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("shop.sql")


@cache
def database() -> Path:
    kept = os.environ.get("SHOP_DB")
    if kept:
        path = Path(kept)
    else:
        folder = tempfile.mkdtemp(prefix="shop-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder, "shop.db")
    if not path.exists():
        with closing(sqlite3.connect(path)) as db:
            db.executescript(SCRIPT.read_text("utf-8"))
    return path


@contextmanager
def open_shop() -> Generator[sqlite3.Connection]:
    """Give the body a connection; what it wrote is kept when it ends without an exception."""
    with closing(sqlite3.connect(database())) as db, db:
        db.row_factory = sqlite3.Row
        yield db


def rows(query: str, *values: Any) -> list[Any]:
    """Return what a query finds, a dict for each row."""
    with open_shop() as db:
        return [dict(row) for row in db.execute(query, values)]
