"""Core schemas of pydantic that read and write the JSON form of an input.

Pydantic's own write some values so that they cannot be read back: bytes that are not text, secrets, sets in any order,
iterables that can be read only once. Rewritten, they write each value so that an equal one is read from it in every
process, and take only numbers that are finite, unless the type or the default says otherwise.
"""

from __future__ import annotations

import base64
import collections.abc
import json
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, TypeAlias, cast

import pydantic
from pydantic_core import (
    CoreSchema,
    PydanticKnownError,
    PydanticSerializationUnexpectedValue,
    SchemaSerializer,
    SchemaValidator,
    core_schema,
)

from toolcrib.schema._core_schema import is_secret_function
from toolcrib.schema._json_form import (
    BASE64,
    SCALARS,
    Context,
    Notes,
    bytes_form,
    in_order,
    is_finite,
    json_form,
    number_form,
)

_Node: TypeAlias = dict[str, Any]

# --- functions in schemas: writing a value, or reading it before or after its type does


def _write_any(value: Any, info: Any) -> Any:
    return json_form(value, info.context)


def _write_number(value: Any, info: Any) -> Any:
    return number_form(float(_expected((float, int), value)))


def _write_bytes(value: Any, info: Any) -> Any:
    return bytes_form(_expected(bytes, value))


def _write_key(value: Any, info: Any) -> str:
    return json.dumps(json_form(value, info.context), sort_keys=True)


def _write_set(value: Any, handler: Callable[[Any], Any]) -> Any:
    return in_order(handler(_expected((set, frozenset), value)))


