"""Form: the fields that a person is asked to fill in, made of a type or a JSON schema."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from toolcrib.errors import ClientAnswerError
from toolcrib.jsonschema import SchemaWalk, written_out

_VALUE = "value"  # the one field of a form for a plain type
_PLAIN = ("string", "integer", "number", "boolean")


class Form:
    """A form that a person is asked to fill in: a flat object of plain fields.

    Args:
        tool: The tool that asks, for errors.
        asked: A model, a dataclass or a TypedDict; a plain type; a JSON schema, which goes as it is; None for no field.

    Attributes:
        schema: The fields, as the JSON schema of an object.

    Raises:
        TypeError: A field is neither a text, a number, a boolean, a choice nor a list of choices.
    """

    def __init__(self, tool: str, asked: Any) -> None:
        self._tool, self._adapter = tool, None
        self._is_one = False
        if asked is None:
            self.schema: dict[str, Any] = {"type": "object", "properties": {}}
        elif isinstance(asked, Mapping):
            self.schema = dict(cast("Mapping[str, Any]", asked))
        else:
            self._adapter = TypeAdapter[Any](asked)
            self.schema = self._described(self._adapter)

    def _described(self, adapter: TypeAdapter[Any]) -> dict[str, Any]:
        found = adapter.json_schema(schema_generator=_FormSchema)
        schema = cast("dict[str, Any]", written_out(found, SchemaWalk(found, self._tool)))
        self._is_one = schema.get("type") != "object"
        if self._is_one:
            schema = {"type": "object", "properties": {_VALUE: schema}, "required": [_VALUE]}
        parts = cast("dict[str, Any]", schema.get("properties", {}))
        for name, part in parts.items():
            if not _is_plain(part):
                raise TypeError(
                    f"`{self._tool}` asks for a form whose field `{name}` is not plain: "
                    "a field is a text, a number, a boolean, a choice (Literal or Enum), or a list of choices"
                )
        return {key: value for key, value in schema.items() if key in ("type", "properties", "required")}

    def filled(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields with the defaults for those that are left out."""
        parts: Mapping[str, Any] = self.schema.get("properties", {})
        defaults = {name: part["default"] for name, part in parts.items() if "default" in part}
        return {**defaults, **fields}

    def problem(self, fields: Mapping[str, Any]) -> str:
        """Return why these fields are not an answer; empty where they are."""
        try:
            self.read(fields)
        except ClientAnswerError as error:
            return error.problem
        return ""

    def read(self, fields: Mapping[str, Any]) -> Any:
        """Return the answer that these fields are, of the type that was asked for.

        Raises:
            ClientAnswerError: They do not fit.
        """
        answer = self.filled(fields)
        if self._adapter is None:
            return self._checked(answer)
        wanted: Any = answer.get(_VALUE) if self._is_one else answer
        try:
            return self._adapter.validate_python(wanted)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or _VALUE
            raise ClientAnswerError(self._tool, f"{place}: {first['msg']}") from None

    def _checked(self, answer: dict[str, Any]) -> dict[str, Any]:
        if not self.schema.get("properties"):
            return answer
        checker: Any = importlib.import_module("toolcrib.jsonschema.checker")  # which few tools need
        problem = next(map(str, checker.misfits(self.schema, answer, f"an answer to `{self._tool}`")), None)
        if problem is not None:
            raise ClientAnswerError(self._tool, problem)
        return answer


class _FormSchema(GenerateJsonSchema):
    """JSON schemas without null, which a form has no field for: what is left out has its default."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        json_schema = super().default_schema(schema)
        if json_schema.get("default", ...) is None:
            del json_schema["default"]
        return json_schema


def _is_plain(part: Mapping[str, Any]) -> bool:
    if part.get("type") == "array":
        items: Any = part.get("items", {})
        return "enum" in items or "anyOf" in items or "const" in items
    return part.get("type") in _PLAIN
