"""Times a replay of 10,000 recorded calls, of a shop with a hook, approval and a policy: `make what-if`."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from toolcrib.calls import Ask, CallMetadata, Reject, RunNormally, Suspended, ToolCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import Pipeline, Run
from toolcrib.provenance import Provenance, Rule
from toolcrib.record import EventLog, SqliteSink
from toolcrib.replay import replay
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

_RUNS, _ROUNDS = 250, 8  # of five calls each
_POLICY = Provenance()
_STRICT = Provenance(rules=(Rule(untrusted="deny"),))


def shop(limit: int = 500, *, notes: bool = False) -> Toolset:
    """Return the tools: one reads text of others, one sends, one spends."""

    @ez_tool(effect="fetch", source="untrusted")
    def read_order(number: int) -> dict[str, Any]:
        return {"number": number, "mail": f"customer{number}@shop.example", "note": "please hurry " * 20}

    @ez_tool(effect="send", content=["text"])
    def send_mail(to: str, text: str) -> str:
        return "sent"

    def pay_back(number: int, amount: int) -> str:
        return f"paid {amount} for {number}"

    def pay_back_with_note(number: int, amount: int, note: str) -> str:
        return f"paid {amount} for {number}"

    function: Any = pay_back_with_note if notes else pay_back
    refund = ez_tool(function, name="refund", effect="write")
    hooks = HookSet()

    async def limits(call: CallMetadata, given: Any) -> Any:
        if given.amount > limit:
            return Reject("too much")
        return Ask("a large amount") if given.amount > limit // 2 else RunNormally(given)

    hooks.on("refund")(limits)
    return Toolset([read_order, send_mail, refund]).with_hooks(hooks)


async def record(path: Path) -> EventLog:
    """Make the calls once, and return what was recorded."""
    with SqliteSink(path) as sink:
        pipeline = Pipeline(shop(), sinks=[sink])
        for number in range(_RUNS):
            run = Run(f"run_{number}", principal=f"user {number % 7}", features=[_POLICY])
            run.add_user_message(f"look after the orders from {number} on, and refund 10 to 900 where it is due")
            for order in range(number, number + _ROUNDS):
                amount = (order * 37) % 700 + 10
                for tool, given in (
                    ("read_order", {"number": order}),
                    ("send_mail", {"to": f"customer{order}@shop.example", "text": "It is on its way."}),
                    ("refund", {"number": order, "amount": amount}),
                    ("refund", {"number": order, "amount": "much"}),
                    ("send_mail", {"to": "ann@home.example", "text": "Done."}),
                ):
                    outcome = await pipeline.run(ToolCall(tool, given), run)
                    if isinstance(outcome, Suspended) and order % 2:
                        await pipeline.run(outcome, run, grant=outcome.request.grant("carol"))
        return sink.log()


async def main() -> None:
    """Print how long each replay took, and what it found."""
    with tempfile.TemporaryDirectory() as folder:
        log = await record(Path(folder) / "toolcrib.db")
        for name, tools, policy in (
            ("nothing changed", shop(), _POLICY),
            ("a lower limit", shop(100), _POLICY),
            ("another schema", shop(notes=True), _POLICY),
            ("a stricter policy", shop(), _STRICT),
            ("no policy given", shop(), None),
        ):
            began, worked = time.perf_counter(), time.process_time()
            found = await replay(log, tools, provenance=policy)
            took, worked = time.perf_counter() - began, time.process_time() - worked
            print(
                f"{name:<18} {found.calls:,} calls of {found.runs} runs in {took:.2f} s ({worked:.2f} s of CPU): "
                f"{len(found.differences):,} would differ, {len(found.untold):,} cannot be told"
            )


if __name__ == "__main__":
    asyncio.run(main())
