"""What each provider refuses of a definition, as its documentation and its errors say it, judged without the library.

`docs/providers.md` has the same list for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any
from warnings import catch_warnings, simplefilter

from tests.formats.strictly import not_strict
from toolcrib.formats import WireFormat

LIKE_OPENAI = ("openai", "openai_responses", "mistral")
_KINDS = {"string", "number", "integer", "boolean", "object", "array", "null"}
_GEMINI = {
    "$ref", "$defs", "type", "format", "description", "enum", "items", "minItems", "maxItems", "properties", "required",
    "anyOf", "oneOf", "prefixItems", "additionalProperties", "minProperties", "maxProperties", "minLength", "maxLength",
    "pattern", "minimum", "maximum", "default",
}  # fmt: skip
_OLLAMA = {"type", "description", "enum", "items", "properties", "required", "anyOf"}
_REFUSED = [
    (re.compile(expression), what)
    for expression, what in (
        (r"\(\?<?[=!]", "looks around"),
        (r"\(\?P?<[A-Za-z]|\(\?P=", "names a group"),
        (r"\\[pP]", "needs the tables of Unicode"),
        (r"\\[1-9]|\\k", "refers back"),
        (r"\\[uUNcEQZA]", "has an escape that not every engine knows"),
        (r"\[(?:[^\]\\]|\\.)*\\b", "has a backspace in a class"),
        (r"\(\?[a-zA-Z]|\(\?[>#]", "sets flags, or is atomic or a comment"),
        (r"\{,", "repeats without a least number"),
        (r"\[\^?\]", "has a class without characters"),
    )
]


def refusals(schema: Mapping[str, Any], provider: WireFormat, strict: bool) -> list[str]:
    """Return why a provider would refuse the schema of a tool's arguments."""
    return [*_root(schema), *_parts(schema, provider, ""), *(not_strict(schema, provider) if strict else ())]


def _root(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the root: OpenAI, Anthropic and Bedrock take one object and no choice there."""
    if schema.get("type") != "object":
        yield "the root is not an object"
    for key in ("anyOf", "oneOf", "allOf", "enum", "not"):
        if key in schema:
            yield f"`{key}` at the root"


def _parts(part: Any, provider: WireFormat, path: str) -> Iterator[str]:
    if not isinstance(part, dict):
        if isinstance(part, bool) and provider in ("gemini", "ollama"):
            yield f"{path}: {part} in place of a schema"
        return
    yield from _part(part, provider, path)
    for key in ("properties", "$defs", "patternProperties", "dependentSchemas"):
        for name, inner in part.get(key, {}).items():
            yield from _parts(inner, provider, f"{path}.{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in part.get(key, ()):
            yield from _parts(inner, provider, f"{path}|")
    for key in ("items", "additionalProperties", "contains", "propertyNames", "then", "else"):
        if isinstance(part.get(key), dict):
            yield from _parts(part[key], provider, f"{path}[]")
    for key in ("not", "if"):  # a condition may require what it does not have itself
        refused = _parts(part.get(key), provider, f"{path}!")
        yield from (text for text in refused if ": requires " not in text)


def _part(part: dict[str, Any], provider: WireFormat, path: str) -> Iterator[str]:
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not set(kinds) <= _KINDS or len(set(kinds)) < len(kinds):
        yield f"{path}: type {kinds}"
    if "dependencies" in part:
        yield f"{path}: `dependencies`, which versions since 2019-09 do not have"
    if "array" in kinds and not part.keys() & {"items", "prefixItems"}:
        yield f"{path}: an array without items"  # OpenAI: "array schema missing items"
    if part.get("enum") == []:
        yield f"{path}: an enum without values"  # OpenAI: "[] is too short"; Gemini: "enum: should have at least one"
    if missing := set(part.get("required", ())) - part.get("properties", {}).keys():
        yield f"{path}: requires {sorted(missing)}, which it does not have"  # Gemini: "property is not defined"
    for pattern in [part["pattern"]] if "pattern" in part else part.get("patternProperties", ()):
        yield from _pattern(pattern, path)
    if "$ref" in part and (beside := part.keys() - {"$ref", "description", "default", "title", "$defs"}):
        yield f"{path}: {sorted(beside)} beside a reference"
    if provider == "gemini":
        yield from _gemini(part, path)
    if provider == "ollama" and (unknown := part.keys() - _OLLAMA):
        yield f"{path}: {sorted(unknown)}"


def _gemini(part: dict[str, Any], path: str) -> Iterator[str]:
    if unknown := part.keys() - _GEMINI:
        yield f"{path}: {sorted(unknown)}"
    if not all(isinstance(value, str) and value for value in part.get("enum", ())):
        yield f"{path}: an enum with a value that is not a text, or an empty one"


def _pattern(pattern: str, path: str) -> Iterator[str]:
    """Yield why a pattern is refused: OpenAI and Gemini read RE2."""
    for what in refused_by_re2(pattern):
        yield f"{path}: the pattern {pattern!r} {what}"


def refused_by_re2(pattern: str) -> list[str]:
    """Return why RE2, or ECMAScript beside it, refuses a pattern or reads it in another way."""
    found = [what for expression, what in _REFUSED if expression.search(pattern)]
    numbers = re.findall(r"\{(\d+)(?:,(\d*))?\}", pattern)
    often = [max(int(number) for number in pair if number) for pair in numbers]
    if any(number > 1000 for number in often):
        found.append("repeats more than 1,000 times")
    if re.search(r"[*+?}][*+]|\^\*", re.sub(r"\[(?:[^\]\\]|\\.)+\]", "x", pattern)):
        found.append("repeats a repeat, or a border")
    if re.search(r"\}[^()]*\)\{", pattern) and prod(often) > 1000:
        found.append("repeats repeats, more than 1,000 times in all")
    try:
        with catch_warnings():
            simplefilter("ignore")
            re.compile(pattern)
    except re.error as error:
        found.append(f"is not one: {error}")
    return found
