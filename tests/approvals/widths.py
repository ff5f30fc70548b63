"""A shop whose calls people let run within bounds, and what the sentences that they were shown allow, said again."""

from __future__ import annotations

import asyncio
import json
import os
import posixpath
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from typing import Any
from urllib.parse import unquote, urlsplit

from hypothesis import strategies as st

from toolcrib import Pipeline, Run, RunContext, SqliteApprovalStore, Suspended, ToolCall, Toolset, tool
from toolcrib.approvals import GrantForm
from toolcrib.calls import Grant
from toolcrib.errors import ApprovalError

MINUTE = timedelta(minutes=1)  # that a call may take from its gate to its effect
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
VERSIONS = (("Pay.", "staging"), ("Pay.", "production"), ("Pay at once.", "staging"))
"""The definitions of the tool: what it says, and what is behind it."""

PLACES = [
    *("/srv/a", "/srv/a/x", "/srv/a/../b", "/srv/ab", "//srv/a", "srv/a"),
    *("https://x.example/v1/y", "https://x.example:443/v1", "https://x.example/v1/%2e%2e/z"),
    *("https://x.example.evil/v1/y", "http://x.example/v1/y", "https://x.example/v1x"),
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "account": st.sampled_from(["a", "a", "b", "c"]),
    "amount": st.sampled_from([2, 3, 5, 7, 0, -1]),
    "place": st.just("/srv/a/x") | st.sampled_from(PLACES),
    "edit": st.sampled_from(["", "", "", "", "double", "climb", "swap", "add", "drop"]),
    "parcel": st.fixed_dictionaries(
        {
            "weight": st.sampled_from([1, 1, 4, 9, -1]),
            "items": st.lists(
                st.fixed_dictionaries(
                    {"sku": st.sampled_from(["x", "y"]), "price": st.sampled_from([2, 2, 5, 8, -1])},
                    optional={"note": st.just("n")},
                ),
                max_size=3,
            ),
        }
    ),
}
PARCEL_BOUNDS = {
    "parcel": st.sampled_from(["", "", "", "", "any"]),
    "parcel.weight": st.sampled_from(["", "<= 5", "any"]),
    "parcel.items[*].price": st.sampled_from(["", "<= 5", "one of 2, 8", "any"]),
    "parcel.items[*].sku": st.sampled_from(["", '= "x"', "any"]),
}
ARGUMENTS = st.fixed_dictionaries(VALUES)
CHANGES = st.sampled_from([*VALUES]).flatmap(lambda name: st.fixed_dictionaries({name: VALUES[name]}))
CHOICES = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["any", "any", "", 'one of "a", "b"', '= "a"']),
        "amount": st.sampled_from(["any", "<= 5", "2..8", ">= 1", ""]),
        "place": st.sampled_from(["under /srv/a", "any", "under https://x.example/v1", ""]),
        "edit": st.sampled_from(["any", "any", ""]),
        **PARCEL_BOUNDS,
        "uses": st.sampled_from(["", "", "1", "2", "3"]),
        "total": st.sampled_from(["", "", "0", "6", "12"]),
        "hours": st.sampled_from(["", "1", "1", "5"]),
        "window": st.none() | st.tuples(st.integers(0, 3), st.integers(1, 9), st.sampled_from(["", "today", "others"])),
        "scope": st.sampled_from(["within", "within", "within", "tool", "arguments", "once", "other arguments"]),
    }
)
CALLS = st.tuples(ARGUMENTS, st.sampled_from(["ann", "ann", "ann", "ben"]), st.sampled_from([0, 0, 0, 1, 2]))


