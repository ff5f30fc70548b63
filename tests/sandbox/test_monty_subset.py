from __future__ import annotations

import sys

import pytest
from pydantic_monty import Monty, MontyRuntimeError

from toolcrib.errors import CodeError
from toolcrib.sandbox import Program
from toolcrib.sandbox._monty_subset import MODULES, monty_source

TOOLS = ("get", "orders", "orders__lines", "orders__lines__notes")

REFUSED = [
    ("def f():\n    yield 1", 2, "collect the values in a list"),
    ("def f():\n    yield from x", 2, "collect the values in a list"),
    ("class Late(Exception): pass", 1, "raise a builtin exception such as ValueError"),
    ("class A(Base): pass", 1, "a plain class, a dataclass or a dict"),
    ("class A(metaclass=M): pass", 1, "cannot inherit"),
    ("class A:\n    @property\n    def x(self): return 1", 1, "`A.x` cannot be decorated"),
    ("del d['a']", 1, "d.pop(key)"),
    ("async def f():\n    async with x: pass", 2, "asyncio.gather"),
    ("async def f():\n    async for i in x: pass", 2, "use a plain `for`"),
    ("async def f():\n    return [i async for i in x]", 2, "use a plain `for`"),
    ("try: pass\nexcept* ValueError: pass", 1, "write `except`"),
    ("raise ValueError('a', 2)", 1, "an exception takes one text"),
    ("list(map(get, x))", 1, "[get(x) for x in items]"),
    ("list(map(lambda i: get(i)['a'], x))", 1, "[get(x) for x in items]"),
    ("def one(i):\n    return get(i)\nlist(map(one, x))", 3, "cannot call the tool `get`"),
    ("list(filter(orders.lines, x))", 1, "[x for x in items if orders__lines(x)]"),
    ("sorted(x, key=get)", 1, "key=lambda pair: pair[0]"),
    ("x.sort(key=lambda i: get(i))", 1, "`key=` cannot call the tool `get`"),
    ("max(x, key=get)", 1, "`key=` cannot call the tool `get`"),
    ("import asyncio\nasyncio.create_task(get(1))", 2, "await asyncio.gather(tool(a), tool(b))"),
    ("import asyncio\nawait asyncio.wait_for(get(1), 2)", 2, "deadlines of their own"),
    ("import asyncio\nasyncio.Semaphore(2)", 2, "nor needed"),
    ("import asyncio\nasyncio.Queue()", 2, "gather, run and sleep"),
    ("import asyncio\nawait asyncio.gather(get(1), return_exceptions=True)", 2, "takes no keywords"),
    ("async def main(): pass\nmain()", 2, "write `await main(...)`"),
    ("import numpy", 1, "`numpy` cannot be imported"),
    ("from urllib.parse import quote", 1, "`urllib.parse` cannot be imported"),
    ("import collections.abc", 1, "`collections.abc` cannot be imported"),
    ("from . import x", 1, "`.` cannot be imported"),
    ("from math import *", 1, "name what you import"),
]
TAKEN = [
    "import math, os.path\nfrom json import dumps",
    "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
    "try:\n    import numpy\nexcept (ValueError, ModuleNotFoundError):\n    pass",
    "try:\n    import numpy\nexcept:\n    pass",
    "list(map(str, x))",
    "sorted(x, key=lambda i: i['a'])",
    "def get(i): return i\nlist(map(get, x))",
    "class A:\n    async def get(self): pass\nget(1)",
    "class A: pass",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int",
    "def f[T](x: T) -> T: return x" if sys.version_info >= (3, 12) else "def f(x): return x",
]
MENDED = [
    ("orders.lines(1)", "orders__lines(1)"),
    ("x = [orders.lines(i)['é'] for i in y]", "x = [orders__lines(i)['é'] for i in y]"),
    ("orders.lines.notes(orders.lines(1))", "orders__lines__notes(orders__lines(1))"),
    ("orders = []\norders.lines(1)", "orders = []\norders.lines(1)"),
    ("x.orders.lines(1)", "x.orders.lines(1)"),
    ("from __future__ import annotations\nx", "pass\nx"),
    ("from __future__ import (\n    annotations,\n)\nx", "pass\n\n\nx"),
    ("next((i for i in x if i), None)", "next(iter([i for i in x if i]), None)"),
    ("next(i for i in x)", "next(iter([i for i in x]))"),
    ("raise ValueError(e)", "raise ValueError(str(e))"),
    ("raise ValueError(orders.lines(1))", "raise ValueError(str(orders__lines(1)))"),
    ("raise ValueError('text')", "raise ValueError('text')"),
    ("raise ValueError(f'{x}')", "raise ValueError(f'{x}')"),
    ("try: pass\nexcept ConnectionError: pass", "try: pass\nexcept OSError: pass"),
    (
        "import asyncio\ntry: pass\nexcept asyncio.TimeoutError: pass",
        "import asyncio\ntry: pass\nexcept TimeoutError: pass",
    ),
]


@pytest.mark.parametrize(("code", "line", "mend"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_what_is_not_there_is_said_with_the_way_to_write_it(code: str, line: int, mend: str) -> None:
    with pytest.raises(CodeError) as raised:
        monty_source(Program(code, TOOLS))

    assert raised.value.line == line
    assert mend in raised.value.problem


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older versions cannot parse it")
def test_type_aliases_are_refused() -> None:
    with pytest.raises(CodeError, match="leave the alias out"):
        monty_source(Program("type X = int", TOOLS))


@pytest.mark.parametrize("code", TAKEN)
def test_what_is_there_passes_unchanged(code: str) -> None:
    assert monty_source(Program(code, TOOLS)).code == code


@pytest.mark.parametrize(("code", "made"), MENDED)
def test_small_differences_are_mended(code: str, made: str) -> None:
    assert monty_source(Program(code, TOOLS)).code == made


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(CodeError) as raised:
        monty_source(Program("import numpy\ndel x\nimport pandas, math", TOOLS))

    first, second, third, listed = raised.value.problem.splitlines()
    assert (first, second) == (
        "`numpy` cannot be imported",
        "line 2: `del` is not supported here: for an item write `d.pop(key)`, for a name assign None",
    )
    assert third == "line 3: `pandas` cannot be imported"
    assert listed.startswith("A program can import asyncio, base64,")
    assert raised.value.kind == "ImportError"


def test_spans_of_awaited_calls_are_those_of_the_mended_code() -> None:
    checked = monty_source(Program("x = 'é'\nawait orders.lines(1)", TOOLS))

    (span,) = checked.awaited
    assert checked.code.encode()[span[0] : span[1]] == b"orders__lines(1)"


def test_the_listed_modules_are_those_that_monty_has() -> None:
    found: set[str] = set()
    with Monty() as pool, pool.checkout() as session:
        for name in {*sys.stdlib_module_names, "os.path", "collections.abc", "urllib.parse"}:
            try:
                session.feed_run(f"import {name}")
            except MontyRuntimeError:
                continue
            found.add(name)

    assert found == MODULES
