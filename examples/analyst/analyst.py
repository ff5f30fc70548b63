"""An analyst: a program of a model queries 50,000 sales, adds them up with pandas, and draws a chart.

The model here follows a script; any model will do. The chart comes back in the transcript, as a picture for the model,
and in the console.

python examples/analyst/analyst.py [FOLDER]
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from toolcrib import ToolCall, Toolkit, Toolset, ez_tool
from toolcrib.code import ExecutionResult
from toolcrib.record import SqliteSink
from toolcrib.rounds import NeedsTools, Session
from toolcrib.sandbox import ProcessSandbox, SandboxLimits
from toolcrib.testing import ScriptedModel

ROWS = 50_000
REGIONS = {"north": 1.0, "south": 0.7, "east": 1.3, "west": 0.9}
TARGETS = b"region,target\nnorth,290000\nsouth,200000\neast,360000\nwest,250000\n"
PROGRAM = """
import pandas as pd
import matplotlib.pyplot as plt

sales = query("select day, region, product, amount from sales")
targets = pd.read_csv("targets.csv", index_col="region")
sales["month"] = pd.to_datetime(sales["day"]).dt.to_period("M")
by_month = sales.pivot_table(index="month", columns="region", values="amount", aggfunc="sum")
total = by_month.sum().to_frame("sold").join(targets)
print(len(sales), "sales")
print(total.round(0).to_string())

by_month.plot(title="Sales by region", ylabel="EUR", figsize=(7, 4))
plt.show()
total.to_csv("artifacts/regions.csv")
"""


def make_sales(path: Path) -> None:
    """Fill a database with sales of a year, the same each time."""
    drawn = random.Random(7)
    first = date(2026, 1, 1)
    rows = [
        (
            f"{first + timedelta(days=drawn.randrange(365))}",
            region := drawn.choice(list(REGIONS)),
            f"product {drawn.randrange(40)}",
            round(drawn.lognormvariate(3, 0.5) * REGIONS[region], 2),
        )
        for _ in range(ROWS)
    ]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table sales (day text, region text, product text, amount real)")
        database.executemany("insert into sales values (?, ?, ?, ?)", rows)


def query_tool(path: Path) -> Any:
    """Return a tool that reads the database and cannot write to it."""

    @ez_tool
    def query(sql: str) -> pd.DataFrame:
        """Return the rows of a SELECT on the table sales (day, region, product, amount)."""
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            return pd.DataFrame([dict(row) for row in database.execute(sql)])

    return query


async def analyse(folder: Path) -> tuple[list[Any], ExecutionResult]:
    """Answer a question about the sales; return the transcript, and the result of the program that was run."""
    results: list[ExecutionResult] = []
    with (
        SqliteSink(folder / "events.db") as sink,
        ProcessSandbox(packages=["pandas", "pyarrow", "matplotlib"]) as sandbox,
    ):
        toolkit = Toolkit(
            [query_tool(folder / "sales.db")], sandbox=sandbox, limits=SandboxLimits(memory=512 << 20), sinks=[sink]
        )
        run_python = ez_tool(toolkit.as_tool(files={"targets.csv": TARGETS}, on_result=results.append))
        model = ScriptedModel([ToolCall("run_python", {"code": PROGRAM}, "call_1")], "East is ahead, and on target.")
        session = Session(model, tools=Toolset([run_python]), format="anthropic")
        session.say("How do the regions sell? Show me a chart.")
        while isinstance(answer := await session.step(), NeedsTools):
            plan = await answer.round.apply_hooks()
            await plan.commit(session, await plan.run_pending())
    return list(session.transcript), results[-1]


def main() -> None:
    """Run it, and say what there is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "analyst")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "sales.db").exists():
        make_sales(folder / "sales.db")
    transcript, result = asyncio.run(analyse(folder))
    print(result.output)
    for artifact in result.artifacts:
        (folder / Path(artifact.name).name).write_bytes(artifact.data or b"")
        print(f"{folder / Path(artifact.name).name}: {artifact.mime_type}, {len(artifact.data or b'')} bytes")
    (folder / "transcript.json").write_text(json.dumps(transcript, indent=2))
    print(transcript[-1]["content"][0]["text"])
    print(f"see the program and its chart: toolcrib console --database {folder / 'events.db'}")


if __name__ == "__main__":
    main()
