from __future__ import annotations

import pytest

from toolcrib.code import Toolkit
from toolcrib.sandbox import MontySandbox
from toolcrib.tools import ez_tool


@ez_tool
def add(a: int, b: int = 0) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "f = add\nf()",
            "a: missing, it is required: integer. Call it as `add(a: int, b: int = 0) -> dict[str, int]`.",
        ),
        ("add(1).sum", "'dict' object has no attribute 'sum'. Its keys are read as `value['sum']`."),
        ("'a'.uper()", "'str' object has no attribute 'uper'. Did you mean `upper` or `isupper`?"),
        ("'2026-01-31'.year", "is text: `datetime.fromisoformat(text)` makes a date of it."),
        ("'2026-01-31' - '2026-01-01'", "is text: `datetime.fromisoformat(text)` makes a date of it."),
        ("parallel((add, 1), (add, 2))", "`await asyncio.gather(tool(a), tool(b))`."),
        ("[].push(1)", "'list' object has no attribute 'push'"),
    ],
)
async def test_an_error_says_what_to_write(sandbox: MontySandbox, code: str, said: str) -> None:
    result = await Toolkit([add], sandbox=sandbox).execute_async(code)

    assert str(result.error).endswith(said)
