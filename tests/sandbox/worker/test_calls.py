from __future__ import annotations

import pytest

from tests.sandbox.worker.unsealed import UnsealedWorker


def test_a_call_waits_for_its_result(worker: UnsealedWorker) -> None:
    ran = worker.run("[add(1, add(2, more=3)) for i in range(2)]")

    assert ran.value == [6, 6]
    asked = {"t": "call", "id": 1, "name": "add", "args": [2], "kwargs": {"more": 3}, "wait": True, "line": 1}
    assert ran.frames[0] == asked
    assert [frame["id"] for frame in ran.frames if frame["t"] == "call"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("tools = {'plus': add}\nf = add\n[f(1), tools['plus'](2)]", [1, 2]),
        ("list(map(add, [1, 2]))", [1, 2]),
        ("import functools\nfunctools.partial(add, 1)(2, more=3)", 6),
        ("sorted([3, 1, 2], key=add)", [1, 2, 3]),
        ("[orders(), orders.lines(1), orders__lines(2), lone.child()]", ["all", [1], [2], "child"]),
        ("add.__name__, str(add), callable(add)", ["add", "<tool add>", True]),
        ("class A:\n    def __iter__(self):\n        yield add(1)\nlist(A())", [1]),
    ],
)
def test_a_tool_is_a_value_like_any_function(worker: UnsealedWorker, code: str, value: object) -> None:
    assert worker.run(code).value == value


def test_calls_in_parallel_are_all_sent_before_the_first_answer(worker: UnsealedWorker) -> None:
    ran = worker.run("import functools\nparallel((add, 1), functools.partial(add, more=2), (echo, {'a': 1}))")

    assert ran.value == [1, 2, {"a": 1}]
    assert ran.kinds("call", "wait") == ["call", "call", "call", "wait"]


def test_the_first_failure_in_parallel_is_raised_when_all_have_ended(worker: UnsealedWorker) -> None:
    ran = worker.run("parallel((add, 1), (fail, 'KeyError', 'first'), (fail, 'ValueError', 'second'), (count, 2))")

    assert (ran.error["type"], ran.error["line"]) == ("KeyError", 1)
    assert ran.kinds("call", "next") == ["call", "call", "call", "call", "next", "next", "next"]


@pytest.mark.parametrize("code", ["parallel(1)", "parallel((print, 1))", "parallel(())", "parallel((add, 1), 7)"])
def test_what_is_no_call_cannot_run_in_parallel(worker: UnsealedWorker, code: str) -> None:
    ran = worker.run(code)

    assert ran.error["type"] == "TypeError"
    assert "such as (tool, argument)" in ran.error["message"]


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("ValueError", "ValueError"),
        ("KeyError", "LookupError"),
        ("TimeoutError", "OSError"),
        ("PermissionError", "PermissionError"),
    ],
)
def test_a_failure_can_be_caught_as_what_it_is(worker: UnsealedWorker, raised: str, caught: str) -> None:
    ran = worker.run(f"try:\n    fail('{raised}', 'why')\nexcept {caught} as error:\n    print(error.args[0])")

    assert ran.output == "why\n"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("echo([[[...]]])", "Ellipsis has no JSON form; pass text, numbers, lists and dicts"),
        ("x = []\nx.append(x)\necho(x)", "it is nested more than 100 deep"),
        ("echo('x' * 200_000)", "it is larger than 100000 characters"),
        ("echo('\\0' * 90_000)", "bytes as JSON, larger than 100000 bytes (SandboxLimits.value_size)"),
        ("echo(10 ** 5000)", "an int of more than 4000 digits"),
        ("echo(iter([1]))", "read it into a list first"),
        ("echo(b'\\xff')", "base64.b64encode"),
        ("x = [1] * 100\nfor _ in range(9):\n    x = [x] * 10\necho(x)", "it is larger than 100000 characters"),
    ],
)
def test_an_argument_that_cannot_leave_fails_the_call(worker: UnsealedWorker, code: str, says: str) -> None:
    ran = worker.run(code)

    assert ran.calls == []
    assert ran.error["type"] == "ValueError"
    assert "`echo` cannot be passed to it" in ran.error["message"]
    assert says in ran.error["message"]


# --- streams


def test_a_stream_is_asked_for_each_value(worker: UnsealedWorker) -> None:
    ran = worker.run("for n in count(2):\n    add(n)")

    assert ran.kinds("call", "next", "drop") == ["call", "next", "call", "next", "call", "next"]


@pytest.mark.parametrize(
    "code",
    [
        "list(count(3))",
        "[n for n in count(3)]",
        "[n async for n in count(3)]",
        "await count(3)",
        "import asyncio\n(await asyncio.gather(count(3)))[0]",
        "count(3)",
        "parallel((count, 3))[0]",
    ],
)
def test_the_values_of_a_stream_come_to_a_list(worker: UnsealedWorker, code: str) -> None:
    assert worker.run(code).value == [0, 1, 2]


@pytest.mark.parametrize(
    "code",
    [
        "for n in count(9):\n    break\nadd(1)",
        "async for n in count(9):\n    break\nawait add(1)",
        "s = count(9)\nnext(s)\ns.close()\nadd(1)",
    ],
)
def test_a_stream_that_is_left_early_is_dropped(worker: UnsealedWorker, code: str) -> None:
    ran = worker.run(code)

    assert ran.kinds("call", "next", "drop") == ["call", "next", "drop", "call"]


def test_a_stream_that_fails_raises_where_it_is_read(worker: UnsealedWorker) -> None:
    ran = worker.run(
        "got = []\ntry:\n    for n in count(2, 'torn'):\n        got.append(n)\n"
        "except ValueError as e:\n    got.append(str(e))\ngot"
    )

    assert ran.value == [0, 1, "torn"]
