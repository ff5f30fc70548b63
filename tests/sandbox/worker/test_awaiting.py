from __future__ import annotations

import ast

import pytest

from toolcrib.sandbox._worker.awaiting import awaited_calls

AWAITED = [
    "await get(1)",
    "x = await get(1)",
    "import asyncio\nawait asyncio.gather(get(1), get(1))",
    "import asyncio\nasyncio.run(get(1))",
    "from asyncio import gather\nawait gather(get(1))",
    "await asyncio.gather(*[get(1) for i in x])",
    "await asyncio.gather(*(get(1) for i in x))",
    "await asyncio.gather(get(1) if x else get(1))",
    "async def main():\n    t = get(1)\n    return await t",
    "async def main():\n    ts = [get(1) for i in x]\n    return await asyncio.gather(*ts)",
    "ts = []\nfor i in x:\n    ts.append(get(1))\nawait asyncio.gather(*ts)",
    "ts = [get(1)]\nts += [get(1)]\nawait asyncio.gather(*ts)",
    "ts = {}\nts['a'] = get(1)\nfor t in ts.values():\n    await t",
    "ts = {n: get(1) for n in x}\n[await t for t in list(ts.values())]",
    "a, b = get(1), get(1)\nawait a\nawait b",
    "t: object = get(1)\nawait t",
    "if (t := get(1)):\n    await t",
    "def wrapped(i):\n    if i:\n        return get(1)\n    return get(1)\nawait wrapped(1)",
    "wrapped = lambda i: get(1)\nawait asyncio.gather(*[wrapped(i) for i in x])",
    "ts = [get(1)]\nasync def main():\n    return await asyncio.gather(*ts)",
    "g = asyncio.gather(get(1))\nawait g",
    "async def main():\n    t = asyncio.create_task(get(1))\n    return await t",
    "async def main():\n    async with asyncio.TaskGroup() as group:\n        group.create_task(get(1))",
    "await asyncio.wait_for(get(1), 2)",
]
NOT_AWAITED = [
    "get(1)",
    "x = get(1)\nprint(x)",
    "async def main():\n    x = get(1)\n    return x\nawait main()",
    "await other(get(1))",
    "await asyncio.gather(*[other(get(1)) for i in x])",
    "def f():\n    t = get(1)\n    return t\nasync def g():\n    t = other()\n    await t",
    "x = [get(1)]\nfor y in x:\n    print(y)",
    "def wrapped(i):\n    return get(1)\nwrapped(1)",
    "async def wrapped(i):\n    return get(1)\nawait wrapped(1)",
    "x = get(1)\nawait other(x)",
]


def calls_of_get(code: str) -> tuple[set[ast.Call], set[ast.Call]]:
    """Return the calls of `get` that are awaited, and all of them."""
    tree = ast.parse(code)
    every = {
        n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "get"
    }
    return every & set(awaited_calls(tree)), every


@pytest.mark.parametrize("code", AWAITED)
def test_a_call_that_flows_into_an_await_is_awaited(code: str) -> None:
    awaited, every = calls_of_get(code)

    assert every
    assert awaited == every


@pytest.mark.parametrize("code", NOT_AWAITED)
def test_a_call_whose_value_is_used_is_not(code: str) -> None:
    awaited, every = calls_of_get(code)

    assert every
    assert awaited == set()


def test_names_that_hold_each_other_come_to_an_end() -> None:
    awaited, every = calls_of_get("a = [b]\nb = [a, get(1)]\nawait asyncio.gather(*a)")

    assert awaited == every
