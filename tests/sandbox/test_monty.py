from __future__ import annotations

import pytest

from tests.code.hosts import Run


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ad(1)", "NameError (line 1): name 'ad' is not defined. Did you mean `add`?"),
        ("x = nothing", "neither a name of the program nor a tool"),
        ("input('?')", "`input` is not available in this Python"),
        ("{'a': 1}['b']", "KeyError (line 1): 'b'"),
        ("class A:\n    def __iter__(self): add(1)\nlist(A())", "cannot be called from inside map, filter"),
        ("async def f():\n    x = {0: add(1)}\n    for k in x: await x[k]\nf = f\nawait f()", None),
        ("y = (lambda: add(1))()\nasync def f(): await y\nawait f()", "asyncio.gather(tool(a), tool(b))"),
        ("x = [1, 2]\nraise ValueError(*x)", "an exception takes one text here"),
        ("open('/etc/passwd')", "PermissionError (line 1)"),
        ("exec('1/0')", "ZeroDivisionError (line 1)"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError (line 1)"),
    ],
)
async def test_errors_say_what_to_write_instead(monty_run: Run, code: str, says: str | None) -> None:
    result = await monty_run(code)

    assert (result.error is None) == (says is None)
    assert says is None or says in str(result.error)


async def test_the_result_says_what_kept_the_program_in(monty_run: Run) -> None:
    result = await monty_run("1")

    assert {"worker-process", "no-files", "no-network", "limit:memory"} <= set(result.isolation)
    assert result.isolation[0].startswith("monty-")
