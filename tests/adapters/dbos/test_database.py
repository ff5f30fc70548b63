"""A database is named by a path or a URL; what keeps it from being used is said, with the way out."""

from __future__ import annotations

import importlib.metadata
import stat
import tomllib
from pathlib import Path

import pytest
import sqlalchemy as sa
from packaging.requirements import Requirement

from tests.postgres import Postgres
from toolcrib.database import Database
from toolcrib.errors import DatabaseError


@pytest.mark.parametrize("name", ["{}/a.db", "sqlite:///{}/a.db"])
def test_a_file_is_named_by_its_path_or_url(tmp_path: Path, name: str) -> None:
    database = Database.named(name.format(tmp_path))

    assert (database.kind, database.path) == ("sqlite", tmp_path / "a.db")
    assert str(database) == str(tmp_path / "a.db")


def test_a_server_is_named_by_its_url_and_its_password_is_not_shown() -> None:
    database = Database.named("postgresql://ann:secret@db.example:5433/crib")

    assert database.kind == "postgresql"
    assert database.url.password == "secret"
    assert str(database) == "postgresql://ann:***@db.example:5433/crib"
    assert "secret" not in repr(database)


def test_a_password_in_the_query_is_not_shown() -> None:
    database = Database.named("postgresql://db.example/crib?user=ann&pass%77ord=sec%2Fret")

    assert database.url.password == "sec/ret"
    assert str(database) == "postgresql://db.example/crib?user=ann"


@pytest.mark.parametrize(
    ("schema", "application", "problem"),
    [
        ("Orders", None, "`Orders` is not a valid name of a schema"),
        ("pg_temp", None, "`pg_temp` is not a valid name of a schema"),
        ("a" * 64, None, "is not a valid name of a schema"),
        (None, "Shop!", "`Shop!` is not a valid name of an application"),
        (None, "ab", "`ab` is not a valid name of an application"),
    ],
)
def test_a_schema_and_an_application_have_names(schema: str | None, application: str | None, problem: str) -> None:
    with pytest.raises(DatabaseError, match=problem):
        Database.named("postgresql://db/crib", schema=schema, application=application)


def test_a_file_has_no_schema(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="a file has no schema `orders`"):
        Database.named(tmp_path / "a.db", schema="orders")


def test_the_environment_names_schema_and_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_SCHEMA", "orders")
    monkeypatch.setenv("TOOLCRIB_APPLICATION", "shop")

    database = Database.named("postgresql://db/crib")

    assert (database.schema, database.application) == ("orders", "shop")
    assert Database.named("postgresql://db/crib", schema="mail").schema == "mail"


def test_without_a_name_the_environment_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLCRIB_DATABASE", raising=False)
    default = Database.named()
    monkeypatch.setenv("TOOLCRIB_DATABASE", "elsewhere.db")

    assert str(default) == "toolcrib.db"
    assert str(Database.named()) == "elsewhere.db"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("mysql://db/crib", "`mysql` is not a kind of database that can be used"),
        ("postgresql://db.example", "the URL names no database"),
        ("postgresql://ann:secret@db:port/crib", "it is not a URL"),
        ("host=db user=ann password=secret", "it has a password, and is not a URL"),
        (":memory:", "durable work has to be kept in a file"),
        ("sqlite://", "durable work has to be kept in a file"),
    ],
)
def test_another_name_is_an_error_that_shows_the_forms(name: str, problem: str) -> None:
    with pytest.raises(DatabaseError, match=problem) as raised:
        Database.named(name)

    assert "Give a path, `sqlite:///path`, or `postgresql://" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_an_at_sign_of_a_password_that_is_not_escaped_is_said() -> None:
    with pytest.raises(DatabaseError, match="Write an @ of the password as %40") as raised:
        Database.named("postgresql://ann:p@secret@db/crib")

    assert "secret" not in str(raised.value)


def test_a_file_gets_an_engine_that_dbos_can_work_with(tmp_path: Path) -> None:
    engine = Database.named(tmp_path / "a.db").engine()

    with engine.connect() as connection:
        version = connection.execute(sa.text("SELECT sqlite_version()")).scalar_one()
        mode = connection.execute(sa.text("PRAGMA journal_mode")).scalar_one()
    engine.dispose()

    assert tuple(map(int, version.split("."))) >= (3, 42)
    assert mode == "wal"
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database at all, but long enough to be taken for one" * 20)

    with pytest.raises(DatabaseError, match=r"there is no folder .*/nowhere\. Make it first"):
        Database.named(tmp_path / "nowhere" / "a.db").engine()
    with pytest.raises(DatabaseError, match=r"notes\.txt cannot be used: the file is something else"):
        Database.named(tmp_path / "notes.txt").engine()


def test_a_server_gets_an_engine(postgres: Postgres) -> None:
    engine = Database.named(postgres.url("engine")).engine(pool=2)

    with engine.connect() as connection:
        (name,) = connection.execute(sa.text("SELECT current_setting('application_name')")).one()
    engine.dispose()

    assert name == "toolcrib"


def test_a_connection_that_comes_back_after_its_engine_was_disposed_of_is_closed(database: str) -> None:
    engine = Database.named(database).engine(pool=2)
    early = engine.connect()
    early_driver = early.connection.dbapi_connection
    engine.dispose()
    later = engine.connect()
    later_driver = later.connection.dbapi_connection

    early.close()
    later.close()

    assert early_driver is not None
    assert later_driver is not None
    with pytest.raises(Exception, match="closed"):
        early_driver.cursor().execute("SELECT 1")
    later_driver.cursor().execute("SELECT 1")
    engine.dispose()


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(DatabaseError, match=r"Is a Postgres server running at 127\.0\.0\.1:1\?") as raised:
        Database.named("postgresql://ann:secret@127.0.0.1:1/crib").engine()

    assert "secret" not in str(raised.value)


def test_what_a_early_driverays_of_a_password_is_hidden() -> None:
    with pytest.raises(DatabaseError) as raised:
        Database.named("postgresql://ann@/crib?host=/nowhere/secret1&password=secret1").engine()

    assert "/nowhere/***/" in raised.value.problem


def test_a_database_that_the_server_does_not_have_is_said(postgres: Postgres) -> None:
    url = postgres.url("nothing", create=False)

    with pytest.raises(DatabaseError, match="Make it with: createdb nothing"):
        Database.named(url).engine()


def test_the_declared_range_of_dbos_is_what_these_tests_run_on() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extra = [Requirement(line) for line in project["optional-dependencies"]["durable"]]
    (declared,) = (one.specifier for one in extra if one.name == "dbos")
    major, minor, _ = importlib.metadata.version("dbos").split(".")

    assert str(declared) == f"<{major}.{int(minor) + 1},>={major}.{minor}"
