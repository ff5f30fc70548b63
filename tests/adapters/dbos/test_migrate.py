"""Tables are made by one role and used by another; two applications share a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.adapters.dbos.durable import durable, engine_of, pay
from tests.postgres import Postgres
from toolcrib.adapters.dbos import Client, grant_use, list_work, migrate, table_versions
from toolcrib.approvals import PostgresApprovalStore
from toolcrib.database import Database
from toolcrib.errors import DatabaseError
from toolcrib.record import PostgresSink
from toolcrib.turns import Turn


@dataclass(frozen=True)
class Roles:
    owner: str
    runner: str


@pytest.fixture
def roles(postgres: Postgres) -> Iterator[Roles]:
    """Return the URLs of a database for its owner, and for a role that has no right in it yet."""
    owner = postgres.url("roles")
    with postgres.connect("roles") as connection:
        connection.execute("CREATE ROLE runner LOGIN PASSWORD 'r'")
    yield Roles(owner, owner.replace(f"crib:{postgres.password}", "runner:r"))
    with postgres.connect() as connection:
        connection.execute("DROP DATABASE roles WITH (FORCE)")
        connection.execute("DROP ROLE runner")


@pytest.mark.parametrize("schema", [None, "orders"])
async def test_a_role_that_may_make_no_tables_runs_work(roles: Roles, schema: str | None) -> None:
    mine = Database.named(roles.owner, schema=schema)
    theirs = Database.named(roles.runner, schema=schema)
    with pytest.raises(DatabaseError, match=r"this user may not make them\. Run `toolcrib db migrate`"):
        Client(theirs)

    migrate(mine)
    grant_use(mine, "runner")
    shop = durable(pay)
    async with engine_of(theirs, shop, record=True) as engine:
        handle = await shop.put(Turn(pay, kwargs={"cents": 5}))
        asked = await handle.outcome()
        await engine.client.approvals.answer(asked.request.grant("ann"))
        outcome = await handle.outcome(through=True)

    assert outcome.value == "paid 5"
    assert {version.state for version in table_versions(theirs)} == {"current"}


async def test_tables_that_may_not_be_made_are_an_error_of_each_store(roles: Roles) -> None:
    for store in (PostgresApprovalStore, PostgresSink):
        with pytest.raises(DatabaseError, match="this user may not make them"):
            store(Database.named(roles.runner, schema="orders"))


@pytest.mark.parametrize("schema", [None, "orders"])
def test_a_role_that_was_granted_nothing_does_not_take_the_tables_for_missing(roles: Roles, schema: str | None) -> None:
    migrate(Database.named(roles.owner, schema=schema))

    with pytest.raises(DatabaseError, match=r"Run `toolcrib db migrate --grant ROLE`"):
        table_versions(Database.named(roles.runner, schema=schema))


def test_a_role_that_is_not_there_is_said(roles: Roles) -> None:
    with pytest.raises(DatabaseError, match='role "no one" does not exist'):
        grant_use(Database.named(roles.owner), "no one")


def test_a_database_without_tables_says_what_is_missing(roles: Roles, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()

    for name in (roles.owner, str(tmp_path / "empty.db")):
        found = table_versions(Database.named(name))

        assert [version.store for version in found] == [
            "approvals",
            "journals",
            "grant uses",
            "digest keys",
            "expiry",
            "notices",
            "suspended calls",
            "events",
            "words",
            *(["event positions"] if name == roles.owner else []),
            "results",
            "usage",
            "saved programs",
            "work",
            "program requests",
            "schedule marks",
            "dbos",
        ]
        assert {version.state for version in found} == {"missing"}


async def test_two_applications_share_a_server(roles: Roles) -> None:
    one, two = (Database.named(roles.owner, schema=name, application=name) for name in ("orders", "mailing"))
    shop = durable(pay)
    async with engine_of(one, shop, worker_id="w", record=True):
        handle = await shop.put(Turn(pay, kwargs={"cents": 5}))
        asked = (await handle.outcome()).request
        async with Client(two) as other:
            seen = (list_work(other), await other.approvals.list())
        async with Client(one) as own:
            mine = (len(list_work(own)), [entry.request.id for entry in await own.approvals.list()])

    assert seen == ([], ())
    assert mine == (1, [asked.id])


async def test_two_applications_share_a_schema(roles: Roles) -> None:
    one, two = (Database.named(roles.owner, application=name) for name in ("orders", "mailing"))
    shop = durable(pay)
    async with engine_of(one, shop, worker_id="w1"):
        await (await shop.put(Turn(pay, kwargs={"cents": 5}))).outcome()
    async with engine_of(two, worker_id="w2") as engine:
        seen = list_work(engine.client)

    async with Client(one) as client:
        mine = list_work(client)

    assert (len(seen), len(mine)) == (0, 1)
