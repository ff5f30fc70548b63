"""Types of stubs: JSON schemas as builtins, Literal, and TypedDicts that stubs share.

What goes to a tool and comes from it is JSON, so the types say JSON shapes: `str` for a date, a TypedDict for a model.
"""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from toolcrib.errors import SchemaTooLarge
from toolcrib.jsonschema import (
    ABOUT,
    PYTHON_TYPES,
    SchemaWalk,
    alternatives,
    as_one,
    kinds_of,
    ref_of,
    rewrite,
    values_of,
)
from toolcrib.schema._signature import unnamed_text

STUB_IMPORTS = "from typing import Any, Literal, Never, NotRequired, TypedDict, Unpack"
"""The imports of the stubs of tools, as a line of Python."""

_TAKEN = frozenset(dir(builtins)) | {"Any", "Literal", "Never", "NotRequired", "TypedDict", "Unpack"}
_NO_WORD = r"[^0-9A-Za-z_]+"
_LITERAL = re.compile(r"Literal\[[^][|]*\]")  # of values with none of these in them
_FORMATS = {
    "date": "a date like 2025-01-31",
    "date-time": "a date and time like 2025-01-31T14:30:00Z",
    "time": "a time like 14:30:00",
    "duration": "an ISO 8601 duration like PT1H30M",
    "uuid": "a UUID",
    "uri": "a URL",
    "email": "an email address",
    "path": "a file path",
}


class _Definition:
    __slots__ = ("comments", "description", "keys", "name", "required", "schema", "walk")

    def __init__(self, name: str, schema: Mapping[str, Any], walk: SchemaWalk) -> None:
        self.name, self.schema, self.walk = name, schema, walk
        self.description, self.required = schema.get("description", ""), set[str](schema.get("required", ()))
        self.keys: dict[str, str] = {}
        self.comments: dict[str, str] = {}

    def render(self, docs: bool) -> str:
        if not self.keys:
            return f"class {self.name}(TypedDict):\n    pass"
        if not all(key.isidentifier() and not keyword.iskeyword(key) and key[:2] != "__" for key in self.keys):
            items = ", ".join(f"{key!r}: {self._type(key)}" for key in self.keys)
            return f"{self.name} = TypedDict({self.name!r}, {{{items}}})"
        lines = [f"class {self.name}(TypedDict):"]
        if docs and self.description:
            lines.extend(docstring_lines(self.description))
        for key in self.keys:
            comment = f"  # {self.comments[key]}" if docs and self.comments.get(key) else ""
            lines.append(f"    {key}: {self._type(key)}{comment}")
        return "\n".join(lines)

    def _type(self, key: str) -> str:
        return self.keys[key] if key in self.required else f"NotRequired[{self.keys[key]}]"


