"""Canonical arguments: the one JSON form of validated arguments, what is shown of it, and its digest."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, cast

from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

from toolcrib.schema._core_schema import Fields, fields_of
from toolcrib.schema._json_form import UNWRITTEN, WITHOUT_FORM, Context, Notes, json_form, json_forms
from toolcrib.schema._markers import REDACTED
from toolcrib.schema._model import InputModel

_Write: TypeAlias = Callable[..., dict[str, Any]]
_SECRET_DIGITS: Final = 4  # of a number that can be hidden in a text
_UNEXPECTED: Final = object()  # in the place of a value that is not of its type
_EXCLUDED: Final = object()  # in the place of one that its author has not written
_encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of a tool's name and its arguments in their JSON form; their order does not count.

    Args:
        arguments: JSON shapes, such as the values of canonical arguments. Python values count as what they are, not as
            the types of the tool would have them; secrets with their real value.
    """
    return untyped(arguments).digest(tool)


def untyped(arguments: Mapping[str, Any]) -> CanonicalArguments:
    """Return the canonical form of arguments of a tool that has no schema: every value counts as what it is."""
    notes = Notes([], [])
    values = shown = json_forms(arguments, {"redact": False, "notes": notes})
    if notes.secrets:
        shown = json_forms(arguments, {"redact": True, "notes": Notes([], [])})
    return CanonicalArguments(values, shown, tuple(notes.without_form))


class CanonicalArguments:
    """Validated arguments as JSON shapes, made once: to show, to digest, to record and to send to another process.

    Attributes:
        values: The real values, secrets too: for a digest and for safe keeping, never for a log.
        shown: The same with secrets hidden, for a person, a record or a log. It is the same object as `values` where
            there is nothing to hide, and the object is shared: copy it to change it.
        without_form: Not empty when a value has no JSON form, which only a host can pass: `values` has the name of its
            type in its place. Such a value counts in the digest by its identity and its repr, so that it can be
            approved in its own process only.
    """

    __slots__ = ("_digests", "shown", "values", "without_form")

    def __init__(self, values: dict[str, Any], shown: dict[str, Any], without_form: tuple[str, ...] = ()) -> None:
        self.values = values
        self.shown = shown
        self.without_form = without_form
        self._digests: dict[tuple[str, bytes], str] = {}

    def __repr__(self) -> str:
        return f"CanonicalArguments({self.shown!r})"

    def secrets(self, declared: Container[str] | None = None) -> frozenset[str]:
        """Return the texts that `shown` hides, and the numbers of at least four digits, as texts.

        Args:
            declared: The names that the schema of the arguments has: other keys in a secret are secret too. None where
                no schema says which keys are names.
        """
        return frozenset(_hidden(self.values, self.shown, declared)) if self.has_secrets else frozenset()

    @property
    def has_secrets(self) -> bool:
        """True if a value is hidden where the arguments are shown."""
        return self.shown is not self.values

    def digest(self, tool: str, key: bytes = b"") -> str:
        """Return the digest that binds a grant to these arguments of the tool of this name; made once for each key.

        Args:
            tool: The name.
            key: Of arguments with secrets, the key of the digest: who has the digest alone cannot try what a PIN is.
        """
        key = key if self.has_secrets else b""
        found = self._digests.get((tool, key))
        if found is None:
            unnamed = [list(self.without_form)] if self.without_form else []
            text = _encoded([tool, self.values, *unnamed]).encode("utf-8", "surrogatepass")
            hashed = hmac.new(key, text, hashlib.sha256) if key else hashlib.sha256(text)
            found = self._digests[tool, key] = hashed.hexdigest()
        return found