def edited(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as the shop's hook makes them."""
    changes: dict[str, dict[str, Any]] = {
        "": {},
        "double": {"amount": arguments["amount"] * 2},
        "climb": {"place": f"{arguments['place']}/../z"},
        "swap": {"account": {"a": "b", "b": "c", "c": "a"}[arguments["account"]]},
        "add": {"parcel": {**arguments["parcel"], "items": [*arguments["parcel"]["items"], {"sku": "z", "price": 3}]}},
        "drop": {"parcel": {**arguments["parcel"], "items": [{"sku": "x"}, *arguments["parcel"]["items"]]}},
    }
    return {**arguments, **changes[arguments["edit"]]}


@dataclass
class Sentence:
    """What a person was shown and said yes to, as they chose it."""

    principal: str
    version: int
    arguments: dict[str, Any]
    bounds: dict[str, str]
    call: str | None = None
    uses: int | None = None
    total: int | None = None
    until: datetime | None = None
    window: tuple[int, int, list[str]] | None = None
    since: int = 0
    revoked: int | None = None

    def covers(self, effect: dict[str, Any]) -> bool:
        """Return whether it covers an effect of the tool, but for how often and how much."""
        if (self.principal, self.version) != (effect["principal"], effect["version"]):
            return False
        if effect["tick"] < self.since or (self.revoked is not None and effect["tick"] > self.revoked):
            return False
        if self.call is not None and self.call != effect["call"]:
            return False
        done, at = effect["arguments"], datetime.fromisoformat(effect["at"])
        plain = done.keys() - {"parcel"}
        if not all(_allows(self.bounds.get(name, ""), self.arguments[name], done[name]) for name in plain):
            return False
        if not self._allows_parcel(done["parcel"]):
            return False
        return (self.until is None or at - MINUTE < self.until) and (self._is_open(at) or self._is_open(at - MINUTE))

    def _allows_parcel(self, done: dict[str, Any]) -> bool:
        asked, of_items = self.arguments["parcel"], "parcel.items[*]"
        if self.bounds.get("parcel", ""):
            return True
        if not _allows(self.bounds.get("parcel.weight", ""), asked["weight"], done["weight"]):
            return False
        if not any(typed for name, typed in self.bounds.items() if name.startswith(of_items)):
            return bool(done["items"] == asked["items"])
        names = [name for name in ("sku", "price", "note") if self.bounds.get(f"{of_items}.{name}", "") != "any"]
        if any(
            all(name in one for one in asked["items"]) and name not in item for item in done["items"] for name in names
        ):
            return False
        return all(
            any(
                name in one and _allows(self.bounds.get(f"{of_items}.{name}", ""), one[name], value)
                for one in asked["items"]
            )
            for item in done["items"]
            for name, value in item.items()
        )

    def _is_open(self, at: datetime) -> bool:
        if self.window is None:
            return True
        begin, length, days = self.window
        starts = [at.replace(hour=begin, minute=0, second=0, microsecond=0) - timedelta(days=late) for late in (0, 1)]
        return any(
            start <= at < start + timedelta(hours=length) and (not days or DAYS[start.weekday()] in days)
            for start in starts
        )


def _allows(typed: str, asked: Any, done: Any) -> bool:
    """Return whether what a person typed for an argument allows a value."""
    word, _, rest = typed.partition(" ")
    if typed in ("", "any"):
        return typed == "any" or done == asked
    if word in ("<=", ">="):
        return done <= int(rest) if word == "<=" else done >= int(rest)
    if word == "under":
        return _is_under(rest, done)
    if typed.startswith("one of "):
        return done in json.loads(f"[{typed[7:]}]")
    if word == "=":
        return done == json.loads(rest)
    low, high = typed.split("..")
    return int(low) <= done <= int(high)


def _is_under(place: str, done: str) -> bool:
    """Return whether a server, or a file system, finds a place at another one or below it."""
    if ("://" in place) != ("://" in done):
        return False
    one, other = urlsplit(place), urlsplit(done)
    if (one.scheme, one.hostname, one.port or 443) != (other.scheme, other.hostname, other.port or 443):
        return False
    base, found = one.path, posixpath.normpath(unquote(other.path))
    return found == base or found.startswith(f"{base}/")


def uncovered(effects: Sequence[dict[str, Any]], sentences: Sequence[Sentence]) -> bool:
    """Return whether some effects are covered by no sentences: each is of one, and none has more than it allows."""
    if not effects:
        return False
    first, rest = effects[0], effects[1:]
    for number, one in enumerate(sentences):
        amount = first["arguments"]["amount"]
        if not one.covers(first) or one.uses == 0 or (one.total is not None and not 0 <= amount <= one.total):
            continue
        left = {
            **vars(one),
            "uses": None if one.uses is None else one.uses - 1,
            "total": None if one.total is None else one.total - amount,
        }
        if not uncovered(rest, [*sentences[:number], Sentence(**left), *sentences[number + 1 :]]):
            return False
    return True


@dataclass
class Shop:
    """The calls over two stores of one SQLite file, what they did, and what people said yes to.

    Its clock goes ahead where the times in the file go back.
    """

    stores: Sequence[SqliteApprovalStore]
    effects: list[dict[str, Any]] = field(default_factory=list)
    sentences: list[Sentence] = field(default_factory=list)
    grants: list[Grant | None] = field(default_factory=list)
    pending: list[tuple[Suspended, str, int]] = field(default_factory=list)
    made: list[tuple[dict[str, Any], str, int]] = field(default_factory=list)
    ahead: timedelta = timedelta()
    tick: int = 0
    calls: int = 0
    is_new: bool = True

    def __post_init__(self) -> None:
        with self._file() as file:
            for table in ("requests", "standing", "toolcrib_grant_uses") if self.is_new else ():
                file.execute(f"DELETE FROM {table}")
        self.pipelines = [self._pipeline(number) for number in range(len(VERSIONS))]

    @contextmanager
    def _file(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.stores[0].path)) as file, file:
            yield file

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def _pipeline(self, version: int) -> Pipeline:
        says, behind = VERSIONS[version]

        @tool(requires_approval=True, description=says, register=False)
        async def pay(
            account: str, amount: int, place: str, edit: str, parcel: dict[str, Any], ctx: RunContext[str]
        ) -> str:
            self.tick += 1
            done = {"account": account, "amount": amount, "place": place, "edit": edit, "parcel": parcel}
            about = {"principal": ctx.deps, "version": version, "call": ctx.call_id, "tick": self.tick}
            self.effects.append({"arguments": done, "at": self.now().isoformat(), **about})
            await asyncio.sleep(0)
            return "paid"

        async def edit_arguments(ctx: Any, arguments: dict[str, Any], metadata: Any) -> dict[str, Any]:
            return edited(arguments)

        return Pipeline(Toolset([pay], pre_hooks={"pay": edit_arguments}).with_identity(behind))

    def run(self, principal: str, store: int) -> Run:
        return Run(principal=principal, deps=principal, approvals=self.stores[store % 2])

    # --- what happens

    async def call(self, calls: Sequence[tuple[dict[str, Any], str, int]]) -> None:
        """Make some calls at the same moment, over two stores of the file."""
        self.made += calls
        await asyncio.gather(*(self._call(*one, store=number) for number, one in enumerate(calls)))

    async def again(self, number: int, changes: Sequence[dict[str, Any]]) -> None:
        """Make calls like an earlier one at the same moment, each with an argument changed."""
        arguments, principal, version = self.made[number % len(self.made)]
        await self.call([({**arguments, **change}, principal, version) for change in changes])

    async def _call(self, arguments: dict[str, Any], principal: str, version: int, store: int) -> None:
        self.calls += 1
        call = ToolCall("pay", arguments, id=f"{os.getpid()}_{self.calls}")
        outcome = await self.pipelines[version].run(call, self.run(principal, store))
        if isinstance(outcome, Suspended):
            self.pending.append((outcome, principal, version))

    async def resume(self, number: int, version: int | None = None, grant: Grant | None = None) -> None:
        """Go on with a call that waits, with the tool as it is now."""
        outcome, principal, of = self.pending[number]
        version = of if version is None else version
        again = await self.pipelines[version].run(outcome, self.run(principal, number), grant=grant)
        if isinstance(again, Suspended):
            self.pending[number] = (again, principal, version)
        else:
            del self.pending[number]

    async def answer(self, number: int, choice: dict[str, Any], kept: bool) -> None:
        """Say yes to a call that waits, as a person chose it; where that does not cover the call, nothing happens.

        Args:
            kept: Whether the yes goes into the store, and the call waits on; else the call goes on by it at once.
        """
        outcome, principal, version = self.pending[number]
        request, now = outcome.request, self.now()
        sentence = Sentence(principal, version, dict(request.arguments), dict.fromkeys(request.arguments, ""))
        window = choice["window"] if choice["scope"] == "within" else None
        if choice["scope"] == "once":
            sentence.call, sentence.uses, grant = request.call_id, 1, request.grant("eve")
        elif choice["scope"] == "other arguments":
            others = {**request.arguments, "amount": 1}  # which the host's hook is given like a model's
            sentence.call, sentence.uses, sentence.arguments = request.call_id, 1, edited(others)
            grant = request.grant("eve", override_args=others)
        elif choice["scope"] != "within":
            sentence.bounds = dict.fromkeys(request.arguments, "any" if choice["scope"] == "tool" else "")
            grant = request.always("eve", scope=choice["scope"])
        else:
            sentence.bounds = {name: choice[name] for name in (*request.arguments, *PARCEL_BOUNDS)}
            sentence.uses, sentence.total = (int(choice[name]) if choice[name] else None for name in ("uses", "total"))
            sentence.until = now + timedelta(hours=int(choice["hours"])) if choice["hours"] else None
            times = ""
            if window is not None:
                early, length, days = window
                start = now - timedelta(hours=early)
                named = {"": [], "today": [DAYS[start.weekday()]], "others": [DAYS[(start.weekday() + 3) % 7]]}[days]
                sentence.window = (start.hour, length, named)
                times = _times(datetime.now(UTC) - timedelta(hours=early), length, named, self.ahead)
            limits = {"uses": choice["uses"], "total": choice["total"], "hours": choice["hours"], "times": times}
            try:
                grant = GrantForm(sentence.bounds, summed="amount", **limits).grant(request, "eve")
            except ValueError:
                return
        self.tick += 1
        sentence.since = self.tick
        if kept:
            try:
                await self.stores[0].answer(grant)
            except ApprovalError:  # it was answered before
                return
        self.sentences.append(sentence)
        self.grants.append(grant if grant.standing else None)
        if not kept:
            await self.resume(number, grant=grant)

    async def revoke(self, number: int) -> None:
        """Take a standing grant back."""
        if (grant := self.grants[number]) is None or self.sentences[number].revoked is not None:
            return
        for kept in await self.stores[0].standing():
            if kept.request_id == grant.request_id:
                await self.stores[0].revoke(kept)
        self.tick += 1
        self.sentences[number].revoked = self.tick

    def wait(self, hours: int) -> None:
        """Let hours pass: the times that the file has of grants are as much earlier."""
        self.ahead += timedelta(hours=hours)
        with self._file() as file:
            for table in ("requests", "standing"):
                rows = file.execute(f"SELECT number, answer FROM {table} WHERE answer IS NOT NULL").fetchall()
                for number, text in rows:
                    answer = json.dumps(_earlier(json.loads(text), hours))
                    file.execute(f"UPDATE {table} SET answer = ? WHERE number = ?", (answer, number))


