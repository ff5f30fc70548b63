"""An online shop's back office as tools: each of the ways to make one, on one SQLite file.

toolcrib list examples/shop/tools.py
toolcrib call examples/shop/tools.py track '{"order_id": 1002}'
toolcrib exec examples/shop/tools.py examples/shop/program.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal, TypedDict

from database import open_shop, rows

from toolcrib import BaseTool, ModelRetry, RunContext, Toolset, ez_tool, tool


class Order(TypedDict):
    id: int
    customer: str
    email: str
    status: str
    placed: str


class Line(TypedDict):
    sku: str
    title: str
    quantity: int
    price: float


class Scan(TypedDict):
    at: str
    place: str
    event: str


# An async function.
@tool
async def orders(status: Literal["late", "delivered"]) -> list[Order]:
    """Find the orders with a status.

    Args:
        status: Where they stand.
    """
    return rows("SELECT * FROM orders WHERE status = ? ORDER BY id", status)


# A tool under a tool: models see `orders__lines`, programs may also write `orders.lines(1002)`.
@orders.subtool()
async def lines(order_id: int) -> list[Line]:
    """List what was ordered, with the price of one piece."""
    query = "SELECT sku, title, quantity, price FROM lines JOIN products USING (sku) WHERE order_id = ?"
    return rows(query, order_id)


# A plain sync function: a model's call runs it in a worker thread.
@ez_tool
def stock(sku: str) -> int:
    """Tell how many pieces are in stock."""
    found = rows("SELECT stock FROM products WHERE sku = ?", sku)
    if not found:
        known = ", ".join(row["sku"] for row in rows("SELECT sku FROM products ORDER BY sku"))
        raise ModelRetry(f"there is no product {sku!r}; there are: {known}")
    return int(found[0]["stock"])


# A stream: `toolcrib call` prints each value as it comes, a program gets the list of them.
@tool
async def track(order_id: int) -> AsyncIterator[Scan]:
    """Follow a parcel from scan to scan."""
    for row in rows("SELECT at, place, event FROM scans WHERE order_id = ? ORDER BY at", order_id):
        await asyncio.sleep(0.1)  # the carrier is slow
        yield row


# One at a time for each product: between looking and taking, no other call may take.
@tool(lock=lambda arguments: arguments["sku"])
async def reserve(order_id: int, sku: str, quantity: int = 1) -> int:
    """Reserve pieces for a replacement and return how many are left."""
    left = stock(sku) - quantity
    if left < 0:
        raise ModelRetry(f"only {left + quantity} of {sku!r} are left")
    await asyncio.sleep(0.05)  # the warehouse answers
    with open_shop() as db:
        db.execute("UPDATE products SET stock = ? WHERE sku = ?", (left, sku))
        db.execute("INSERT INTO reservations VALUES (?, ?, ?)", (order_id, sku, quantity))
    return left


def is_large(arguments: dict[str, Any], ctx: RunContext) -> str | bool:
    """A reason to ask a person, or False."""
    return "refunds over 50.00 need a yes" if arguments["amount"] > 50 else False


# Whether a person is asked depends on the arguments.
@tool(requires_approval=is_large, timeout=5)
async def refund(order_id: int, amount: float, reason: str) -> str:
    """Pay an order back, wholly or in part.

    Args:
        order_id: The order.
        amount: How much, in euros.
        reason: What the customer will read on the statement.
    """
    paid = sum(line["quantity"] * line["price"] for line in await lines(order_id))
    back = rows("SELECT coalesce(sum(amount), 0) AS total FROM refunds WHERE order_id = ?", order_id)[0]["total"]
    if amount > paid - back:
        raise ModelRetry(f"order {order_id} was {paid:.2f} and {back:.2f} of it is paid back already")
    with open_shop() as db:
        db.execute("INSERT INTO refunds VALUES (?, ?, ?)", (order_id, amount, reason))
    return f"{amount:.2f} paid back"


class WriteLetter(BaseTool):
    """Write to a customer; the letters of a day are numbered."""

    def __init__(self) -> None:
        self.outbox: list[str] = []

    async def call(self, ctx: RunContext, email: str, text: str) -> str:
        self.outbox.append(f"{email}: {text}")
        return f"letter {len(self.outbox)} to {email}"


shop = Toolset([orders, stock, track, reserve, refund, WriteLetter()], toolset_id="shop")