def _write_mapping(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
    """Return a mapping in its JSON form; one with the keys 1 and "1", which are one key there, has none."""
    written = handler(value)
    return written if len(written) == len(value) else json_form(value, info.context)


def _write_secret(shown: Callable[[Any, Any], Any], value: Any, info: Any) -> Any:
    secret = _expected((pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret), value)
    return shown(value, info) if info.context["redact"] else json_form(secret.get_secret_value(), info.context)


def _expected(kind: type | tuple[type, ...], value: Any) -> Any:
    """Return the value, or have pydantic look at the next member of a union."""
    if isinstance(value, kind):
        return value
    raise PydanticSerializationUnexpectedValue(f"not expected: {type(value)}")


def _read_bytes(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(BASE64):
        return base64.b64decode(value.removeprefix(BASE64), validate=True)
    return value


def _read_key(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _read_member(members: Sequence[tuple[Any, Any]], value: Any) -> Any:
    return next((member for form, member in members if type(form) is type(value) and form == value), value)


def _refuse(classes: tuple[type, ...], value: Any) -> Any:
    if isinstance(value, classes):
        raise ValueError("an instance of another member of the union")
    return value


def _require_finite(value: Any) -> Any:
    try:
        finite = is_finite(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    if not finite:
        raise PydanticKnownError("finite_number")
    return value


# --- schemas ---------------------------------------------------------------------------------------------------------


def canonical_schema(schema: CoreSchema, authors: bool = True) -> CoreSchema:
    """Return a core schema that reads and writes the JSON form; the same object where it does so already.

    Args:
        authors: Write values as the authors of their types have them written, where that is in another way.
    """
    return _Rewriter(schema, authors).of(schema, _Around({}, infinite=False, nested=False))


def validator_of(schema: CoreSchema) -> SchemaValidator:
    """Return a validator of a rewritten schema, without the prebuilt validators of its models."""
    return SchemaValidator(schema, None, _use_prebuilt=False)


def serializer_of(schema: CoreSchema) -> SchemaSerializer:
    """Return a serializer of a rewritten schema, without the prebuilt serializers of its models."""
    return SchemaSerializer(schema, None, _use_prebuilt=False)


def is_styled(schema: Any) -> bool:
    """Return whether the author of a type anywhere in a core schema has its values written in a way of their own."""
    if isinstance(schema, list | tuple):
        return any(map(is_styled, cast("Sequence[Any]", schema)))
    if not isinstance(schema, dict):
        return False
    named = cast("_Node", schema)
    skipped = _NOT_SCHEMAS if isinstance(named.get("type"), str) else ()
    return _own_style(named) or any(is_styled(part) for key, part in named.items() if key not in skipped)


def _own_style(schema: _Node) -> bool:
    writing: _Node = schema.get("serialization") or {}
    function: Any = writing.get("function") if "type" in writing else None
    module: str = getattr(function, "__module__", None) or type(function).__module__
    has_style = function is not None and not module.startswith(("pydantic.", "toolcrib.schema."))
    return has_style or bool(schema.get("serialization_exclude") or schema.get("serialization_exclude_if"))


class _Around(NamedTuple):
    """The surroundings of a part of a schema.

    Attributes:
        config: The configuration of the nearest model, dataclass or TypedDict.
        infinite: The default is not finite, so that other numbers need not be.
        nested: It is inside a model.
    """

    config: Mapping[str, Any]
    infinite: bool
    nested: bool


class _Rewriter:
    """Rewrites a core schema from the inside out, by a rule for each kind of part."""

    def __init__(self, schema: Any, authors: bool) -> None:
        self._authors = authors
        self._definitions: dict[str, Any] = {part["ref"]: part for part in schema.get("definitions", ())}

    def of(self, node: Any, around: _Around) -> Any:
        """Return a part of a schema, rewritten."""
        if isinstance(node, list | tuple):
            parts = cast("list[Any] | tuple[Any, ...]", node)
            nodes = [self.of(part, around) for part in parts]
            changed = any(new is not old for new, old in zip(nodes, parts, strict=True))
            return parts if not changed else nodes if isinstance(parts, list) else tuple(nodes)
        if not isinstance(node, dict):
            return node
        schema = cast("_Node", node)
        kind = schema.get("type")
        if not isinstance(kind, str):  # fields or choices by name
            return self._inside(schema, around, ())
        infinite = around.infinite or (kind == "default" and not is_finite(schema.get("default")))
        within = _Around(schema.get("config") or around.config, infinite, around.nested or kind in _NESTING)
        schema = self._inside(schema, within, _NOT_SCHEMAS)
        if "serialization" in schema:
            schema = self._styled(schema, within)
        rule = _RULES.get(kind)
        return schema if rule is None else rule(self, schema, within._replace(nested=around.nested))

    def _inside(self, schema: _Node, around: _Around, skipped: Set[str] | tuple[()]) -> _Node:
        parts = {key: part for key, part in schema.items() if type(part) in _BRANCHES and key not in skipped}
        node = {key: self.of(part, around) for key, part in parts.items()}
        return {**schema, **node} if any(node[key] is not schema[key] for key in node) else schema

    def _styled(self, schema: _Node, around: _Around) -> _Node:
        """Return a part with its own way of being written, as far as that is kept."""
        writing: _Node = schema["serialization"]
        if is_secret_function(writing.get("function")):
            return {**schema, "serialization": {**writing, "function": partial(_write_secret, writing["function"])}}
        if not self._authors and _own_style(schema):
            return _without(schema, "serialization")
        inner = self.of(writing.get("schema"), around)
        return schema if inner is writing.get("schema") else {**schema, "serialization": {**writing, "schema": inner}}

    # --- the rules

    def default(self, schema: _Node, around: _Around) -> _Node:
        """Convert a default to the field's type, where it can be read as that: of a Path, not its text."""
        default = schema.get("default")
        inner: _Node = schema["schema"]
        kind: type = inner.get("cls") or _KINDS.get(inner["type"]) or NoneType
        empty = type(default).__name__ in (inner["type"], "NoneType") and not default  # an array has no truth value
        expected = (literal for literal in inner.get("expected", ()) if type(literal) is type(default))
        if type(default) is kind or empty or any(literal == default for literal in expected):
            return schema
        found = [] if inner["type"] in _KINDS else list(self._definitions.values())
        complete: Any = {"type": "definitions", "schema": inner, "definitions": found} if found else inner
        try:
            value = validator_of(complete).validate_python(default)
            if type(value) is type(default) and value == default:
                return schema
        except Exception:  # a default that stands for none, and validators of the type's author
            return schema
        return {**schema, "default": value, "copy_default": True}

    def number(self, schema: _Node, around: _Around) -> _Node:
        allowed = around.infinite or schema.get("allow_inf_nan", around.config.get("allow_inf_nan"))
        if allowed:
            return _written({**schema, "allow_inf_nan": True}, _PLAIN(_write_number))
        return schema if allowed is False else {**schema, "allow_inf_nan": False}

    def finite(self, schema: _Node, around: _Around) -> _Node:
        return schema if around.infinite else _read("function-after", _require_finite, schema)

    def anything(self, schema: _Node, around: _Around) -> _Node:
        return self.finite(_written(schema, _PLAIN(_write_any)), around)

    def function(self, schema: _Node, around: _Around) -> _Node:
        return schema if "serialization" in schema else _written(schema, _PLAIN(_write_any))

    def container(self, schema: _Node, around: _Around) -> _Node:
        """Accept any items in a container that does not say what they are; a set has one order."""
        kind: str = schema["type"]
        part = "schema" if kind == "json" else "items_schema"
        if part not in schema:
            items = self.anything({"type": "any"}, around)
            extra = {"variadic_item_index": 0} if kind == "tuple" else {}
            schema = {**schema, part: [items] if kind == "tuple" else items, **extra}
        return _written(schema, _WRAP(_write_set)) if kind in ("set", "frozenset") else schema

    def mapping(self, schema: _Node, around: _Around) -> _Node:
        """Accept any keys and values in a mapping that does not say what they are; other keys become text."""
        for part in ("keys_schema", "values_schema"):
            if part not in schema:
                schema = {**schema, part: self.anything({"type": "any"}, around)}
        keys: _Node = schema["keys_schema"]
        if keys["type"] in _SEVERAL_KINDS or keys.get("schema", keys)["type"] == "any":
            return _written(schema, _WRAP(_write_mapping, info_arg=True))
        if keys.get("python_schema", keys).get("sub_type") in ("int", "float"):  # of an enum
            return {**schema, "keys_schema": _read("function-before", _number_of_key, keys)}
        if keys["type"] not in _NO_TEXT:
            return schema
        keys = _without(keys, "serialization") if keys["type"] == "frozenset" else keys  # it has the order of a set
        return {**schema, "keys_schema": _read("function-before", _read_key, _written(keys, _PLAIN(_write_key)))}

    def iterable(self, schema: _Node, around: _Around) -> _Node:
        """Read an iterable as a list: pydantic reads its items when the tool does, and only once."""
        rest = _without(schema, "type", "serialization")
        return self.container({"type": "list", "strict": False, **rest}, around)

    def sequence(self, schema: _Node, around: _Around) -> _Node:
        """Read a sequence as a list, as it is read from JSON."""
        steps: Any = schema["python_schema"].get("steps") or ({},)
        if steps[0].get("cls") not in (typing.Sequence, collections.abc.Sequence):
            return schema
        style = {"serialization": schema["serialization"]} if _own_style(schema) else {}
        return {**schema["json_schema"], "strict": False, **style}

    def octets(self, schema: _Node, around: _Around) -> _Node:
        if around.config.get("val_json_bytes", "utf8") != "utf8":
            return schema
        node = _written(schema, _PLAIN(_write_bytes))
        from_json = _read("function-before", _read_bytes, {**node, "strict": False})
        return _apart(from_json, _read("function-before", _read_bytes, node))

    def members(self, schema: _Node, around: _Around) -> _Node:
        """Read an enum or a Literal by the JSON form of its values, where these are not JSON themselves.

        A member of an enum in a Literal has the JSON form of its value.
        """
        members: Sequence[Any] = schema["members" if schema["type"] == "enum" else "expected"]
        values = [member.value if isinstance(member, Enum) else member for member in members]
        is_json = all(type(value) in SCALARS or isinstance(value, float) for value in values)
        if is_json and (schema["type"] == "enum" or values == [*members]):
            return _by_kind(schema, values)
        context: Context = {"redact": False, "notes": Notes([], [])}
        known = [(json_form(value, context), member) for value, member in zip(values, members, strict=True)]
        return _read("function-before", partial(_read_member, known), _written(schema, _PLAIN(_write_any)))

    def choices(self, schema: _Node, around: _Around) -> _Node:
        """Read an instance of a member of the union as that member, though another member be its base class."""
        classes = [self._class_of(choice) for choice in schema["choices"]]
        node: list[Any] = []
        for choice, cls in zip(schema["choices"], classes, strict=True):
            below = tuple(other for other in classes if cls and other and other is not cls and issubclass(other, cls))
            node.append(_without_instances(choice, below) if below else choice)
        changed = any(new is not old for new, old in zip(node, schema["choices"], strict=True))
        return {**schema, "choices": node} if changed else schema

    def _class_of(self, choice: Any) -> type | None:
        schema: _Node = cast("tuple[_Node, str]", choice)[0] if isinstance(choice, tuple) else choice
        schema = self._definitions.get(schema.get("schema_ref", ""), schema)
        return schema.get("cls") if schema["type"] in ("model", "dataclass") else None

    def named(self, schema: _Node, around: _Around) -> _Node:
        """Read fields by name too that have no other key, and have any values under keys that are not declared."""
        fields: Mapping[str, _Node] = schema["fields"]
        unnamed = {name: field for name, field in fields.items() if _has_no_key(field)}
        if unnamed:
            named = {name: {**field, "validation_alias": [*_paths(field), [name]]} for name, field in unnamed.items()}
            schema = {**schema, "fields": {**fields, **named}}
        extra = schema.get("extra_behavior") or around.config.get("extra_fields_behavior")
        if extra != "allow" or "extras_schema" in schema:
            return schema
        return {**schema, "extras_schema": self.anything({"type": "any"}, around)}

    def field(self, schema: _Node, around: _Around) -> _Node:
        """Write a field by the key from which it is read."""
        if not self._authors and _own_style(schema):
            schema = _without(schema, "serialization_exclude", "serialization_exclude_if")
        if schema.get("init") is False:  # a dataclass fills it by itself
            schema = {**schema, "serialization_exclude": True}
        by_alias = around.config.get("validate_by_alias") is not False
        key = next((path[0] for path in _paths(schema) if len(path) == 1), None) if by_alias else None
        if key != schema.get("serialization_alias"):
            schema = _without(schema, "serialization_alias") if key is None else {**schema, "serialization_alias": key}
        return schema

    def instance(self, schema: _Node, around: _Around) -> _Node:
        """Check instances again, which may have been changed since; and write them in the ways of this module."""
        if not around.nested:
            return schema
        config = {key: part for key, part in schema.get("config", {}).items() if not key.startswith("ser_json")}
        if "val_json_bytes" in config:
            config["ser_json_bytes"] = config["val_json_bytes"]
        again = "always" if all(map(_can_be_given, _fields_inside(schema))) else "never"
        node = {**schema, "config": config, "revalidate_instances": again}
        return self.finite(node, around) if schema.get("custom_init") else node  # it reads its fields by itself


def _paths(field: _Node) -> list[list[Any]]:
    """Return the paths under which a field with aliases is looked for."""
    alias: Any = field.get("validation_alias")
    if not isinstance(alias, list):
        return [] if alias is None else [[alias]]
    return cast("list[list[Any]]", alias if isinstance(alias[0], list) else [alias])


def _has_no_key(field: _Node) -> bool:
    return "validation_alias" in field and all(len(path) > 1 for path in _paths(field))


def _fields_inside(schema: _Node) -> list[_Node]:
    """Return the fields of a dataclass; none for a model, all of whose fields can be given."""
    while "schema" in schema:  # validators stand around the fields
        schema = schema["schema"]
    return schema.get("fields", []) if schema["type"] == "dataclass-args" else []


def _can_be_given(field: _Node) -> bool:
    """Return whether a dataclass has a field both when it is made and when it is written."""
    return field.get("init") is not False and not field.get("init_only")


def _by_kind(schema: _Node, values: Sequence[Any]) -> _Node:
    """Return an enum or a Literal that tells `true` from 1 in JSON, `false` from 0, and a number from its text."""
    has_truth = any(isinstance(value, bool) for value in values)
    alike = [value for value in values if isinstance(value, bool | int | float) and value in (0, 1)]
    is_mixed = has_truth and any(not isinstance(value, bool) for value in alike)
    is_number = schema.get("sub_type") in ("int", "float")
    if not is_number and (not alike or is_mixed):
        return schema
    loose = {**schema, "strict": False} if schema["type"] == "enum" else schema
    kind = partial(_require_kind, has_truth, is_number)
    return _apart(_read("function-before", kind, loose), _without(schema, "ref"))


def _require_kind(is_truth: bool, is_number: bool, value: Any) -> Any:
    """Return a value that no member of another kind is equal to, or is the text of."""
    if isinstance(value, int | float) and isinstance(value, bool) is not is_truth:
        raise PydanticKnownError("bool_type" if is_truth else "int_type")
    if is_number and isinstance(value, str):
        raise PydanticKnownError("int_type")
    return value


def _number_of_key(value: Any) -> Any:
    """Return the number that the text of a key is of, if it is of one."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _without_instances(choice: Any, classes: tuple[type, ...]) -> Any:
    if isinstance(choice, tuple):  # with a label
        schema, label = cast("tuple[_Node, str]", choice)
        return _without_instances(schema, classes), label
    return _apart(choice, _read("function-before", partial(_refuse, classes), choice))


def _without(schema: _Node, *keys: str) -> _Node:
    return {key: part for key, part in schema.items() if key not in keys}


def _written(schema: _Node, writing: Any) -> _Node:
    """Return a schema whose values are written in this way, inside the one that it has."""
    if "serialization" not in schema:
        return {**schema, "serialization": writing}
    inner = {**_without(schema, "ref"), "serialization": writing}
    node = {"type": "chain", "steps": [inner], "serialization": schema["serialization"]}
    return {**node, "ref": schema["ref"]} if "ref" in schema else node


def _read(kind: str, function: Callable[[Any], Any], schema: _Node) -> _Node:
    """Return a schema with a function that sees values before or after it."""
    node = {"type": kind, "function": {"type": "no-info", "function": function}, "schema": _without(schema, "ref")}
    return {**node, "ref": schema["ref"]} if "ref" in schema else node


def _apart(from_json: _Node, from_python: _Node) -> _Node:
    """Return a schema that reads JSON and Python apart: before a function, JSON would count as Python."""
    return {"type": "json-or-python", "json_schema": from_json, "python_schema": from_python}


_PLAIN = partial(core_schema.plain_serializer_function_ser_schema, info_arg=True)
_WRAP = core_schema.wrap_serializer_function_ser_schema
_NOT_SCHEMAS = frozenset({"config", "default", "discriminator", "expected", "members", "metadata", "serialization"})
_BRANCHES = frozenset({dict, list, tuple})
_NESTING = frozenset({"definitions", "model", "dataclass"})
_NO_TEXT = frozenset({"call", "dataclass", "frozenset", "model", "named-tuple", "tuple"})  # as keys
_SEVERAL_KINDS = frozenset({"union", "nullable"})  # whose values, as keys, may be one text
_KINDS: Mapping[str, type] = {
    "bool": bool,
    "date": date,
    "datetime": datetime,
    "decimal": Decimal,
    "float": float,
    "int": int,
    "str": str,
    "time": time,
    "timedelta": timedelta,
}
_RULES: Mapping[str, Callable[[_Rewriter, _Node, _Around], _Node]] = {
    "any": _Rewriter.anything,
    "bytes": _Rewriter.octets,
    "complex": _Rewriter.finite,
    "dataclass": _Rewriter.instance,
    "dataclass-field": _Rewriter.field,
    "default": _Rewriter.default,
    "deque": _Rewriter.container,
    "dict": _Rewriter.mapping,
    "enum": _Rewriter.members,
    "float": _Rewriter.number,
    "frozenset": _Rewriter.container,
    "function-plain": _Rewriter.function,
    "generator": _Rewriter.iterable,
    "json": _Rewriter.container,
    "json-or-python": _Rewriter.sequence,
    "list": _Rewriter.container,
    "literal": _Rewriter.members,
    "model": _Rewriter.instance,
    "model-field": _Rewriter.field,
    "model-fields": _Rewriter.named,
    "set": _Rewriter.container,
    "tuple": _Rewriter.container,
    "typed-dict": _Rewriter.named,
    "typed-dict-field": _Rewriter.field,
    "union": _Rewriter.choices,
}
ANY = _written({"type": "any"}, _PLAIN(_write_any))
"""The schema by which a value of any type is written."""
