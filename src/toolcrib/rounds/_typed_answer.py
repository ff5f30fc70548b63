"""Typed answer: the schema that a model's answer is held to, and the value that is read from its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from toolcrib._json_writer import repeated_key
from toolcrib.errors import FieldProblem, InvalidOutput
from toolcrib.formats import without_filler
from toolcrib.jsonschema import wrapped
from toolcrib.schema import modern, output_problems

_FENCED = re.compile(r"\s*```\w*\s*\n(?P<inner>.*?)\n?\s*```\s*", re.DOTALL)
_VALUE = "value"


def typed_answer(text: str, output: Any) -> Any:
    """Return a model's answer as a value of the type that was asked for; models like to put JSON between fences.

    Raises:
        InvalidOutput: It is no such value; every problem is named.
    """
    if output is None or output is str:
        return text
    if key := repeated_key(_unfenced(text)):
        raise InvalidOutput("the answer", (FieldProblem(key, "sent more than once; send it once"),))
    adapter = TypeAdapter[Any](modern(output))
    schema = adapter.json_schema()
    try:
        return adapter.validate_json(_answer_in(_unfenced(text), schema))
    except ValidationError as error:
        problems = output_problems(error, adapter, _read(text))
    raise InvalidOutput("the answer", problems)  # out here, so that it does not carry pydantic's error along


def answer_schema(output: Any) -> dict[str, Any] | None:
    """Return the JSON schema of an answer as providers want it, an object: any other stands in one, under `value`."""
    if output is None or output is str:
        return None
    schema = TypeAdapter[Any](modern(output)).json_schema()
    if _is_object(schema):
        return schema
    return wrapped(schema, _VALUE, additionalProperties=False)


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object"


def _answer_in(text: str, schema: Mapping[str, Any]) -> str:
    """Return the JSON of an answer, out of the object in which it stands, and without what strict mode filled in."""
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text  # which pydantic refuses, in better words
    match read:
        case {"value": inner} if len(read) == 1 and not _is_object(schema):
            return json.dumps(inner)
        case dict() if _is_object(schema):
            filled = without_filler(cast("dict[str, Any]", read), schema)
            return text if filled == read else json.dumps(filled)
        case _:
            return text


def _read(text: str) -> Any:
    """Return the JSON in an answer, or its text where that cannot be read."""
    try:
        return json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return text


def _unfenced(text: str) -> str:
    """Return the code of a text that is one fenced block; any other text unchanged."""
    found = _FENCED.fullmatch(text)
    return text if found is None else found["inner"]
