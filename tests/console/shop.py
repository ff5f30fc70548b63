"""A shop: its tools, a program that uses them, and a past; what the console is shown with in a browser."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal

from toolcrib._run_sync import run_sync
from toolcrib.approvals import SqliteApprovalStore, deny_all, stored_approver
from toolcrib.calls import ToolCall
from toolcrib.code import ExecutionResult, Toolkit
from toolcrib.pipeline import Channel, Pipeline, Run
from toolcrib.record import SqliteSink
from toolcrib.tools import tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
PROGRAM = """\
numbers = ["A-1007", "A-1012"]
orders = [find_order(number=number) for number in numbers]

total = 0
for order in orders:
    print(order["customer"], order["paid"])
    total += order["paid"]

if total > 200:
    receipt = refund(order="A-1007", amount=129.5, note="The lamp arrived broken.")
    print(receipt)
"""


def shop() -> Toolset:
    @tool()
    async def find_order(number: str) -> dict[str, Any]:
        """Find an order."""
        return {"number": number, "customer": "Ada Lovelace" if number == "A-1007" else "Grace Hopper", "paid": 129.5}

    @tool(requires_approval=lambda args, ctx: f"{args['amount']:.2f} is more than 50.00, which needs a person")
    async def refund(order: str, amount: float, currency: Literal["EUR", "USD"] = "EUR", note: str = "") -> str:
        """Pay money back for an order."""
        return f"paid back {amount:.2f} {currency} for {order}"

    @tool()
    async def get_page(url: str) -> str:
        """Return the text of a page."""
        return HOSTILE

    async def at_most_100(ctx: Any, args: dict[str, Any], metadata: Any) -> dict[str, Any]:
        return {**args, "amount": min(args["amount"], 100.0)}

    return Toolset([find_order, refund, get_page], pre_hooks={"refund": at_most_100})


class Running:
    """A program that runs in a thread, as in a process of its own."""

    def __init__(self, toolset: Toolset, path: Path, sink: SqliteSink, code: str) -> None:
        self.result: ExecutionResult | None = None
        store = SqliteApprovalStore(path)
        scope = Run(approvals=store, approver=stored_approver(store), principal="ada@example.org")
        toolkit = Toolkit(toolset, sinks=[sink], sandbox="process")
        self._thread = threading.Thread(target=lambda: self._run(toolkit, code, scope), daemon=True)
        self._thread.start()

    def _run(self, toolkit: Toolkit, code: str, scope: Run) -> None:
        self.result = run_sync(toolkit.execute_async(code, scope))

    def end(self) -> ExecutionResult:
        """Return how it went, once it has ended."""
        self._thread.join(60)
        assert self.result is not None
        return self.result


def some_history(path: Path, tools: Toolset) -> None:
    """Let an agent and some calls have run before."""

    async def history() -> None:
        with SqliteSink(path) as sink:
            agent = Agent("support", "Answers questions", tools, sinks=[sink])
            for number in ("A-1001", "A-1002", "A-1003"):
                await agent.put(Turn(tools["find_order"].tool, kwargs={"number": number}))
            _ = [value async for _, value in agent.run()]
            for tool_name, arguments, whose in (
                ("get_page", {"url": "https://example.org/terms"}, "bob"),
                ("find_order", {"nummer": 7}, "bob"),
                ("refund", {"order": "A-1002", "amount": 70.0}, "carol"),
            ):
                scope = Run(sinks=(sink,), principal=whose, channel=Channel(entry="round"), approver=deny_all)
                await Pipeline(tools).run(ToolCall(tool_name, arguments), scope)

    thread = threading.Thread(target=lambda: run_sync(history()))
    thread.start()
    thread.join(60)
