"""`make soak-gateway`: thousands of calls of many clients through one gateway, whose servers are disturbed meanwhile.

python -m tests.gateway.soak [--calls 10000] [--sessions 500] [--minutes 0] [--at-once 16] [--seed N]

Four servers are behind the gateway, over stdio and HTTP: they are killed, stopped for a while, and change their tools,
but for one. Clients of several principals reach it over HTTP and stdio, in both generations of the protocol; some leave
in the middle of a call. The work is done in phases. After each, what the gateway holds is measured: with nothing to
do, it must hold after the last what it held after the second. The servers' effects are lines of files, which are held
against what the clients were told. With `--minutes`, phases are added until the time is over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from tests.gateway.disturbances import Disturber, UpstreamOverHttp
from tests.gateway.measured import GatewayProcess, growth, process_named
from tests.networks import free_port
from toolcrib.approvals import SqliteApprovalStore

SERVER = Path(__file__).with_name("ledger_server.py")
PRINCIPALS = {f"user{n}": f"a-token-of-user-{n}-which-is-long-enough" for n in range(8)}
GENERATIONS = ("legacy", LATEST_MODERN_VERSION)
DISTURBED, CALM = ("north", "south", "web"), "calm"
_FIRST_PHASES, _STDIO_EACH = 5, 2  # the phases of a run without --minutes; sessions over stdio in each
# Seconds for the gateway to let go of what it does not need any more, and to have its servers again: the slower the
# machine, the more often each is killed in a phase, until a minute is between two tries to connect, which take 30 s.
_PATIENCE = 240.0


@dataclass(slots=True)
class Account:
    """What clients were told of the effects that they asked for.

    Attributes:
        done: Keys whose call succeeded.
        open: Keys whose effect is not known.
        not_done: Keys whose call did not run, as its client was told.
        said: How often each kind of answer came.
    """

    done: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    not_done: list[str] = field(default_factory=list[str])
    said: Counter[str] = field(default_factory=Counter[str])

    def note(self, key: str, result: Any) -> None:
        """Take down the answer to a call."""
        text = str(result.content)
        if not result.is_error:
            self.done.append(key)
            self.said["done"] += 1
        elif "unknown" in text or "did not finish" in text:  # its client was told so
            self.open.append(key)
            self.said["not known"] += 1
        else:
            self.not_done.append(key)
            self.said[f"not done: {text[text.find('text=') :][:60]}"] += 1

    def problems(self, ledger: Path) -> list[str]:
        """Return where the file of effects says something else."""
        written = Counter(ledger.read_text().split()) if ledger.exists() else Counter[str]()
        wrong = [f"{key} was answered, and written {written[key]} times" for key in self.done if written[key] != 1]
        wrong += [f"{key} did not run, and was written" for key in self.not_done if written[key]]
        wrong += [f"{key} was written {count} times" for key, count in written.items() if count > 1]
        known = {*self.done, *self.open, *self.not_done}
        return wrong + [f"{key} was written, and not asked for" for key in written if key not in known]


class Soak:
    """One run.

    Args:
        folder: An empty folder.
        calls: Calls in one phase.
        sessions: Sessions in one phase.
    """

    def __init__(self, folder: Path, calls: int, sessions: int, at_once: int, seed: int) -> None:
        self.folder, self.at_once, self.random = folder, at_once, random.Random(seed)
        self.calls, self.sessions = calls, sessions
        self.account, self.numbers = Account(), iter(range(10**9))
        self.ledger, self.file = folder / "ledger", folder / "mcp.json"
        self.store = SqliteApprovalStore(folder / "gateway.db")
        self.lost_calm: list[str] = []

    def write_file(self, port: int) -> None:
        """Write the file of servers."""
        command = {"command": sys.executable, "args": [str(SERVER), str(self.ledger)]}
        limits = {"timeout": 20.0, "connect_timeout": 30.0}
        servers = {
            "north": {**command, "toolcrib": {"approval": ["buy"], "pins": "pins.db"}},
            "south": {**command},
            CALM: {"command": sys.executable, "args": [*command["args"], CALM], "toolcrib": {"required": True}},
            "web": {"url": f"http://127.0.0.1:{port}/mcp"},
        }
        gateway = {
            "approvals": {"database": "gateway.db"},
            "record": True,
            "defaults": {"limits": limits, "pins": False},
        }
        self.file.write_text(json.dumps({"mcpServers": servers, "toolcrib": gateway}))

    async def phase(self, url: str, standing: Client) -> None:
        """Do one phase: sessions over HTTP side by side, some over stdio, and calls of one that stays."""
        each = max(1, self.calls // (self.sessions + 1))
        jobs = [self.session_over_http(url, each) for _ in range(self.sessions - _STDIO_EACH)]
        jobs += [self.session_over_stdio(each) for _ in range(_STDIO_EACH)]
        self.random.shuffle(jobs)
        limiter = asyncio.Semaphore(self.at_once)

        async def limited(job: Any) -> None:
            async with limiter:
                await job

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.calls_of(standing, each, may_leave=False))
            for job in jobs:
                tasks.create_task(limited(job))

    async def session_over_http(self, url: str, calls: int) -> None:
        """Open a session of any principal in any generation, make calls, and leave."""
        token = self.random.choice(list(PRINCIPALS.values()))
        leaves_word = self.random.random() < 0.9
        async with AsyncExitStack() as stack:
            headers = {"authorization": f"Bearer {token}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=120))
            place = streamable_http_client(url, http_client=http, terminate_on_close=leaves_word)
            client = Client(place, mode=self.random.choice(GENERATIONS), cache=None)
            await self.calls_of(await stack.enter_async_context(client), calls, may_leave=True)

    async def session_over_stdio(self, calls: int) -> None:
        """Start a gateway of its own as clients do, make calls, and end it."""
        async with AsyncExitStack() as stack:
            await self.calls_of(await self.over_stdio(stack), calls, may_leave=False)

    async def over_stdio(self, stack: AsyncExitStack, name: str = "client") -> Client:
        """Return a client of `toolcrib serve`, which runs until the stack is left."""
        words = ["-m", "toolcrib", "serve", str(self.file), "--name", name]
        log = stack.enter_context((self.folder / "log").open("a"))
        started = StdioServerParameters(command=sys.executable, args=words, cwd=self.folder)
        mode = self.random.choice(GENERATIONS)
        return await stack.enter_async_context(Client(stdio_client(started, errlog=log), mode=mode, cache=None))

    async def calls_of(self, client: Client, calls: int, *, may_leave: bool) -> None:
        """Make calls of a session; one in ten sessions ends in the middle of a call."""
        leaves = may_leave and self.random.random() < 0.1
        try:
            for _ in range(calls):
                await self.one_call(client)
            if leaves:
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await client.call_tool("calm_nap", {"seconds": 60})
        except MCPError as error:
            if not may_leave or str(error) != "Session not found":
                raise
            self.account.said["had been idle for too long"] += 1  # this machine was too busy

    async def one_call(self, client: Client) -> None:
        """Make one call of any kind."""
        chance = self.random.random()
        if chance < 0.25:
            await self.noted(client, CALM)
        elif chance < 0.85:
            await self.noted(client, self.random.choice(DISTURBED))
        elif chance < 0.90:
            await client.call_tool("calm_fail", {"word": "luck"})
            self.account.said["failed as it should"] += 1
        elif chance < 0.94:
            await client.list_tools()
            self.account.said["listed"] += 1
        elif chance < 0.97:
            with anyio.move_on_after(0.02):  # the client cancels the call
                await client.call_tool("south_nap", {"seconds": 60})
            self.account.said["cancelled"] += 1
        else:
            await self.bought(client)

    async def noted(self, client: Client, server: str) -> None:
        """Have a server write a line."""
        key = f"{server}-{next(self.numbers)}"
        try:
            result = await client.call_tool(f"{server}_note", {"key": key})
        except MCPError as error:
            (self.account.not_done if "there is no tool" in str(error) else self.account.open).append(key)
            self.account.said[f"an error of the protocol: {str(error)[:60]}"] += 1
            return
        self.account.note(key, result)
        if server == CALM and result.is_error:
            self.lost_calm.append(str(result.content))

    async def bought(self, client: Client) -> None:
        """Have a server write a line after a person has said yes."""
        key = f"bought-{next(self.numbers)}"
        held = await client.call_tool("north_buy", {"key": key})
        for entry in await self.store.list(pending=True):
            if entry.request.arguments.get("key") == key:
                await self.store.answer(entry.request.grant(by="ann"))
                held = await client.call_tool("north_buy", {"key": key})
        self.account.note(key, held)

    async def run(self, phases: int, until: float) -> list[str]:
        """Do all phases, and return what is wrong."""
        upstream = UpstreamOverHttp([sys.executable, str(SERVER), str(self.ledger)], free_port())
        self.write_file(upstream.port)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(upstream)
            gateway = await stack.enter_async_context(GatewayProcess(self.file, PRINCIPALS, self.folder))
            standing = await self.over_stdio(stack, "standing")
            await standing.list_tools()  # it runs: a client of the stateless generation begins before its server has
            own = process_named("standing")
            held: list[dict[str, Any]] = []
            done = 0
            while done < phases or time.monotonic() < until:
                disturber = Disturber(self.random, [gateway.pid, own], upstream, str(SERVER))
                async with disturber.working(standing):
                    await self.phase(gateway.url, standing)
                held.append(await gateway.settled(own, _PATIENCE))
                done += 1
                print(line_of(done, held[-1], self.account, disturber.done), flush=True)
            wrong = self.account.problems(self.ledger)
            wrong += [f"a call of a server that nothing happened to failed: {text}" for text in self.lost_calm]
            wrong += [f"{name} is {state}" for name, state in held[-1]["statuses"].items() if state != "up"]
            return wrong + growth(held)


def line_of(done: int, held: dict[str, Any], account: Account, disturbed: Counter[str]) -> str:
    """Return a line for the person who watches."""
    parts = [f"{name} {value}" for name, value in held.items() if isinstance(value, int)]
    return f"phase {done}: {', '.join(parts)}; {dict(disturbed)}; {sum(account.said.values())} calls"


def soaked(
    calls: int, sessions: int, *, phases: int = _FIRST_PHASES, minutes: float = 0, at_once: int = 16, seed: int
) -> list[str]:
    """Run it, say what came of it, and return what is wrong."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), calls // phases, sessions // phases, at_once, seed)
        wrong = asyncio.run(soak.run(phases, started + minutes * 60 if minutes else 0.0))
    account = soak.account
    print(f"{sum(account.said.values())} calls: {dict(account.said)}")
    print(f"took {time.monotonic() - started:.0f} s, seed {seed}")
    return wrong


def main() -> int:
    """Do what the command line asks for."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the clients leave in the middle of a reply
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.soak")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--phases", type=int, default=_FIRST_PHASES)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = parser.parse_args()
    wrong = soaked(
        given.calls,
        given.sessions,
        phases=given.phases,
        minutes=given.minutes,
        at_once=given.at_once,
        seed=given.seed,
    )
    for problem in wrong[:50]:
        print(f"WRONG: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
