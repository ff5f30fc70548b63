"""Bodies of requests: JSON, forms, files in parts, text and bytes."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast
from urllib.parse import urlencode

from toolcrib.calls import Media
from toolcrib.errors import ModelRetry
from toolcrib.openapi._document import Document
from toolcrib.openapi._schemas import Schemas, is_binary
from toolcrib.openapi._shapes import mapping_of
from toolcrib.openapi._styles import Pairs, form_pairs, header_text, json_text, plain_text
from toolcrib.openapi._texts import brief

Kind: TypeAlias = Literal["json", "form", "parts", "text", "bytes"]
_ORDER: Final[tuple[Kind, ...]] = ("json", "form", "parts", "text", "bytes")
_TEXT_CHARS = 160
_BYTES = "application/octet-stream"
_TEXT: Mapping[str, Any] = {"type": "string"}
_FILE: Mapping[str, Any] = {
    "type": "object",
    "description": "A file: its `text`, or its bytes as base64 in `data`.",
    "properties": {
        "name": _TEXT,
        "mime_type": _TEXT,
        "text": _TEXT,
        "data": {"type": "string", "contentEncoding": "base64"},
    },
}
"""A file as an argument. `Media.to_dict()` is one, too, so that what one tool returns is given to another."""


@dataclass(frozen=True, slots=True)
class Content:
    """The body of one request.

    Attributes:
        data: Its bytes; None for one in parts.
        parts: The parts as httpx2 has them: name, file name, bytes, media type.
    """

    media_type: str
    data: bytes | None = None
    parts: list[tuple[str, tuple[str | None, bytes, str]]] = field(
        default_factory=list[tuple[str, tuple[str | None, bytes, str]]]
    )


@dataclass(frozen=True, slots=True)
class Body:
    """The body that an operation takes.

    Attributes:
        kind: How it is written.
        schema: Of the argument `body`, as JSON Schema.
        files: The properties that are files.
        encodings: How properties are written that are not written as usual.
    """

    media_type: str
    kind: Kind
    schema: dict[str, Any]
    required: bool
    description: str = ""
    files: frozenset[str] = frozenset()
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def described(self) -> dict[str, Any]:
        """Return its schema with its description."""
        text = self.description or self.schema.get("description", "")
        return {**self.schema, "description": text} if text else self.schema

    def content(self, value: Any) -> Content:
        """Return a value as the body of a request.

        Raises:
            ModelRetry: It cannot be written so.
        """
        try:
            match self.kind:
                case "json":
                    return Content(self.media_type, json_text(value).encode())
                case "form":
                    return Content(self.media_type, urlencode(self._pairs(value)).encode())
                case "parts":
                    return Content(self.media_type, None, self._parts(value))
                case "text":
                    return Content(self.media_type, plain_text(value).encode())
                case "bytes":
                    _, data, kind = _file_of("body", value)
                    media_type = self.media_type if "*" not in self.media_type else kind or _BYTES
                    return Content(header_text("mime_type", media_type), data)
        except UnicodeEncodeError:
            raise ModelRetry("A text of the body has half a character in it; write it again.") from None

    def _pairs(self, value: Any) -> Pairs:
        pairs: Pairs = []
        for name, part in _properties(value).items():
            encoding = self.encodings.get(name, {})
            kind, style, explode = encoding.get("contentType"), encoding.get("style"), encoding.get("explode")
            if part is None:
                continue
            if style == "deepObject":
                pairs += form_pairs(name, part, deep=True)
            elif isinstance(part, dict) and not (style == "form" or (kind is None and "explode" in encoding)):
                pairs.append((name, json_text(part)))
            elif isinstance(part, list) and explode is False:
                between = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(str(style), ",")
                pairs.append((name, between.join(plain_text(item) for item in cast("list[Any]", part))))
            else:
                pairs += form_pairs(name, part)
        return pairs

    def _parts(self, value: Any) -> list[tuple[str, tuple[str | None, bytes, str]]]:
        parts: list[tuple[str, tuple[str | None, bytes, str]]] = []
        for name, part in _properties(value).items():
            kind = self.encodings.get(name, {}).get("contentType")
            kind = kind if isinstance(kind, str) and "*" not in kind and "," not in kind else None
            for item in cast("list[Any]", part) if isinstance(part, list) else [part]:
                if item is None:
                    continue
                if name in self.files:
                    file, data, file_kind = _file_of(name, item)
                    parts.append((name, (file or name, data, header_text("mime_type", kind or file_kind or _BYTES))))
                elif isinstance(item, dict | list):
                    parts.append((name, (None, json_text(item).encode(), kind or "application/json")))
                else:
                    parts.append((name, (None, plain_text(item).encode(), kind or "text/plain; charset=utf-8")))
        return parts


def body_of(document: Document, request_body: Any, base: str, schemas: Schemas) -> Body | None:
    """Return the body of an operation; None where it has none.

    Of several media types it is JSON, or else the first of a form, a form in parts, text and bytes. Of several JSON
    ones, a list of changes comes last: models write what is to be merged. What may be of any type is JSON where it has
    a shape.

    Raises:
        DocumentError: Its description cannot be read.
    """
    place = document.place(request_body, base)
    spec = mapping_of(place.value)
    table = mapping_of(spec.get("content"))
    if not table:
        return None
    media_type = min(table, key=lambda name: (_ORDER.index(_kind_of(name)), "json-patch" in name.lower()))
    media = mapping_of(table[media_type])
    kind, schema = _kind_of(media_type), media.get("schema")
    if media_type.strip() == "*/*" and _has_shape(mapping_of(document.place(schema, place.base).value)):
        media_type, kind = "application/json", "json"
    files = frozenset[str]()
    if kind == "bytes":
        shown = dict(_FILE)
    elif kind == "text":
        shown = {**_TEXT, "description": f"Text of the type {media_type.partition(';')[0]}."}
    else:
        shown = schemas.converted(schema, place.base)
        if kind == "parts":
            shown, files = _with_files(document, schema, place.base, shown, schemas)
    if shown.get("additionalProperties") == {"not": {}} and not shown.get("properties") and "type" in shown:
        return None  # an object that may have nothing in it
    return Body(
        media_type,
        kind,
        shown,
        spec.get("required") is True,
        brief(spec.get("description"), _TEXT_CHARS) or brief(shown.get("description"), _TEXT_CHARS),
        files,
        {name: mapping_of(encoding) for name, encoding in mapping_of(media.get("encoding")).items()},
    )


def _kind_of(media_type: str) -> Kind:
    plain = media_type.partition(";")[0].strip().lower()
    if is_json(plain):
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    if plain == "multipart/form-data":
        return "parts"
    is_text = plain.startswith("text/") or plain.endswith(("/xml", "+xml", "/yaml", "+yaml", "ndjson", "/jsonl"))
    return "text" if is_text else "bytes"


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON."""
    plain = media_type.partition(";")[0].strip().lower()
    return plain in ("application/json", "text/json") or plain.endswith("+json")


