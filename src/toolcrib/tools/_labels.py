"""Labels of a tool: what it does, and how far each part of its results can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

__all__ = ["Effect", "Labels", "Source", "Trust", "labelled", "require_effect", "require_source"]

Effect: TypeAlias = Literal["none", "fetch", "write", "send", "spend", "program"]
"""What a tool does: nothing but read; fetch what an argument names, from outside; change something; send; pay.

A `program` runs a text of the model's whose own calls are judged one by one, as those of a `Toolkit` are.
"""

Trust: TypeAlias = Literal["trusted", "name", "untrusted"]
"""How far a text can be trusted.

`trusted` is the host's or the user's own, `untrusted` may be a stranger's. A `name` is one that people choose, such as
that of a channel: it is trusted as long as it is short, since a longer one may be an instruction.
"""

Labels: TypeAlias = Trust | Mapping[str, Trust]
"""The trust of a whole result, or of its fields by name; `"*"` is for the other fields, which are untrusted without it.

A field is named by itself (`"subject"`), with those that it is in (`"items.subject"`), or as one of a list
(`"items[2].subject"`); the closest name counts.
"""

Source: TypeAlias = Labels | Callable[[Mapping[str, Any], Any], Labels]
"""The labels of a tool's results, or a function of the arguments and the result that returns them."""

_NAME_CHARS: Final = 64
_NAME_WORDS: Final = 4
_TRUSTS: Final = frozenset(get_args(Trust))


def require_effect(who: str, effect: Any) -> None:
    """Raise ValueError when `effect` is none that a tool may have."""
    if effect is not None and effect not in get_args(Effect):
        raise ValueError(f"{who}: effect is {', '.join(map(repr, get_args(Effect)))} or None, and not {effect!r}")


def require_source(who: str, source: Any) -> None:
    """Raise ValueError when `source` is none: neither a trust, nor a mapping of field names to trusts, nor callable."""
    if callable(source):
        return
    given = list(cast("Mapping[str, Any]", source).values()) if isinstance(source, Mapping) else [source]
    for each in given:
        if each not in _TRUSTS:
            known = ", ".join(map(repr, get_args(Trust)))
            raise ValueError(
                f"{who}: source is {known}, or these by field name, or a function; {each!r} is none of them"
            )


def labelled(value: Any, labels: Labels) -> Iterator[tuple[str, Any, Literal["trusted", "untrusted"]]]:
    """Yield the texts and numbers of a JSON value, each with its path and whether it is trusted.

    The keys of an object are texts, too.
    """
    stack: list[tuple[str, tuple[str, ...], Any]] = [("", (), value)]
    while stack:
        path, fields, held = stack.pop()
        if isinstance(held, Mapping):
            parts = [(str(key), part) for key, part in cast("Mapping[Any, Any]", held).items()]
            for name, part in reversed(parts):
                stack.append((f"{path}.{name}" if path else name, (*fields, name), part))
            for name, _ in parts:
                yield path, name, _judged(name, _of(path, (*fields, "*"), labels))
        elif isinstance(held, Sequence) and not isinstance(held, str | bytes):
            items = cast("Sequence[Any]", held)
            stack.extend((f"{path}[{n}]", fields, items[n]) for n in reversed(range(len(items))))
        elif held is not None and not isinstance(held, bool):
            yield path, held, _judged(held, _of(path, fields, labels))


def _of(path: str, fields: tuple[str, ...], labels: Labels) -> Trust:
    if isinstance(labels, str):
        return labels
    if (found := labels.get(path)) is not None:
        return found
    for start in range(len(fields)):  # the longest name first
        found = labels.get(".".join(fields[start:]))
        if found is not None:
            return found
    return labels.get("*", "untrusted")


def _judged(held: Any, trust: Trust) -> Literal["trusted", "untrusted"]:
    if trust != "name":
        return trust
    is_name = not isinstance(held, str) or (len(held) <= _NAME_CHARS and len(held.split()) <= _NAME_WORDS)
    return "trusted" if is_name else "untrusted"
