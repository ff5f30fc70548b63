"""Names of databases: every store, sink and owner of one refuses what is not a name, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.adapters.dbos import Client, Engine
from toolcrib.approvals import SqliteApprovalStore, ToolPins
from toolcrib.budgets import SqliteUsageStore
from toolcrib.code import SqliteProgramStore
from toolcrib.credentials import CredentialKeys, SqliteCredentialStore, new_key
from toolcrib.errors import DatabaseError
from toolcrib.record import SqliteSink, sqlite_events
from toolcrib.results import SqliteResultStore
from toolcrib.serving import ServerStates
from toolcrib.turns import Agent

STORES: tuple[Callable[[Any], Any], ...] = (
    ServerStates,
    SqliteApprovalStore,
    SqliteProgramStore,
    SqliteResultStore,
    SqliteSink,
    SqliteUsageStore,
    ToolPins,
    sqlite_events,
)
AGENT = Agent("names", "Has a name.", [], register=False)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def credentials(path: Any) -> Any:
    return SqliteCredentialStore(path, CredentialKeys([new_key()]))


@pytest.mark.parametrize("name", [AGENT, [AGENT], True, 7, b"a.db"], ids=repr)
@pytest.mark.parametrize("made", [*STORES, credentials, Engine, Client])
def test_what_is_not_a_name_is_refused_and_no_file_is_made(made: Callable[[Any], Any], name: Any, folder: Path) -> None:
    with pytest.raises(TypeError, match=r"a database is named by a path or a URL, as in 'toolcrib\.db', and not by"):
        made(name)

    assert not [*folder.iterdir()]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("text.txt", "the file is something else than a SQLite database. Name another"),
        ("nowhere/a.db", "there is no folder nowhere. Make it first"),
        (".", "it is a folder. Name a file in it"),
    ],
)
@pytest.mark.parametrize("made", [*STORES, credentials, Client])
def test_a_file_that_cannot_be_used_is_said_in_the_same_words(
    made: Callable[[Any], Any], name: str, problem: str, folder: Path
) -> None:
    (folder / "text.txt").write_text("This is a text. " * 200)

    with pytest.raises(DatabaseError, match=f"the database {name} cannot be used: {problem}"):
        made(name)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "have to be kept in a file. Name one, such as toolcrib.db"),
        (" ", "have to be kept in a file. Name one, such as toolcrib.db"),
        (":memory:", "have to be kept in a file. Name one, such as toolcrib.db"),
        ("postgresql://ann:secret@h/a", "this is the URL of a server. Use the Postgres store"),
    ],
)
@pytest.mark.parametrize("made", [*STORES, credentials])
def test_what_names_no_file_is_refused_by_a_store_in_a_file(
    made: Callable[[Any], Any], name: str, problem: str
) -> None:
    with pytest.raises(DatabaseError, match=problem) as raised:
        made(name)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["", "  ", "sqlite:///", ":memory:"])
@pytest.mark.parametrize("made", [Client, Engine])
def test_durable_work_is_in_a_database_that_has_a_name(made: Callable[[Any], Any], name: str, folder: Path) -> None:
    with pytest.raises(DatabaseError, match="durable work has to be kept in a file, or on a Postgres server"):
        made(name)

    assert not [*folder.iterdir()]


def test_a_client_that_makes_the_file_says_so_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    Client("shpo.db").close()
    Client("shpo.db").close()

    assert caplog.messages == [f"made the new database {folder / 'shpo.db'}"]