class Writer:
    """Makes the canonical form of the arguments of one input."""

    __slots__ = ("_defaults", "_inputs", "_keys", "_plain", "_read", "_undeclared", "_write")

    def __init__(self, inputs: InputModel) -> None:
        self._inputs = inputs
        self._keys = inputs.reading_keys()
        schema, top = _each_alone(inputs)
        write = SchemaSerializer(schema).to_python
        self._write: _Write = partial(
            write, mode="json", by_alias=False, round_trip=True, polymorphic_serialization=True
        )
        self._plain = inputs.facts.is_plain and not inputs.secrets
        self._undeclared = top.extras is not None
        self._read: SchemaValidator | None = None
        fields = inputs.model.model_fields.items()
        self._defaults = {inputs.renamed.get(name, name): info.default for name, info in fields}

    def canonical(self, arguments: Mapping[str, Any]) -> CanonicalArguments:
        """Return the canonical form of arguments by parameter name."""
        if self._plain and arguments.keys() <= self._keys.keys():
            try:
                forms = self._write(arguments, warnings=False)
            except WITHOUT_FORM:
                forms = {}
            if len(forms) == len(arguments):
                forms = {self._keys[name]: form for name, form in forms.items()}
                return CanonicalArguments(forms, forms)
        notes = Notes([], [])
        shown = values = self._forms(arguments, {"redact": False, "notes": notes})
        if notes.without_form:
            rest = {name: value for name, value in arguments.items() if not self._stands_for_none(name, value)}
            if len(rest) < len(arguments):
                return self.canonical(rest)
        if self._inputs.secrets or notes.secrets:
            shown = self._forms(arguments, {"redact": True, "notes": Notes([], [])})
            if self._inputs.marked is not None:
                shown = self._inputs.marked.hide(shown)
        if self._inputs.facts.is_styled and not self._is_lossless(values, arguments):
            notes.without_form.clear()
            context = {"redact": False, "notes": notes}
            values = {self._keys.get(name, name): json_form(value, context) for name, value in arguments.items()}
        return CanonicalArguments(values, shown, tuple(notes.without_form))

    def _forms(self, arguments: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Return the JSON forms of arguments under the keys from which they are read."""
        written = self._written(arguments, context)
        keys, redact = self._keys, context["redact"]
        forms: dict[str, Any] = {}
        for name, value in arguments.items():
            form = written.get(name, UNWRITTEN)
            if form is _EXCLUDED:
                context["notes"].secrets.append(True)
            if redact and (self._may_be_secret(name) or (form is _UNEXPECTED and name in self._inputs.secrets)):
                forms[keys.get(name, name)] = REDACTED
            elif form is not _EXCLUDED or not redact:
                form = UNWRITTEN if form is _UNEXPECTED or form is _EXCLUDED else form
                forms[keys.get(name, name)] = json_form(value, context, form)
        return forms

    def _written(self, arguments: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Return arguments as pydantic writes them by their types, as far as it does."""
        named = {
            name: value
            for name, value in arguments.items()
            if (name in self._keys or self._undeclared) and not isinstance(value, Iterator)  # it would be used up
        }
        write = partial(self._write, context=context, warnings="error" if context["redact"] else False)
        try:
            forms = write(named)
        except WITHOUT_FORM:  # a value is not of its type, which what was not validated may be
            forms: dict[str, Any] = {}
            for name, value in named.items():
                try:
                    forms |= write({name: value})
                except WITHOUT_FORM:
                    forms[name] = _UNEXPECTED
        return forms if len(forms) == len(named) else {**dict.fromkeys(named, _EXCLUDED), **forms}

    def _stands_for_none(self, name: str, value: Any) -> bool:
        """Return whether a value is the parameter's default and has no JSON form; left out, it is filled in again."""
        notes = Notes([], [])
        if name in self._defaults and value is self._defaults[name]:
            self._forms({name: value}, {"redact": False, "notes": notes})
        return bool(notes.without_form)

    def _may_be_secret(self, name: str) -> bool:
        """Return whether an argument is not declared, and may be a misspelt one that is secret."""
        inputs = self._inputs
        return bool(inputs.secrets) and name not in self._keys and (not inputs.open or name in inputs.names)

    def reads_back(self, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
        """Return whether these arguments are what is read from their values in JSON, and have the same values then."""
        if not self._is_lossless(values, arguments):
            return False
        return _encoded(self.canonical(self._read_again(values)).values) == _encoded(values)

    def _is_lossless(self, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
        try:
            return bool(self._read_again(values) == arguments)
        except Exception:  # validators and comparisons are the code of the types' authors
            return False

    def _read_again(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return self._inputs.arguments(self._inputs.validate_json(json.dumps(values), strict=True))

    def read_some(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that JSON shapes by parameter name are read as; the others need not be there.

        Raises:
            ValidationError: One does not fit.
        """
        if self._read is None:
            self._read = SchemaValidator(_each_alone(self._inputs)[0])
        return self._read.validate_json(json.dumps(values), by_alias=True, by_name=True)


def _each_alone(inputs: InputModel) -> tuple[Any, Fields]:
    """Return pydantic's schema of arguments by parameter name, each of which may be there or not, and their fields."""
    top = fields_of(inputs.core_schema)
    fields: dict[str, Any] = {}
    for name, field in top.named.items():
        argument = inputs.renamed.get(name, name)
        fields[argument] = {**field, "type": "typed-dict-field", "required": False}
        if inputs.is_root:
            fields[argument]["schema"] = _value_of_root(top, field["schema"])
    extras = top.extras or core_schema.any_schema()
    schema: Any = core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=extras)
    return core_schema.definitions_schema(schema, [*top.definitions]) if top.definitions else schema, top


def _value_of_root(top: Fields, schema: Any) -> Any:
    """Return the schema of the value inside a RootModel, which is what the argument is."""
    while not schema.get("root_model"):
        schema = schema["schema"] if "schema" in schema else top.definition(schema["schema_ref"])
    return schema["schema"]


def _hidden(real: Any, shown: Any, declared: Container[str] | None) -> Iterator[str]:
    """Yield the texts in a JSON form that are not there as it is shown."""
    match real, shown:
        case dict(), dict():
            for key, value in cast("dict[str, Any]", real).items():
                yield from _hidden(value, shown[key], declared) if key in shown else _leaves({key: value}, declared)
        case list(), list() if len(cast("list[Any]", real)) == len(cast("list[Any]", shown)):
            for value, other in zip(cast("list[Any]", real), cast("list[Any]", shown), strict=True):
                yield from _hidden(value, other, declared)
        case _ if real != shown:
            yield from _leaves(real, declared)
        case _:
            return


def _leaves(form: Any, declared: Container[str] | None) -> Iterator[str]:
    match form:
        case str():
            yield form
        case dict():
            for key, value in cast("dict[str, Any]", form).items():
                if declared is not None and key not in declared:
                    yield key
                yield from _leaves(value, declared)
        case list():
            for value in cast("list[Any]", form):
                yield from _leaves(value, declared)
        case int() | float() if sum(map(str.isdigit, str(form))) >= _SECRET_DIGITS:
            yield str(form)
        case _:
            return
