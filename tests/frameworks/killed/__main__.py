"""One step of one framework; see `desk`."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

from tests.frameworks.killed.desk import Desk


async def main(framework: str, step: str, folder: Path) -> None:
    """Take the step."""
    desk: Desk = import_module(f"tests.frameworks.killed.{framework}").Agent(folder, step)
    if step in ("named", "plain"):
        await desk.ask()
        await desk.approve("plain" if step == "plain" else "named")
    resumed = await desk.resume()
    print([request.id for request in resumed.asked if request.in_doubt])
    if step == "settle":
        assert resumed.answer is not None
        [request] = resumed.asked
        print((await resumed.answer(request.done("booked by hand", "bob"))).outputs)


asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
