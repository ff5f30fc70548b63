"""Labels of a tool: what it does, and how far each part of its results can be trusted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from toolcrib.hooks import require_parameters

__all__ = ["INSIDE", "Effect", "Labels", "Source", "Trust", "labelled", "require_effect", "require_source"]

Effect: TypeAlias = Literal[
    "none", "fetch", "write", "create", "send", "spend", "delete", "share", "execute", "program"
]
"""What a tool does.

`none` reads, and `fetch` reads from an address that an argument names. `write` and `create` change and add something in
the user's own space, where it can be undone. `send`, `spend`, `delete`, `share` and `execute` leave that space, or
cannot be undone; so does what a tool without an effect does. A `program` runs a text of the model's whose own calls are
judged one by one, as those of a `Toolkit` are.
"""

INSIDE: Final[frozenset[Effect]] = frozenset({"write", "create"})
"""Effects inside the user's own space: values of strangers are asked about, and unknown ones are not."""

Trust: TypeAlias = Literal["trusted", "name", "untrusted"]
"""How far a text can be trusted.

`trusted` is the host's or the user's own, `untrusted` may be a stranger's. A `name` is one that people choose, such as
that of a channel: it is trusted as long as it is short, since a longer one may be an instruction, and as long as it is
made of at most four words and three digits, and so is not an address, link, path, host, number or option of a command.
"""

Labels: TypeAlias = Trust | Mapping[str, Trust]
"""The trust of a whole result, or of its fields by name; `"*"` is for the other fields, which are untrusted without it.

A field is named by itself (`"subject"`), with those that it is in (`"items.subject"`), or as one of a list
(`"items[2].subject"`); the closest name counts.
"""

Source: TypeAlias = Labels | Callable[[Mapping[str, Any], Any], Labels]
"""The labels of a tool's results, or a function of the arguments and the result that returns them."""

_NAME_CHARS: Final = 64
_NAME_DIGITS: Final = 3
_NAME_WORDS: Final = 4
_WORD: Final = (
    r"[#@]?(?:[^\W\d_]&[^\W\d_]|[^\W_][\w'\u2019-]*(?:\.\d+)?)\.?"  # "R&D", "v2.0", "#help", "Jean-Luc", "Dr."
)
_NAME: Final = rf"{_WORD}(?: {_WORD}){{0,{_NAME_WORDS - 1}}}"
_TRUSTS: Final = frozenset(get_args(Trust))


def require_effect(who: str, effect: Any) -> None:
    """Raise ValueError when `effect` is not an effect that a tool may have."""
    if effect is not None and effect not in get_args(Effect):
        raise ValueError(f"{who}: effect is {', '.join(map(repr, get_args(Effect)))} or None, and not {effect!r}")


def require_source(who: str, source: Any) -> None:
    """Check the labels of a tool's results.

    Raises:
        ValueError: They are not a trust, or trusts by field name, or a function.
        TypeError: The function has other parameters.
    """
    if callable(source):
        require_parameters("source function", source, "arguments", "result")
        return
    given = list(cast("Mapping[str, Any]", source).values()) if isinstance(source, Mapping) else [source]
    for each in given:
        if each not in _TRUSTS:
            known = ", ".join(map(repr, get_args(Trust)))
            raise ValueError(
                f"{who}: source is {known}, or these by field name, or a function; {each!r} is not one of them"
            )


def labelled(
    value: Any, labels: Labels, path: str = ""
) -> Iterator[tuple[str, Any, Literal["trusted", "beside", "untrusted"]]]:
    """Yield the texts and numbers of a JSON value, each with its path and its trust; keys of objects are texts, too.

    A trusted value is `beside` an untrusted one when both are in the same object, and not in two items of a list: who
    wrote the other may have brought the object, such as the sender of a mail. One that has a label by its place, as in
    `[2].sender`, is not: whoever wrote that label has looked at it.

    Args:
        value: The value, as JSON shapes.
        labels: How far it can be trusted.
        path: Where it stands: `[2]` for the third value of a stream.
    """
    nodes = [_Node(None, is_list=False)]
    leaves = list(_leaves(value, labels, nodes, path))
    by_place: Mapping[str, Trust] = labels if isinstance(labels, Mapping) else {}
    for _, _, trust, node in leaves if by_place or labels == "name" else ():
        if trust == "untrusted":
            nodes[node].mark(nodes)
    for path, held, trust, node in leaves:
        is_beside = trust == "trusted" and not ("[" in path and path in by_place) and nodes[node].is_beside(nodes)
        yield path, held, "beside" if is_beside else trust


class _Node:
    """An object or a list of a value; `parent` is its place in the list of all."""

    __slots__ = ("has_untrusted", "is_list", "parent")

    def __init__(self, parent: int | None, *, is_list: bool) -> None:
        self.parent, self.is_list, self.has_untrusted = parent, is_list, False

    def mark(self, nodes: Sequence[_Node]) -> None:
        """Mark it, and all that it is in, as containing untrusted text."""
        node: _Node | None = self
        while node is not None and not node.has_untrusted:
            node.has_untrusted = True
            node = None if node.parent is None else nodes[node.parent]

    def is_beside(self, nodes: Sequence[_Node]) -> bool:
        """Return whether the closest of it and what it is in that has an untrusted text is an object."""
        node: _Node | None = self
        while node is not None and not node.has_untrusted:
            node = None if node.parent is None else nodes[node.parent]
        return node is not None and not node.is_list


_Leaf: TypeAlias = tuple[str, Any, Literal["trusted", "untrusted"], int]


def _leaves(value: Any, labels: Labels, nodes: list[_Node], path: str) -> Iterator[_Leaf]:
    """Yield the texts and numbers of a value, each with its path, its own trust, and the node that it is in."""
    stack: list[tuple[str, tuple[str, ...], Any, int]] = [(path, (), value, 0)]
    while stack:
        path, fields, held, parent = stack.pop()
        if isinstance(held, Mapping):
            node = len(nodes)
            nodes.append(_Node(parent, is_list=False))
            parts = [(str(key), part) for key, part in cast("Mapping[Any, Any]", held).items()]
            for name, part in reversed(parts):
                stack.append((f"{path}.{name}" if path else name, (*fields, name), part, node))
            for name, _ in parts:
                yield path, name, _judged(name, _of(path, (*fields, "*"), labels)), node
        elif isinstance(held, Sequence) and not isinstance(held, str | bytes):
            items, node = cast("Sequence[Any]", held), len(nodes)
            nodes.append(_Node(parent, is_list=True))
            stack.extend((f"{path}[{n}]", fields, items[n], node) for n in reversed(range(len(items))))
        elif held is not None and not isinstance(held, bool):
            yield path, held, _judged(held, _of(path, fields, labels)), parent


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
    name = unicodedata.normalize("NFKC", held) if isinstance(held, str) and len(held) <= _NAME_CHARS else ""
    is_name = re.fullmatch(_NAME, name) is not None and any(map(str.isalpha, name))
    return "trusted" if is_name and sum(map(str.isdigit, name)) <= _NAME_DIGITS else "untrusted"
