"""A support desk: the official client of OpenAI or Anthropic answers customers, and a refund waits for a person.

python examples/support/desk.py ask "The lamp of order 1001 came broken." --client anthropic
python examples/support/desk.py pending
python examples/support/desk.py answer yes
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any, TypedDict

from anthropic import Anthropic
from openai import OpenAI

from toolcrib import ModelRetry, Run, Session, Toolset, tool
from toolcrib.provenance import Provenance
from toolcrib.rounds import SessionResult, Stopped, Waiting
from toolcrib.rounds import WireFormat as Format

MODELS: dict[Format, str] = {"openai": "gpt-5", "anthropic": "claude-opus-5"}
KEYS: dict[Format, str] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
SYSTEM = "You help the customers of a lamp shop. Refund what came broken, and say what you did."


class Order(TypedDict):
    number: str
    customer: str
    total: float
    state: str


ORDERS = {
    "1001": Order(number="1001", customer="ann@example.org", total=129.0, state="delivered"),
    "1002": Order(number="1002", customer="bob@example.org", total=15.5, state="on its way"),
}


def order_of(number: str) -> Order:
    """Return an order; where there is none, the error says to the model how to go on."""
    if number not in ORDERS:
        raise ModelRetry(f"there is no order {number}; ask the customer for its number")
    return ORDERS[number]


@tool(effect="none", source="trusted")
async def find_order(number: str) -> Order:
    """Look up an order by its number of four digits."""
    return order_of(number)


@tool(effect="spend", requires_approval=True)
async def refund(number: str, amount: float) -> str:
    """Pay money back for an order, in euros."""
    order = order_of(number)
    if not 0 < amount <= order["total"]:
        raise ModelRetry(f"the order was {order['total']} euros: refund more than 0, and no more than that")
    return f"{amount} euros go back to {order['customer']}"


tools = Toolset([find_order, refund])


def client_of(name: Format) -> Any:
    """Return the provider's own client; its key, and another address if you like, are in the environment."""
    if KEYS[name] not in os.environ:
        raise SystemExit(f"Set {KEYS[name]}, or start examples/support/stand_in.py and export what it prints.")
    return Anthropic(max_retries=0) if name == "anthropic" else OpenAI(max_retries=0)


def show(session: Session, made: SessionResult[Any], saved: Path) -> None:
    """Print the answer; or keep the session until a person has answered."""
    if isinstance(made, Waiting):
        saved.write_text(session.to_json(), "utf-8")
        for call in made.suspended:
            print(call.request.text())
        print("It waits for the desk.")
        return
    saved.unlink(missing_ok=True)
    print(f"The reply ended: {made.reason}" if isinstance(made, Stopped) else made.result)
    used = session.usage
    print(f"({used.requests} requests, {used.input_tokens} tokens read, {used.output_tokens} written)")


def ask(question: str, name: Format, saved: Path) -> None:
    """Begin a session with what a customer says."""
    run = Run(principal="support", features=[Provenance()])
    session = Session(client_of(name), model_name=MODELS[name], system=SYSTEM, tools=tools, run=run)
    show(session, session.say(question).run_sync(), saved)


async def answer(text: str, said: str, name: Format, saved: Path) -> None:
    """Go on with the session that waits, also in another process."""
    run = Run(principal="support", features=[Provenance()])
    session = await Session.from_json(client_of(name), text, model_name=MODELS[name], run=run, tools=tools)
    waiting = await session.run()
    assert isinstance(waiting, Waiting)
    requests = [call.request for call in waiting.suspended]
    grants = [request.grant(by="desk") for request in requests] if said == "yes" else []
    denials = [] if grants else [request.deny(message=said, by="desk") for request in requests]
    await waiting.resolve(grants, denials)
    show(session, await session.run(), saved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["ask", "pending", "answer"])
    parser.add_argument("text", nargs="?", default="", help="the customer's question; or yes, or why not")
    parser.add_argument("--client", choices=list(MODELS), default="openai")
    parser.add_argument("--saved", type=Path, default=Path("support-session.json"))
    given = parser.parse_args()
    if given.command == "ask":
        ask(given.text, given.client, given.saved)
    elif not given.saved.exists():
        print("Nothing waits.")
    elif given.command == "pending":
        print(f"A session waits in {given.saved}.")
    else:
        asyncio.run(answer(given.saved.read_text("utf-8"), given.text, given.client, given.saved))


if __name__ == "__main__":
    main()
