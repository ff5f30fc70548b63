"""What a turn costs as the database grows: with so many turns that are done, suspended, waiting or recorded in it.

`python -m tests.durable.growth` draws docs/pictures/growth.svg.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from tests.durable.crowd import server_cost
from tests.durable.scale_worker import work
from tests.postgres import Postgres, running
from toolcrib.adapters.dbos import Client, DurableAgent, Engine, Queue
from toolcrib.registry import registry_scope
from toolcrib.tools import tool
from toolcrib.turns import Agent, Turn

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "growth.svg"
KINDS = ("done", "suspended", "waiting", "recorded")
_TURNS = 200  # of which the cost is measured
_COLORS = dict(zip(KINDS, ("#0f766e", "#b45309", "#4338ca", "#be123c"), strict=True))


@tool(register=False, requires_approval=True)
async def pay(n: int) -> int:
    """Pay."""
    return n


async def cost(server: Postgres, kind: str, number: int) -> float:
    """Return the milliseconds of the server's processor for a turn, beside so many turns of a kind."""
    name = f"growth_{uuid4().hex[:8]}"
    url = server.url(name)
    with registry_scope():
        agent = DurableAgent(Agent("grown", "Works.", [work, pay]), Queue("grown", polling=0.1))
        await _add(server, name, agent, kind, number)
        async with Engine(url, worker_id="grown", queues=[agent.queue], record=kind == "recorded") as engine:
            await asyncio.sleep(3)
            before = server_cost(server)[0]
            handles = [await agent.put(Turn(work, kwargs={"n": n, "wait": 0.0})) for n in range(_TURNS)]
            for handle in handles:
                await engine.client.result(handle.id)
            return (server_cost(server)[0] - before) / _TURNS * 1000


async def _add(server: Postgres, name: str, agent: DurableAgent, kind: str, number: int) -> None:
    """Have a worker bring one turn into a state, and copy its rows."""
    url = server.url(name)
    turn = Turn(pay, kwargs={"n": 1}) if kind == "suspended" else Turn(work, kwargs={"n": 1, "wait": 0.0})
    ids = [turn.id]
    if kind == "waiting":
        async with Client(url) as client:
            agent._client = client
            await agent.put(turn)
            agent._client = None
    else:
        async with Engine(url, worker_id="first", queues=[agent.queue], record=kind == "recorded") as engine:
            await (await agent.put(turn)).outcome()
            ids += [entry.request.id for entry in await engine.client.approvals.list(pending=True)]
    if number:
        _copy(server, name, ids, number)


def _copy(server: Postgres, name: str, ids: Sequence[str], number: int) -> None:
    """Copy each row that names an id, as often as asked, under ids and numbers of its own."""
    with server.connect(name) as connection:
        columns = connection.execute(
            """SELECT table_schema || '.' || table_name, column_name, data_type, is_generated
            FROM information_schema.columns WHERE table_schema IN ('dbos', 'public') ORDER BY ordinal_position"""
        ).fetchall()
        tables: dict[str, dict[str, str]] = {}
        for table, column, data_type, generated in columns:
            if generated == "NEVER":
                tables.setdefault(table, {})[column] = data_type
        for table, types in sorted(tables.items(), key=lambda item: item[0] != "dbos.workflow_status"):
            texts = [f'"{column}"' for column, data_type in types.items() if data_type == "text"]
            if texts:
                named = " OR ".join(f"{text} LIKE '%{id}%'" for text in texts for id in ids)
                names = ", ".join(f'"{column}"' for column in types)
                values = ", ".join(_value(column, data_type, ids) for column, data_type in types.items())
                rows = f"SELECT {values} FROM {table}, generate_series(1, {number}) g WHERE {named}"
                connection.execute(f"INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE {rows}")
        connection.execute("UPDATE dbos.workflow_status SET queue_name = 'elsewhere' WHERE status = 'ENQUEUED'")
        connection.execute("VACUUM ANALYZE")


def _value(column: str, data_type: str, ids: Sequence[str]) -> str:
    name = f'"{column}"'
    if column == "number" or column.endswith("position"):
        return f"{name} + 1000 * g"
    if data_type == "text":
        for id in ids:
            name = f"replace({name}, '{id}', '{id}-' || g)"
    return name


def drawn(found: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Return the picture: a line for each kind, over the number of its turns."""
    most = max(value for points in found.values() for _, value in points) * 1.15
    sizes = [size for size, _ in found[KINDS[0]]]
    at = {size: 70 + 600 * index / (len(sizes) - 1) for index, size in enumerate(sizes)}
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 350" role="img" font-family="system-ui, sans-serif"'
        ' font-size="14">',
        "<title>What a turn costs beside turns that are there</title>",
        '<rect width="860" height="350" rx="10" fill="#fbfdfd"/>',
        '<text x="20" y="26" fill="#1b2a2f">ms of the server\'s processor for a turn</text>',
        '<path d="M70 40V300H720" fill="none" stroke="#7b8f96"/>',
    ]
    lines += [
        f'<text x="{x:.0f}" y="322" text-anchor="middle" fill="#1b2a2f">{size:,}</text>' for size, x in at.items()
    ]
    step = max(1, round(most / 5))
    lines += [
        f'<text x="60" y="{_height(mark, most) + 5:.0f}" text-anchor="end" fill="#1b2a2f">{mark}</text>'
        for mark in range(0, int(most) + 1, step)
    ]
    lines.append('<text x="395" y="342" text-anchor="middle" fill="#1b2a2f">turns in the database</text>')
    for index, (kind, points) in enumerate(found.items()):
        path = " ".join(f"{at[size]:.0f},{_height(value, most):.0f}" for size, value in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{_COLORS[kind]}" stroke-width="2.5"/>')
        lines.append(f'<text x="740" y="{80 + 26 * index}" fill="{_COLORS[kind]}" font-weight="600">{kind}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _height(value: float, most: float) -> float:
    return 300 - 250 * value / most


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--most", type=int, default=100_000, help="turns that are there in the last round")
    given = parser.parse_args()
    sizes = [0, given.most // 100, given.most // 10, given.most]
    found: dict[str, list[tuple[int, float]]] = {}
    with running(fsync="on", synchronous_commit="on") as server:
        for kind in KINDS:
            for size in sizes:
                found.setdefault(kind, []).append((size, asyncio.run(cost(server, kind, size))))
                print(f"{kind:<10} {size:>7} {found[kind][-1][1]:5.1f} ms", flush=True)
    PICTURE.write_text(drawn(found), encoding="utf-8")


if __name__ == "__main__":
    main()
