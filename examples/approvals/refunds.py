"""Refunds that wait for a person: the calls in one process, the answers in another, a file between them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from toolcrib import (
    ApprovalRequest,
    Denial,
    Grant,
    Outcome,
    Pipeline,
    Run,
    RunContext,
    SqliteApprovalStore,
    Suspended,
    ToolCall,
    Toolset,
    tool,
)
from toolcrib.calls import outcome_from_dict
from toolcrib.record import JsonLinesSink

PAID = {7: 1999, 8: 4500, 9: 300}  # cents, by order


def when_large(args: dict[str, Any], ctx: RunContext) -> str | bool:
    return f"{args['cents'] / 100:.2f} is more than 10.00" if args["cents"] > 1000 else False


@tool(requires_approval=when_large)
async def refund(order: int, cents: int) -> str:
    """Give money back."""
    return f"refunded {cents / 100:.2f} on order {order}"


async def cap_at_paid(ctx: RunContext, args: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    return {**args, "cents": min(args["cents"], PAID.get(args["order"], 0))}


PIPELINE = Pipeline(Toolset([refund], pre_hooks={"refund": cap_at_paid}))
CALLS = [
    ToolCall("refund", '{"order": 9, "cents": 300}', id="call_1"),
    ToolCall("refund", '{"order": 7, "cents": 5000}', id="call_2"),
    ToolCall("refund", '{"order": 8, "cents": 4500}', id="call_3"),
]


async def work(state: Path, store: SqliteApprovalStore) -> None:
    """Make the calls, or go on with the suspended ones."""
    kept = state / "suspended.json"  # holds the real arguments: it belongs where secrets are kept
    todo: list[Any] = [outcome_from_dict(one) for one in json.loads(kept.read_text())] if kept.exists() else CALLS
    suspended: list[Suspended] = []
    with JsonLinesSink(state / "calls.jsonl") as sink:
        run = Run(approvals=store, sinks=(sink,))
        for call in todo:
            outcome: Outcome = await PIPELINE.run(call, run)
            print(outcome.text())
            if isinstance(outcome, Suspended):
                suspended.append(outcome)
    kept.write_text(json.dumps([one.to_dict() for one in suspended]))
    print(f"{len(suspended)} suspended: answer at the desk" if suspended else "nothing is pending")


async def desk(store: SqliteApprovalStore) -> None:
    """Ask the person at the terminal about each pending request."""
    for entry in await store.list(pending=True):
        print(f"\n{entry.request.text()}")
        line = await asyncio.to_thread(input, "[y]es, [n]o, [a]lways, or cents: ")
        answer = answer_of(entry.request, line.strip())
        if answer is not None:
            await store.answer(answer)


def answer_of(request: ApprovalRequest, line: str) -> Grant | Denial | None:
    word, _, rest = line.partition(" ")
    who = os.environ.get("USER", "approver")
    if word.isdigit():
        return request.grant(who, override_args={**request.arguments, "cents": int(word)})
    match word.lower():
        case "y":
            return request.grant(who, message=rest)
        case "n":
            return request.deny(message=rest, by=who)
        case "a":
            return request.always(who, message=rest)
        case _:
            return None


async def history(store: SqliteApprovalStore) -> None:
    for entry in await store.list():
        answer, said = entry.answer, "no answer"
        if answer is not None:
            said = f"{'yes' if isinstance(answer, Grant) else 'no'} from {answer.by}"
            said += f": {answer.message}" if answer.message else ""
        print(f"{entry.request.call_id} {dict(entry.request.arguments)} - {said} ({entry.state})")


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in ("work", "desk", "history"):
        sys.exit("usage: refunds.py work | desk | history [FOLDER]")
    state = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "state"
    state.mkdir(exist_ok=True)
    store = SqliteApprovalStore(state / "approvals.db")
    what = {"work": lambda: work(state, store), "desk": lambda: desk(store), "history": lambda: history(store)}
    asyncio.run(what[sys.argv[1]]())


if __name__ == "__main__":
    main()
