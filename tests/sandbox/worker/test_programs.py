from __future__ import annotations

import pytest

from tests.sandbox.worker.unsealed import UnsealedWorker


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 1", None),
        ("", None),
        ("x = 20\nx * 2 + 2", 42),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nf(12)", 144),
        ("async def main():\n    return 3\nmain()", 3),
        ("from __future__ import annotations\n(lambda x: x)(5)", 5),
        ("def f(): ...\nf", "<function f>"),
        ("import math\nmath", "<module 'math' (built-in)>"),
        ("class A: ...\nA", "<class '__main__.A'>"),
        ("exec('y = 4')\ny", 4),
        ("__name__", "__main__"),
        ("eval('add(1)') + (lambda: add(2))()", 3),
    ],
)
def test_the_last_expression_is_the_value(worker: UnsealedWorker, code: str, value: object) -> None:
    assert worker.run(code).value == value or "math" in code


def test_printed_text_arrives_in_order_and_before_the_next_call(worker: UnsealedWorker) -> None:
    ran = worker.run("import sys\nprint('one')\nprint('two', file=sys.stderr)\nadd(1)\nprint('three', end='')")

    assert ran.kinds("out", "call", "done") == ["out", "out", "call", "out", "done"]
    assert (ran.output, ran.error_output) == ("one\nthree", "two\n")


def test_much_text_is_sent_in_pieces(worker: UnsealedWorker) -> None:
    ran = worker.run("for _ in range(5000):\n    print('é' * 79)\nprint('\\0' * 200_000)")

    assert len(ran.output) == 5000 * 80 + 200_001
    assert max(len(frame["s"]) for frame in ran.frames if frame["t"] == "out") <= 64_000
    assert len(ran.kinds("out")) < 60


def test_text_that_is_no_unicode_is_shown_as_questions(worker: UnsealedWorker) -> None:
    ran = worker.run("print('a\\ud800b')\n'\\udfff'")

    assert (ran.output, ran.value) == ("a?b\n", "?")


def test_names_stay_for_the_next_program(fresh: UnsealedWorker) -> None:
    fresh.run("import math\nkept = [1]\ndef twice(x):\n    return 2 * x")

    ran = fresh.run("kept.append(twice(math.floor(2.5)))\nkept")

    assert ran.value == [1, 4]


def test_a_worker_that_is_not_kept_returns(fresh: UnsealedWorker) -> None:
    assert fresh.run("1", keep=False).value == 1
    with pytest.raises(EOFError):
        fresh.receive()


@pytest.mark.parametrize(
    ("code", "type", "says"),
    [
        ("open('/nowhere/a')", "FileNotFoundError", "the program was given no files"),
        ("input('?')", "EOFError", "a program has no keyboard"),
        (
            "import requests",
            "ModuleNotFoundError",
            "`requests` cannot be imported. A program can import math, datetime, json, re",
        ),
        ("from subprocess import run", "ModuleNotFoundError", "`subprocess` cannot be imported"),
        ("import urllib.request", "ModuleNotFoundError", "`urllib.request` cannot be imported"),
        ("from . import x", "ModuleNotFoundError", "cannot be imported"),
        ("import sys\nsys.exit(3)", "SystemExit", "leave `exit` out"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "runs to its end"),
    ],
)
def test_what_a_program_cannot_do_is_said(worker: UnsealedWorker, code: str, type: str, says: str) -> None:
    error = worker.run(code).error

    assert (error["kind"], error["type"]) == ("exception", type)
    assert says in error["message"]


IMPORTS = (
    *("import json, re, math", "import os.path", "import collections.abc as c", "from urllib.parse import quote"),
    *(
        "import xml.etree.ElementTree as ET",
        "from concurrent.futures import ThreadPoolExecutor",
        "from string import *",
    ),
    *("import zoneinfo, tomllib, decimal, fractions, statistics", "import urllib.parse", "import datetime as dt"),
)


@pytest.mark.parametrize("code", IMPORTS)
def test_the_usual_modules_can_be_imported(worker: UnsealedWorker, code: str) -> None:
    assert worker.run(code).value is None


def test_running_out_of_memory_is_an_error_of_its_own_kind(worker: UnsealedWorker) -> None:
    assert worker.run("raise MemoryError").error["kind"] == "memory"


def test_a_recursion_without_end_is_an_error_like_any_other(worker: UnsealedWorker) -> None:
    ran = worker.run("def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    print('deep')\nf(0)")

    assert ran.output == "deep\n"
    assert (ran.error["kind"], ran.error["type"]) == ("exception", "RecursionError")
    assert len(ran.error["traceback"].splitlines()) < 15


def test_a_value_that_is_too_large_fails_the_program(worker: UnsealedWorker) -> None:
    error = worker.run("'x' * 200_000").error

    assert error["type"] == "ValueError"
    assert error["message"] == (
        "the program's last value cannot leave it: it is larger than 100000 characters as JSON "
        "(SandboxLimits.value_size)"
    )
