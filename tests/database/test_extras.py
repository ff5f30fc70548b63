"""Stores on a Postgres server need no engine of durable work."""

from __future__ import annotations

import subprocess
import sys
from uuid import uuid4

import pytest

from tests.postgres import Postgres

pytest.importorskip("psycopg")

STORES = """
import sys
sys.modules["dbos"] = None  # as if it were not installed
from toolcrib.approvals import PostgresApprovalStore
from toolcrib.credentials import CredentialKeys, PostgresCredentialStore, new_key
from toolcrib.record import PostgresSink, postgres_events
from toolcrib.results import PostgresResultStore

url = sys.argv[1]
for store in (
    PostgresApprovalStore(url),
    PostgresResultStore(url),
    PostgresCredentialStore(url, CredentialKeys([new_key()])),
    PostgresSink(url),
):
    store.close()
print(postgres_events(url).last())
"""
MISSING = """
import sys
sys.modules["sqlalchemy"] = None
from toolcrib.approvals import PostgresApprovalStore
"""


def test_stores_on_a_server_need_no_dbos(postgres: Postgres) -> None:
    url = postgres.url(f"extras_{uuid4().hex[:8]}")

    done = subprocess.run([sys.executable, "-c", STORES, url], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_missing_extra_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=False)

    assert "pip install 'toolcrib[postgres]'" in done.stderr.splitlines()[-1]
