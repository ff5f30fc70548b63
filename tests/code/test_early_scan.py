"""Which calls of a program that still comes are made in any case, and which arguments are written out."""

from __future__ import annotations

import pytest

from toolcrib.code._early_scan import EarlyScan, LiteralCall

OTHERS = ("find", "order", "search_tools")


def scan() -> EarlyScan:
    return EarlyScan({"find", "shop__find"}, OTHERS, {"json", "asyncio"})


def found(program: str) -> list[tuple[object, ...]]:
    """Return the arguments of the calls that are found while a program comes, one character after the other."""
    reader, calls = scan(), list[LiteralCall]()
    for end in range(len(program) + 1):
        calls += reader.read(program[:end])
    return [(*call.args, *call.kwargs.items()) for call in calls]


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        ("find('a')\n", [("a",)]),
        ("a = find('a')\nb = find('b', 2)\n", [("a",), ("b", 2)]),
        (
            "a = find(\n  'a',\n  n=[1, -2.5, None, True, {'k': 'v'}],\n)\n",
            [("a", ("n", [1, -2.5, None, True, {"k": "v"}]))],
        ),
        ('"""A program."""\n\n# looks\nimport json\nfrom json import dumps\nfind("a")  # now\n', [("a",)]),
        ("find('a'); find('b')\n", [("a",), ("b",)]),
        ("both = [find('a'), (find('b'), {'c': find('c')})]\n", [("a",), ("b",), ("c",)]),
        ("a = find('a')\nprint('x', a, find('b'))\nfind('c')\n", [("a",), ("b",), ("c",)]),
        ("import asyncio\nx = await asyncio.gather(find('a'), find('b'))\n", [("a",), ("b",)]),
        ("await find('a')\n", [("a",)]),
        ("shop.find('a')\n", [("a",)]),
        ("find(find('a'))\nfind('b')\n", [("a",)]),
        ("find('''a\nfind('b')\n''')\n", [("a\nfind('b')\n",)]),
        ("find('a' 'b')\n", [("ab",)]),
    ],
)
def test_calls_that_are_made_in_any_case_are_found(program: str, calls: list[tuple[object, ...]]) -> None:
    assert found(program) == calls
    assert [(*call.args, *call.kwargs.items()) for call in scan().read(program)] == calls


NO_LITERALS = """f'a' | x | 1 + 1 | -x | b'a' | ('a',) | {'a'} | 1e999 | -'a' | -True | -False | 1j | ... | *['a']
    | **{'a': 1} | {1: 2} | {**{}} | (y := 'a') | lambda: 1 | 'a'.upper() | not 1 | [x] | ['a'][0] | [*'ab']
    | __name__ | '\\ud800' | {'\\ud83d\\ude00': 1} | 36893488147419103232 | -36893488147419103232"""


@pytest.mark.parametrize("argument", [each.strip() for each in NO_LITERALS.split("|")])
def test_an_argument_that_only_looks_like_a_literal_starts_nothing(argument: str) -> None:
    assert found(f"find({argument})\nfind('late')\n") == []


@pytest.mark.parametrize("holder", ["[{}]", "{{'k': {}}}"])
def test_an_argument_that_is_too_deep_for_a_sandbox_starts_nothing(holder: str) -> None:
    argument, starts = "1", list[bool]()
    for _ in range(100):
        argument = holder.format(argument)
        starts.append(bool(found(f"find({argument})\n")))

    assert (starts[0], starts[-1]) == (True, False)


@pytest.mark.parametrize(
    "before",
    [
        "if True:\n    pass",
        "for x in []:\n    pass",
        "def f():\n    pass",
        "class F:\n    pass",
        "with open('x') as f:\n    pass",
        "try:\n    pass\nfinally:\n    pass",
        "import os",
        "import json as find",
        "import json as shop",
        "import json as asyncio",
        "import asyncio.streams",
        "asyncio = []",
        "from json import dumps as find",
        "from json import *",
        "from . import json",
        "find = print",
        "shop = 1",
        "print = find",
        "order = 1",
        "search_tools = 1",
        "a = find = 1",
        "a, find = 1, 2",
        "a: find = 1",
        "a = b",
        "a = (find := 1)",
        "a += 1",
        "del find",
        "global find",
        "order('x')",
        "search_tools('x')",
        "print(order('x'))",
        "print(x)",
        "print('x', file=1)",
        "1 / 0",
        "assert False",
        "raise SystemExit",
        "exec('find = print')",
        "globals()['find'] = print",
        "a = [x for x in []]",
        "a = 'x'.upper()",
        "a = {}['x']",
        "await print('x')",
        "asyncio.gather()",
        "a = True and False",
        "f'{order}'",
        "match 1:\n    case 1:\n        pass",
        "@order\ndef f():\n    pass",
        "  x = 1",
    ],
)
def test_after_what_may_branch_raise_change_or_define_nothing_is_found(before: str) -> None:
    assert found(f"{before}\nfind('a')\n") == []


CUT = ["find('a')", "find('a'", "find('a', '", "find('a') \\\n", "x = find('a') if 0 else (\n1)", "'''\nfind('a')\n"]


@pytest.mark.parametrize("program", CUT)
def test_what_has_not_come_whole_is_not_read(program: str) -> None:
    assert found(program) == []


def test_a_statement_without_end_is_given_up() -> None:
    reader = scan()
    program = "x = [\n" + "1,\n" * 10_000

    assert reader.read(program) == []
    assert reader.read(program + "]\nfind('a')\n") == []


def test_the_modules_of_an_unknown_sandbox_are_not_trusted() -> None:
    assert EarlyScan({"find"}, OTHERS, None).read("import json\nfind('a')\n") == []
