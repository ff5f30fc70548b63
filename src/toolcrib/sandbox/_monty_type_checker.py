"""The type checker of Monty, for programs that are not to run."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_monty import FunctionSnapshot, Monty, MontyError, MontyTypingError

from toolcrib.sandbox._protocol import TypeProblem

_NEVER = "__never__: int = ''\n"
"""The first line of each checked program: a type error, without which Monty would run a program that has none."""
_IGNORED_RULES = frozenset(
    {
        *("unresolved-import", "unresolved-reference", "invalid-syntax"),  # of another Python than Monty's
        *("invalid-await", "possibly-unresolved-reference", "possibly-missing-attribute"),
    }
)
_MAYBE_NONE = re.compile(r"on (?:type )?`None` in union|element `None` of union|`None`.*in union")
"""Messages about values that may be None, such as `re.match(...).group()`: the program may know that they are not."""
_LIMITS: Any = {"max_feed_duration_secs": 0.05, "max_suspensions": 10, "max_memory": 16_000_000}


def type_problems(pool: Monty, code: str, stubs: str) -> list[TypeProblem]:
    """Return the problems that the type checker finds, by line; nothing of the program runs.

    Args:
        pool: The pool whose worker checks the program.
        code: The program; it has to parse.
        stubs: The functions that it may call, and their types.
    """
    checkout = pool.checkout(
        script_name="program.py", limits=_LIMITS, type_check=True, type_check_stubs=stubs, type_check_format="json"
    )
    with checkout as session:
        try:
            snapshot = session.feed_start(_NEVER + code)
            if isinstance(snapshot, FunctionSnapshot) and snapshot.function_name == "import_stubs":
                snapshot.resume_not_handled()  # modules that Monty does not know
        except MontyTypingError as error:
            return _read(error.display())
        except MontyError:
            return []  # it cannot be checked; its errors are reported when it runs
    return []


def _read(text: str) -> list[TypeProblem]:
    found: list[TypeProblem] = []
    for item in json.loads(text):
        line, rule, message = item["location"]["row"] - 1, item["name"], item["message"]
        if line >= 1 and item["severity"] == "error" and rule not in _IGNORED_RULES and not _MAYBE_NONE.search(message):
            found.append(TypeProblem(line, rule, message))
    return found