def _has_shape(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("object", "array") or "properties" in schema


def _with_files(
    document: Document, schema: Any, base: str, shown: dict[str, Any], schemas: Schemas
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the schema of a form in parts with files in the place of bytes, and the names of these."""
    place = document.place(schema, base)
    files: dict[str, Any] = {}
    for name, part in mapping_of(mapping_of(place.value).get("properties")).items():
        found = document.place(part, place.base)
        items = document.place(mapping_of(found.value).get("items"), found.base)
        words = brief(mapping_of(found.value).get("description"), _TEXT_CHARS)
        text = {"description": words} if words else {}
        if is_binary(found.value):
            files[name] = {**_FILE, **text}
        elif is_binary(items.value):
            files[name] = {"type": "array", "items": _FILE, **text}
    if not files:
        return shown, frozenset()
    form = shown if "properties" in shown else schemas.converted(place.value, place.base)
    return {**form, "properties": {**form.get("properties", {}), **files}}, frozenset(files)


def _properties(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelRetry("`body` is sent as a form: give an object.")
    return cast("dict[str, Any]", value)


def _file_of(name: str, value: Any) -> tuple[str, bytes, str]:
    """Return the name, the bytes and the media type of a file that an argument describes."""
    if isinstance(value, Media):
        value = value.to_dict()
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"text": plain_text(value)}
    file, kind = str(fields.get("name") or ""), str(fields.get("mime_type") or "")
    if isinstance(fields.get("text"), str):
        return file, fields["text"].encode(), kind or "text/plain; charset=utf-8"
    if not isinstance(fields.get("data"), str):
        raise ModelRetry(f"`{name}` is a file: give its `text`, or its bytes as base64 in `data`.")
    try:
        return file, b64decode(fields["data"], validate=True), kind
    except (binascii.Error, ValueError):
        raise ModelRetry(f"`{name}`: its `data` is not base64.") from None
