"""Sample programs that run before the worker is sealed, so that the modules that Python loads late are loaded."""

from __future__ import annotations

import json
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence

from ._exchange import Exchange
from ._frames import Blob, Frame
from ._program import Interpreter

_TOOLS = {
    "echo": {"stream": False, "signature": "echo(value)"},
    "echo__fail": {"stream": False, "signature": "echo__fail(value)"},
    "many": {"stream": True, "signature": "many(value)"},
}
SMALL = ("print(echo(1))\n1",)
SAMPLES = (
    """
import sys
print(echo(1), echo.fail, file=sys.stderr)
parallel((echo, 1), (echo, 2))
list(many(1))
def f(): ...
f
""",
    """
import asyncio
async def main():
    await asyncio.sleep(0.01)
    async with asyncio.TaskGroup() as group:
        group.create_task(echo(1))
    async with asyncio.timeout(5):
        pass
    [value async for value in many(1)]
    return await asyncio.gather(echo(1), asyncio.wait_for(echo(2), 5), asyncio.to_thread(len, ""))
await main()
""",
    "import asyncio\nasyncio.run(asyncio.wait_for(asyncio.sleep(5), 0.01))",
    "{'a': 1}['b']",
    "echo.fail(1)",
    "{'a': 1}.a + nothing",
    "import nothing",
    "x = (",
    """
import datetime, decimal, json, random, re, statistics, string, time, uuid, zoneinfo, calendar, locale, logging
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    list(pool.map(len, ["a", "b"]))
time.sleep(0.01)
datetime.datetime.strptime("2026-01-02", "%Y-%m-%d").strftime("%A %B %x %c")
datetime.datetime.now(datetime.timezone.utc).astimezone().isoformat()
time.strptime("2026", "%Y")
try:
    datetime.datetime.now(zoneinfo.ZoneInfo("Europe/Berlin"))
except zoneinfo.ZoneInfoNotFoundError:
    pass
calendar.month(2026, 1)
"ß".encode("idna"), "a".encode("cp1252"), b"a".decode("utf-16", "replace"), "\\N{BULLET}"
json.loads(json.dumps({"a": [1.5, None]}, indent=2))
re.findall("(?i)é+", "é")
statistics.quantiles([1, 2, 3, 4]), statistics.NormalDist().cdf(1)
str(uuid.uuid1()), random.sample(range(9), 3), random.gauss(0, 1)
decimal.Decimal("1.5").quantize(decimal.Decimal("1")), f"{1234567.891:,.2f} {5:n}"
logging.warning("x")
logging.getLogger().handlers.clear()
""",
    """
import base64, collections, csv, dataclasses, difflib, enum, fractions, functools, gzip, hashlib, html.parser, inspect
import io, ipaddress, pprint, secrets, shlex, textwrap, traceback, typing, urllib.parse, warnings, zlib
import email.message, email.utils, string, tomllib, xml.etree.ElementTree as tree, pathlib, os, copy, bisect
hashlib.sha256(b"a").hexdigest(), hashlib.md5(b"a"), hashlib.blake2b(b"a"), hashlib.new("sha1", b"a")
gzip.decompress(gzip.compress(b"a")), zlib.crc32(b"a"), base64.b64encode(b"a"), secrets.token_hex(2)
tree.fromstring("<a><b c='1'/></a>").find("b"), tomllib.loads("a = 1"), pprint.pformat({"a": 1})
list(csv.DictReader(io.StringIO("a,b\\n1,2"))), email.utils.formatdate(0), urllib.parse.urlsplit("http://a/b?c=d")
@dataclasses.dataclass(order=True)
class Point:
    x: int = 1
    tags: list[str] = dataclasses.field(default_factory=list)
class Kind(enum.Enum):
    A = 1
typing.get_type_hints(Point), inspect.signature(Point), copy.deepcopy(Point()), collections.Counter("ab").most_common()
pathlib.PurePath("a") / "b", os.path.join("a", "b"), string.Template("$a").substitute(a=1), textwrap.dedent(" a")
list(difflib.unified_diff(["a"], ["b"])), fractions.Fraction("1/3"), ipaddress.ip_network("10.0.0.0/8")
warnings.warn("x")
try:
    raise ValueError("x") from KeyError("y")
except ValueError:
    traceback.print_exc()
    traceback.format_exc()
try:
    raise ExceptionGroup("x", [ValueError(1)])
except* ValueError as group:
    traceback.print_exception(group)
Point(), Kind.A
""",
)


class _SampleHost:
    """A host in the same process, which answers at once."""

    def __init__(self, readable: int) -> None:
        self.fd = readable
        self._replies: deque[Frame] = deque()
        self._ready: deque[Frame] = deque()
        self._begun: set[int] = set()

    def write(self, body: bytes, blobs: Sequence[Blob] = (), *, more: bool = False) -> None:
        frame: Frame = json.loads(body)
        kind, call = frame["t"], frame.get("id", 0)
        if kind == "call" and frame["name"] == "echo__fail":
            self._replies.append({"t": "ret", "id": call, "err": {"type": "ValueError", "message": "x"}})
        elif kind == "call" and frame["name"] == "echo":
            self._replies.append({"t": "ret", "id": call, "v": frame["args"][0]})
        elif kind == "next":
            over = call in self._begun
            self._begun.add(call)
            self._replies.append({"t": "ret", "id": call, "v": None} if over else {"t": "item", "id": call, "v": 1})
        if frame.get("wait") or kind == "wait":
            batch = list(self._replies) or [{"t": "wake"}]
            self._replies.clear()
            self._ready.extend({**reply, "more": reply is not batch[-1]} for reply in batch)

    def read(self) -> Frame:
        return self._ready.popleft()


def run_samples(install: Callable[[Exchange], None], programs: Sequence[str] = SAMPLES) -> list[Frame]:
    """Run sample programs and return their last frames; nothing of the programs is left.

    Args:
        install: Prepares this process for the programs of an exchange.
    """
    streams, main = (sys.stdin, sys.stdout, sys.stderr), sys.modules["__main__"]
    done: list[Frame] = []
    readable, other = socket.socketpair()
    other.send(b".")  # never read, so that no sample waits for long
    for code in programs:
        exchange = Exchange(_SampleHost(readable.fileno()))
        install(exchange)
        run: Frame = {
            "code": code,
            "name": "sample.py",
            "tools": _TOOLS,
            "seed": "",
            "clock": [],
            "value_size": 10_000,
            "files": [],
            "artifacts": [0, 0],
        }
        done.append(Interpreter(exchange).run(run))
        exchange.printed.flush()
    readable.close()
    other.close()
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.modules["__main__"] = main
    return done