def _times(start: datetime, length: int, days: list[str], ahead: timedelta) -> str:
    """Return the times of a window by the clock of this machine, which a shop's is ahead of."""
    late = (start + ahead).date() - start.date()
    shifted = [DAYS[(DAYS.index(day) - late.days) % 7] for day in days]
    return f"{','.join(shifted)} {start.hour:02}:00-{(start.hour + length) % 24:02}:00 UTC".strip()


def _earlier(grant: dict[str, Any], hours: int) -> dict[str, Any]:
    until, times = grant.get("expires_at"), grant.get("times")
    if until is not None:
        grant["expires_at"] = (datetime.fromisoformat(until) - timedelta(hours=hours)).isoformat()
    if times is not None:
        *days, span, zone = times.split()
        begin, end = (int(one[:2]) - hours for one in span.split("-"))
        named = [DAYS[(DAYS.index(day) + begin // 24) % 7] for day in ",".join(days).split(",") if day]
        grant["times"] = f"{','.join(named)} {begin % 24:02}:00-{end % 24:02}:00 {zone}".strip()
    return grant


_barrier: Barrier


def start(barrier: Barrier) -> None:
    """Have this process be one of those that begin at once."""
    global _barrier
    _barrier = barrier


def pay_in_process(path: str, calls: Sequence[tuple[dict[str, Any], str, int]]) -> list[dict[str, Any]]:
    """Make calls when the other process does, all at the same moment, and return what they did."""
    shop = Shop([SqliteApprovalStore(path)] * 2, is_new=False)
    _barrier.wait(60)
    asyncio.run(shop.call(calls))
    return shop.effects
