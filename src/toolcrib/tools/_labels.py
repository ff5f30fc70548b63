"""Labels of a tool: what it does, and how far each part of its results can be trusted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from toolcrib.hooks import require_parameters

Effect: TypeAlias = Literal[
    "none", "fetch", "write", "create", "send", "spend", "delete", "share", "execute", "program"
]
"""The effect of a tool.

`none` reads, and `fetch` reads from an address that an argument names. `write` and `create` change and add something in
the user's own space, where it can be undone. `send`, `spend`, `delete`, `share` and `execute` leave that space, or
cannot be undone; so does what a tool without an effect does. A `program` runs a text of the model's whose own calls are
judged one by one, as those of a `Toolkit` are.
"""

INSIDE: Final[frozenset[Effect]] = frozenset({"write", "create"})
"""Effects inside the user's own space: values of strangers are asked about, and unknown ones are not."""

Trust: TypeAlias = Literal["trusted", "name", "untrusted"]
"""The trust in a text.

`trusted` is the host's or the user's own, `untrusted` may be a stranger's. A `name` is one that people choose, such as
that of a channel: it is trusted as long as it is short, since a longer one may be an instruction, and as long as it is
made of at most four words and three digits, and so is not an address, link, path, host, number or option of a command.
"""

Labels: TypeAlias = Trust | Mapping[str, Trust]
"""The trust of a whole result, or of its fields by name; `"*"` is for the other fields, which are untrusted without it.

A field is named by itself (`"subject"`), with those that it is in (`"items.subject"`), or as one of a list
(`"items[2].subject"`); the closest name counts. A text that is in no object may be all of them: it is as trusted as the
least of them.
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
_LEAST_FIRST: Final[Sequence[Trust]] = ("untrusted", "name", "trusted")
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
        require_parameters("source function", source, "arguments", "result", result="the trust", is_awaited=False)
        return
    trusts = list(cast("Mapping[str, Any]", source).values()) if isinstance(source, Mapping) else [source]
    for trust in trusts:
        if trust not in _TRUSTS:
            known = ", ".join(map(repr, get_args(Trust)))
            raise ValueError(
                f"{who}: source is {known}, or these by field name, or a function; {trust!r} is not one of them"
            )


class Place:
    """Place of a value in a result. Values in one object or list share it, so that a long key is kept once.

    Attributes:
        parent: The place of the object or list that it is in; None for the result itself.
        key: Its key or index there.
        is_list: Whether a list is there.
        has_untrusted: Whether an object or list there contains untrusted text.
    """

    __slots__ = ("has_untrusted", "is_list", "key", "parent")

    def __init__(self, parent: Place | None = None, key: str | int = "") -> None:
        self.parent, self.key = parent, key
        self.is_list = self.has_untrusted = False

    def __str__(self) -> str:
        keys: list[str | int] = []
        place = self
        while place.parent is not None:
            keys.append(place.key)
            place = place.parent
        parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in reversed(keys))
        return "".join(parts).removeprefix(".")

    def mark(self) -> None:
        """Mark it, and all that it is in, as containing untrusted text."""
        place: Place | None = self
        while place is not None and not place.has_untrusted:
            place.has_untrusted = True
            place = place.parent

    def is_beside(self) -> bool:
        """Return whether the closest of what it is in that has an untrusted text is an object."""
        place = self.parent
        while place is not None and not place.has_untrusted:
            place = place.parent
        return place is not None and not place.is_list


class LabelledText(NamedTuple):
    """A text or a number of a result.

    Attributes:
        place: Where it stands; of a key, where its object does.
        value: The text or number.
        trust: How far it can be trusted; a `name` is one that is short enough.
        is_beside: Whether it is trusted, and in an object with an untrusted text.
        is_key: Whether it is a key of an object.
    """

    place: Place
    value: Any
    trust: Trust
    is_beside: bool = False
    is_key: bool = False


def labelled(value: Any, labels: Labels, place: Place | None = None) -> Iterator[LabelledText]:
    """Yield the texts and numbers of a JSON value, each with its place and its trust; keys of objects are texts, too.

    A trusted value is beside an untrusted one when both are in the same object, and not in two items of a list: who
    wrote the other may have brought the object, such as the sender of a mail. That holds as well where an untrusted
    field is null or missing. One that has a label by its place, as in `[2].sender`, is not beside: whoever wrote that
    label has looked at it.

    Args:
        value: The value, as JSON shapes.
        labels: How far it can be trusted.
        place: Where it stands, of a value of a stream.
    """
    named = _Labels(labels if isinstance(labels, Mapping) else {"*": labels})
    found: list[tuple[LabelledText, bool]] = []
    for leaf, part, label, is_key in _leaves(value, place or Place(), named):
        text = LabelledText(leaf, part, _judged(part, label.trust), is_key=is_key)
        found.append((text, label.is_by_index))
        container = leaf if is_key else leaf.parent
        if container is not None and text.trust == "untrusted":
            container.mark()
    for text, is_by_index in found:
        if text.trust == "untrusted" or is_by_index:
            yield text
        else:
            yield text._replace(is_beside=(text.is_key and text.place.has_untrusted) or text.place.is_beside())


_Fields: TypeAlias = "tuple[str, _Fields] | None"
"""The keys that lead to a place, the last one first."""


class _Label(NamedTuple):
    """A label that a place has: by its field or index, or else `*`; `field` is the field that is named."""

    trust: Trust
    is_by_index: bool = False
    is_named: bool = False
    field: _Fields = None


class _Labels:
    """Labels by name. To find that of a field takes time by the longest name alone."""

    def __init__(self, labels: Mapping[str, Trust]) -> None:
        self._labels, self._longest = labels, max(map(len, labels), default=0)
        self._rest = _Label(labels.get("*", "untrusted"))
        untrusted = (name for name, trust in labels.items() if trust == "untrusted" and name != "*" and "[" not in name)
        self.untrusted = frozenset(name.rpartition(".")[2] for name in untrusted)
        trusts = [trust for name, trust in labels.items() if "[" not in name]
        self.of_text = _Label(min([self._rest.trust, *trusts], key=_LEAST_FIRST.index))

    def lacks(self, fields: Mapping[str, Any], missing: frozenset[str]) -> bool:
        """Return whether an untrusted field may be missing in an object, and in what it is in and what is in it."""
        if self._rest.trust == "untrusted":
            return True
        lists = (cast("Sequence[Any]", part) if isinstance(part, list | tuple) else (part,) for part in fields.values())
        return bool(missing) and not any(isinstance(value, Mapping) for items in lists for value in items)

    def path_of(self, path: str | None, key: str | int) -> str | None:
        """Return the path of a key or index below a path; None for one that is longer than each name."""
        if path is None or (isinstance(key, str) and len(key) > self._longest):
            return None
        below = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        return below if len(below) <= self._longest else None

    def of(self, path: str | None, fields: _Fields, above: _Label, name: str = "") -> _Label:
        """Return the label of a field: the longest name counts.

        What is in an untrusted field is untrusted, unless a name has that field, too.
        """
        if path and path in self._labels:
            return _Label(self._labels[path], "[" in path, is_named=True, field=fields)
        found: Any = None
        field, is_inside = fields, above.is_named and above.trust == "untrusted"
        while fields is not None and len(fields[0]) + len(name) < self._longest + 1:
            is_inside = is_inside and fields is not above.field
            key, fields = fields
            name = f"{key}.{name}" if name else key
            found = found if is_inside else self._labels.get(name, found)
        if found is not None:
            return _Label(found, is_named=True, field=field)
        return above if above.is_named and above.trust == "untrusted" else self._rest

    def of_item(self, path: str | None, above: _Label) -> _Label:
        """Return the label of an item of a list."""
        return _Label(self._labels[path], is_by_index=True, is_named=True) if path and path in self._labels else above


def _leaves(value: Any, place: Place, labels: _Labels) -> Iterator[tuple[Place, Any, _Label, bool]]:
    """Yield the texts and numbers of a value, each with its place, its label, and whether it is a key."""
    start = str(place)
    path = labels.path_of("", start) if start else ""
    label = labels.of_item(path, labels.of(None, None, _Label("trusted")))
    stack: list[tuple[Place, str | None, _Fields, _Label, frozenset[str], Any]] = []
    stack.append((place, path, None, label, labels.untrusted, value))
    while stack:
        place, path, fields, label, missing, part_value = stack.pop()
        if label.trust == "untrusted" and place.parent is not None and (not part_value or part_value is True):
            place.parent.mark()  # what is null, true, false or empty is not a text
        if isinstance(part_value, Mapping):
            parts = [(str(key), part) for key, part in cast("Mapping[Any, Any]", part_value).items()]
            of_keys, missing = labels.of(path, fields, label, "*"), missing.difference(name for name, _ in parts)
            if labels.lacks(cast("Mapping[str, Any]", part_value), missing):
                place.mark()
            for name, part in reversed(parts):
                below, inner = labels.path_of(path, name), (name, fields)
                stack.append((Place(place, name), below, inner, labels.of(below, inner, label), missing, part))
            for name, _ in parts:
                yield place, name, of_keys, True
        elif isinstance(part_value, Sequence) and not isinstance(part_value, str | bytes):
            items = cast("Sequence[Any]", part_value)
            place.is_list = True
            for number in reversed(range(len(items))):
                below = labels.path_of(path, number)
                stack.append(
                    (Place(place, number), below, fields, labels.of_item(below, label), missing, items[number])
                )
        elif part_value is not None and not isinstance(part_value, bool):
            is_in_none = fields is None and not label.is_named  # a text that is in no field may have those of all
            yield place, part_value, labels.of_text if is_in_none else label, False


def _judged(leaf: Any, trust: Trust) -> Trust:
    if trust != "name":
        return trust
    name = unicodedata.normalize("NFKC", leaf) if isinstance(leaf, str) and len(leaf) <= _NAME_CHARS else ""
    is_name = re.fullmatch(_NAME, name) is not None and any(map(str.isalpha, name))
    return "name" if is_name and sum(map(str.isdigit, name)) <= _NAME_DIGITS else "untrusted"
