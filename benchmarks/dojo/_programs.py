"""Programs of a model in code mode: the calls that solve a task, with values of earlier results where they are needed.

A model writes as many calls into one program as it can: a value that the user wrote is a literal, and one that an
earlier call of the program returns is taken from its result. A value that stands in neither has to be composed by the
model, which reads the results first and writes the next program then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Taken", "program_of", "programs"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A value that a program takes from a result: `code` is the expression."""

    code: str


def program_of(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return a program that makes calls, one after the other, and returns all their results; a refusal stops none."""
    lines: list[str] = []
    for number, (name, arguments) in enumerate(calls):
        given = ", ".join(f"{key}={_code(value)}" for key, value in arguments.items())
        lines += [
            "try:",
            f"    r{number} = {name}({given})",
            "except Exception as error:",
            f"    r{number} = str(error)",
        ]
    names = ", ".join(f"r{number}" for number in range(len(calls)))
    return "\n".join([*lines, f"[{names}]"])


def _code(value: Any) -> str:
    if isinstance(value, Taken):
        return value.code
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_code(held)}' for key, held in value.items())}}}"
    return f"[{', '.join(map(_code, value))}]" if isinstance(value, list) else repr(value)


def programs(
    calls: Sequence[tuple[str, Mapping[str, Any]]], results: Sequence[Any], prompt: str
) -> list[list[tuple[str, Mapping[str, Any]]]]:
    """Return the calls of each program that the model writes.

    Args:
        calls: The calls that solve the task.
        results: The result of each, as a program is given it.
        prompt: The user's words.
    """
    made = [list[tuple[str, Mapping[str, Any]]]()]
    for number, (name, arguments) in enumerate(calls):
        first = number - len(made[-1])
        earlier = dict(enumerate(results[first:number]))
        if made[-1] and any(_is_composed(value, earlier, prompt) for value in _leaves(arguments)):
            made.append([])
            earlier = {}
        made[-1].append((name, {key: _taken(value, earlier, prompt) for key, value in arguments.items()}))
    return made


def _taken(value: Any, earlier: Mapping[int, Any], prompt: str) -> Any:
    if isinstance(value, list):
        return [_taken(part, earlier, prompt) for part in value]
    if isinstance(value, Mapping):
        return {key: _taken(part, earlier, prompt) for key, part in value.items()}
    if _is_said(value, prompt):
        return value
    return next(_places(value, earlier), value)


def _is_composed(value: Any, earlier: Mapping[int, Any], prompt: str) -> bool:
    return not _is_said(value, prompt) and next(_places(value, earlier), None) is None


def _is_said(value: Any, prompt: str) -> bool:
    """Return whether a value stands in the user's words."""
    if value is None or isinstance(value, bool) or value == "":
        return True
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.search(rf"(?<!\w){re.escape(text.lower())}(?!\w)", prompt.lower()) is not None


def _places(value: Any, earlier: Mapping[int, Any]) -> Iterator[Taken]:
    """Yield the expressions that take a value from the results of earlier calls: as it is, or else a part of a text."""
    places = [(path, held) for number, result in earlier.items() for path, held in _paths(result, f"r{number}")]
    for path, held in places:
        if held == value and type(held) is type(value):
            yield Taken(path)
    for path, held in places:
        if isinstance(held, str):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            found = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", held)
            if found is not None:
                part = f"{path}[{found.start()}:{found.end()}]"
                yield Taken(part if isinstance(value, str) else f"{type(value).__name__}({part})")


def _paths(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, held in value.items():
            yield from _paths(held, f"{path}[{key!r}]")
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from _paths(held, f"{path}[{number}]")
    else:
        yield path, value


def _leaves(value: Any) -> Iterator[Any]:
    return (held for _, held in _paths(value, ""))