class StubTypes:
    """The TypedDicts that stubs refer to, shared by as many stubs as are shown together.

    Two tools that use one model share its definition; two different models of one name get different names. A model
    that is both taken and returned is one TypedDict, in which a key that may be left out of either may be absent.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, list[_Definition]] = {}
        self._names: set[str] = set()
        self._finished: list[_Definition] = []
        self._unfinished: list[_Definition] = []
        self._forward = False

    def render(self, *, docs: bool = True) -> list[str]:
        """Return the definitions, each before the first that uses it."""
        return [definition.render(docs) for definition in self._finished]

    @contextmanager
    def walking(self, root: Any, tool: str) -> Generator[SchemaWalk]:
        """Return the walk over a schema of a tool; what was defined on one that became too large is forgotten."""
        walk = SchemaWalk(root, tool)
        try:
            yield walk
        except SchemaTooLarge:
            self._unfinished = []
            self._finished = [definition for definition in self._finished if definition.walk is not walk]
            for name, known in self._by_name.items():
                self._by_name[name] = [definition for definition in known if definition.walk is not walk]
            raise

    def annotation(self, schema: Any, walk: SchemaWalk, name: str) -> str:
        """Return the type that a JSON schema describes, having defined what it refers to.

        Args:
            walk: The walk over the schema that it is in.
            name: The name of an object that has none of its own.

        Raises:
            SchemaTooLarge: Too much would have to be written.
        """
        if not isinstance(schema, Mapping):
            return "Any"
        ref, named = ref_of(schema), walk.resolved(schema)
        name = name if ref is None else ref.rsplit("/", 1)[-1]
        if "allOf" in named and not is_alias(named):
            with walk.part():
                named = as_one(named, walk)
        if ref is not None and is_record(named):
            return self._define(ref, name, named, walk)
        if ref in walk.open:
            return "Any"  # an alias that contains itself has no name that every type checker takes
        with walk.part(ref):
            return self._plain(named, walk, name)

    def unnamed(self, schema: Mapping[str, Any], walk: SchemaWalk, name: str) -> str:
        """Return the arguments that cannot be written as `name=value`; `schema` is that of an object of them."""
        return f"**{name.rpartition('.')[2]}: Unpack[{self.annotation(schema, walk, camel(name))}]"

    def _plain(self, schema: Mapping[str, Any], walk: SchemaWalk, name: str) -> str:
        values, choices = values_of(schema), alternatives(schema)
        if values is not None:
            return literal(values)
        if choices:
            return self._union([(part, f"{name}{number}") for number, part in enumerate(choices, 1)], walk)
        if is_alias(schema):
            return self.annotation(schema["allOf"][0], walk, name)
        kinds = kinds_of(schema) or ["object" if "properties" in schema else ""]
        return union([self._of_type(kind, schema, walk, name) for kind in kinds])

    def _union(self, named: Sequence[tuple[Any, str]], walk: SchemaWalk) -> str:
        """Return the type of one of some parts; `named` has what each is called where it has no name of its own."""
        parts = dict.fromkeys(self.annotation(part, walk, name) for part, name in named)
        literals = [part for part in parts if _LITERAL.fullmatch(part)]
        if len(literals) > 1:
            values = ", ".join(part[len("Literal[") : -1] for part in literals)
            parts = {f"Literal[{values}]": None} | {part: None for part in parts if not _LITERAL.fullmatch(part)}
        walk.check_levels(len(parts))  # Python reads `A | B | C` as `(A | B) | C`
        return union([*parts])

    def _of_type(self, kind: str, schema: Mapping[str, Any], walk: SchemaWalk, name: str) -> str:
        if kind == "array":
            items = schema.get("prefixItems")
            if isinstance(items, list):  # a list at run time: JSON has no tuple
                named = [(part, f"{name}{i + 1}") for i, part in enumerate(cast("list[Any]", items))]
                return f"list[{self._union(named, walk) or 'Any'}]"
            return f"list[{self.annotation(schema.get('items'), walk, f'{name}Item')}]"
        if kind == "object":
            if is_record(schema):
                return self._define(None, name, schema, walk)
            return f"dict[str, {self.annotation(schema.get('additionalProperties'), walk, f'{name}Value')}]"
        return PYTHON_TYPES.get(kind, "Any")

    def _define(self, ref: str | None, name: str, schema: Mapping[str, Any], walk: SchemaWalk) -> str:
        known = self._known(ref, name, schema, walk)
        if known is not None:
            known.required &= set(schema.get("required", ()))
            self._forward = self._forward or known in self._unfinished
            return known.name
        definition = _Definition(self._free_name(name), schema, walk)
        self._by_name.setdefault(name, []).append(definition)
        self._names.add(definition.name)
        if ref is not None:
            walk.memo[ref] = definition
        self._unfinished.append(definition)
        outer = self._forward
        with walk.part():
            for key, part in schema["properties"].items():
                self._forward = False
                text = self.annotation(part, walk, f"{definition.name}{camel(key)}")
                definition.keys[key] = repr(text) if self._forward else text
                definition.comments[key] = comment_of(part)
        self._forward = outer
        self._unfinished.pop()
        self._finished.append(definition)
        return definition.name

    def _known(self, ref: str | None, name: str, schema: Mapping[str, Any], walk: SchemaWalk) -> _Definition | None:
        """Return the definition of the same type, if there is one; each reference is compared once."""
        walk.count()
        if ref in walk.memo:
            return walk.memo[ref]
        same = (other for other in self._by_name.get(name, ()) if _same_type(schema, walk, other.schema, other.walk))
        found = next(same, None)
        if found is not None and ref is not None:
            walk.memo[ref] = found
        return found

    def _free_name(self, name: str) -> str:
        wanted = re.sub(_NO_WORD, "_", name).strip("_") or "Record"
        if wanted[0].isdigit() or keyword.iskeyword(wanted) or wanted in _TAKEN:
            wanted = f"{wanted}_" if not wanted[0].isdigit() else f"Record{wanted}"
        free, number = wanted, 2
        while free in self._names:
            free, number = f"{wanted}_{number}", number + 1
        return free


class SignatureTypes(StubTypes):
    """Types as they stand in a signature of one line: an object with known keys is a `dict`, and nothing is defined."""

    def unnamed(self, schema: Mapping[str, Any], walk: SchemaWalk, name: str) -> str:
        """Return the arguments as a program gives them: `**{'x-key': str, 'user-agent'?: str}`."""
        types = {key: self.annotation(part, walk, "") for key, part in schema["properties"].items()}
        return unnamed_text(types, schema["required"])

    def _of_type(self, kind: str, schema: Mapping[str, Any], walk: SchemaWalk, name: str) -> str:
        text = super()._of_type(kind, schema, walk, name)
        return {"list[Any]": "list", "dict[str, Any]": "dict"}.get(text, text)

    def _define(self, ref: str | None, name: str, schema: Mapping[str, Any], walk: SchemaWalk) -> str:
        return "dict"


def is_alias(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is another one, about which it says something."""
    return len(schema.get("allOf", ())) == 1 and not schema.keys() - ABOUT - {"allOf"}


