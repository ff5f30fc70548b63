from __future__ import annotations

import pytest

from tests.sandbox.worker.unsealed import UnsealedWorker


def test_an_error_points_at_the_program_and_nothing_else(worker: UnsealedWorker) -> None:
    error = worker.run("def outer(x):\n    return fail(\n        'ValueError', x)\n\nouter('no such city')").error

    assert error == {
        "kind": "exception",
        "type": "ValueError",
        "message": "no such city (raised by the tool `fail`)",
        "line": 2,
        "traceback": (
            "Traceback (most recent call last):\n"
            '  File "program.py", line 5, in <module>\n'
            "    outer('no such city')\n"
            '  File "program.py", line 2, in outer\n'
            "    return fail(\n"
            "ValueError: no such city"
        ),
    }


def test_the_lines_are_those_of_the_program_that_wrote_them(fresh: UnsealedWorker) -> None:
    fresh.run("def f():\n    return 1 / 0")

    error = fresh.run("x = 1\n\nf()").error

    assert error["line"] == 3
    assert '  File "program.py", line 2, in f\n    return 1 / 0\n' in error["traceback"]


def test_lines_of_an_awaited_failure_are_the_programs(worker: UnsealedWorker) -> None:
    gathered = "    await asyncio.gather(\n        fail('ValueError', 'x'))"
    code = f"import asyncio\nasync def main():\n{gathered}\nasyncio.run(main())"

    error = worker.run(code).error

    assert error["line"] == 3
    assert "asyncio/" not in error["traceback"]


def test_code_that_is_no_python_did_not_run(worker: UnsealedWorker) -> None:
    ran = worker.run("print(1)\nx = (1,")

    assert ran.output == ""
    assert (ran.error["kind"], ran.error["type"], ran.error["line"]) == ("syntax", "SyntaxError", 2)
    assert ran.error["traceback"] == "  File \"program.py\", line 2\n    x = (1,\nSyntaxError: '(' was never closed"


@pytest.mark.parametrize("code", ["\0", "(" * 5000, "-" * 100_000 + "1", "return 1", "x = 1\n y = 2", "nonlocal x"])
def test_any_text_that_is_no_program_is_a_syntax_error(worker: UnsealedWorker, code: str) -> None:
    assert worker.run(code).error["kind"] == "syntax"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ad(1)", "name 'ad' is not defined. Did you mean `add`?"),
        (
            "x = nothing_like_it",
            "name 'nothing_like_it' is not defined. It is neither a name of the program nor a tool.",
        ),
        ("import math as json_\nprint(statistics.mean([1]))", "Write `import statistics` first."),
        ("w = {'temp': 1}\nw['temperature']", "'temperature'. The dict has the keys 'temp'."),
        ("w = {'a': [{'b': 1}]}\nw['a'][0]['c']", "'c'. The dict has the keys 'b'."),
        ("def f(row):\n    return row.pop('x')\nf({})", "'x'. The dict has no keys."),
        ("d = {n: n for n in range(30)}\nd['x']", "8, 9, 10, 11 and 18 more."),
        ("w = {'temp': 1}\nw.temp", 'It is a dict: write `["temp"]`.'),
        ("w = {'temp': 1}\nw.humid", "It is a dict, with the keys 'temp'."),
        ("'a'.upcase()", "Did you mean"),
        ("'2026-01-31'.strftime('%d')", "A date that a tool gave is text"),
        ("from datetime import timedelta\n'2026-01-31' + timedelta(1)", "A date that a tool gave is text"),
        ("from datetime import date\ndate(2026, 1, 31) - '2026-01-01'", "A date that a tool gave is text"),
        ("x = [1, 2]\nx[2]", "list index out of range. The list has 2 items."),
        ("x = []\nx[-1]", "The list is empty."),
        (
            "fail('TypeError', 'missing argument')",
            "missing argument. Call it as `fail(...)`. (raised by the tool `fail`)",
        ),
        ("raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])", "In it: ValueError: a; KeyError: 'b'"),
        ("async def f():\n    t = add(1)\n    print(t['a'])\n    await t\nawait f()", "write `await add(...)`"),
    ],
)
def test_errors_say_what_helps(worker: UnsealedWorker, code: str, says: str) -> None:
    error = worker.run(code).error

    assert says in error["message"]


HOSTILE = [
    "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
    "class E(Exception):\n    def __str__(self): return 7\nraise E",
    "class M(type):\n    __name__ = property(lambda s: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E",
    "class E(Exception):\n    __class__ = property(lambda s: int)\nraise E()",
    "class E(Exception):\n    def __getattribute__(self, n): raise KeyboardInterrupt\nraise E",
    "class D(dict):\n    def __repr__(self): raise SystemExit\n    __iter__ = __repr__\nd = D()\nd['x']",
    "class K:\n    def __repr__(self): raise SystemExit\nd = {K(): 1}\nd['x']",
    "class R:\n    def __repr__(self): raise SystemExit\nR().nothing",
    "class R:\n    def __dir__(self): raise SystemExit\nR().nothing",
    "class R:\n    __dict__ = property(lambda s: 1 / 0)\n    __slots__ = ()\nR()",
    "class R:\n    def __getattr__(self, n): raise SystemExit\nR()",
    "class I(int):\n    def bit_length(self): raise SystemExit\nI(7)",
    "class S(str):\n    def __len__(self): return -1\nS('x')",
    "class D(dict):\n    def items(self): raise SystemExit\nD(a=1)",
    "raise BaseException('x')",
    "import asyncio\nraise asyncio.CancelledError",
    "raise GeneratorExit",
    "raise StopIteration(1)",
]
RUINOUS = [
    "import sys\nsys.stdout = sys.stderr = None\nprint('x')\n1",
    "import builtins, json\nbuiltins.repr = builtins.len = builtins.isinstance = None\njson.loads = None\n1 / 0",
    "import threading\nthreading.active_count = None\nadd(1)",
]


@pytest.mark.parametrize("code", HOSTILE)
def test_hostile_programs_end_like_others(worker: UnsealedWorker, code: str) -> None:
    assert worker.run(code).done["t"] == "done"
    assert worker.run("add(1)").value == 1


@pytest.mark.parametrize("code", RUINOUS)
def test_ruinous_programs_harm_their_worker_alone(fresh: UnsealedWorker, code: str) -> None:
    try:
        done = fresh.run(code).done
    except EOFError:
        return

    assert done["t"] == "done"