def is_record(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is that of an object with known keys."""
    return bool(schema.get("properties")) and schema.get("type", "object") in ("object", ["object", "null"])


_WORDS_ABOUT = frozenset({"description", "default", "required", "title", "$defs", "examples"})


def _same_type(schema: Any, walk: SchemaWalk, other: Any, others: SchemaWalk) -> bool:
    """Return whether two schemas describe one type: references resolved, words and requiredness left out."""
    waiting: list[tuple[Any, Any]] = [(schema, other)]
    compared: set[tuple[str, str]] = set()
    while waiting:
        left, right = waiting.pop()
        walk.count()
        refs = ref_of(left), ref_of(right)
        if refs[0] is not None and refs[1] is not None:
            if refs in compared and len(left) == len(right) == 1:
                continue
            compared.add((refs[0], refs[1]))
        outside, inside = _split(walk.resolved(left) if isinstance(left, Mapping) else left)
        others_outside, others_inside = _split(others.resolved(right) if isinstance(right, Mapping) else right)
        if outside != others_outside:
            return False
        waiting += zip(inside, others_inside, strict=True)
    return True


def _split(schema: Any) -> tuple[str, list[Any]]:
    """Return a schema's own statements about its type, as JSON, and the schemas directly inside it, in one order."""
    inside: list[Any] = []
    if not isinstance(schema, Mapping):
        return json.dumps(schema, default=str), inside
    named = cast("Mapping[str, Any]", schema)
    skipped = _WORDS_ABOUT | {"additionalProperties"} if "properties" in named else _WORDS_ABOUT
    telling = {
        key: dict(sorted(cast("Mapping[str, Any]", part).items())) if isinstance(part, Mapping) else part
        for key, part in sorted(named.items())
        if key not in skipped
    }
    return json.dumps(rewrite(telling, inside.append), sort_keys=True, default=str), inside


def literal(values: Sequence[Any]) -> str:
    """Return the type of one of a few values; of none, it is that of no value."""
    if not values:
        return "Never"
    if all(value is None or isinstance(value, str | int) for value in values):
        return f"Literal[{', '.join(repr(value) for value in values)}]"
    return union(["float" if isinstance(value, int | float) else "Any" for value in values])


def union(parts: Sequence[str]) -> str:
    """Return the union of types that are written out."""
    distinct = list(dict.fromkeys(parts))
    return "Any" if "Any" in distinct else " | ".join(distinct)


def camel(name: str) -> str:
    """Return `search_products` as `SearchProducts`."""
    return "".join(word[:1].upper() + word[1:] for word in re.sub(_NO_WORD, "_", name).split("_"))


def comment_of(schema: Any) -> str:
    """Return on one line what a schema says of a value, or what its text has to look like."""
    if not isinstance(schema, Mapping):
        return ""
    named = cast("Mapping[str, Any]", schema)
    hint = _FORMATS.get(str(named.get("format")), "")
    description = " ".join(str(named.get("description", "")).split())
    return f"{description} ({hint})" if description and hint else description or hint


def docstring_text(text: str) -> str:
    """Return `text` as it stands between the quotes of a docstring."""
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'{safe[:-1]}\\"' if safe.endswith('"') else safe


def docstring_lines(text: str) -> list[str]:
    """Return `text` as the lines of an indented docstring."""
    lines = docstring_text(text).splitlines() or [""]
    if len(lines) == 1:
        return [f'    """{lines[0]}"""']
    return [f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """']
