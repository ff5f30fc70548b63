"""Media: an image, a sound or a file in a tool's result."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo
from pydantic_core import PydanticSerializationUnexpectedValue, SchemaSerializer, core_schema

from toolcrib._numbers import count_text
from toolcrib._short_repr import kind_of
from toolcrib.calls._stored import StoredFields, versioned
from toolcrib.errors import explain_options

WITH_MEDIA = "toolcrib_media"
"""The key in a serialisation context under which a list collects the media, of which then only the facts are dumped."""

_MIME_TYPE = r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;.*)?"
_KIND = "media"
_TEXTS = ("name", "title", "description")
_SHOWN = 200  # characters of a name or an address in a placeholder
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"const": _KIND, "type": "string"},
        "mime_type": {"type": "string"},
        "size": {"type": "integer"},
        "data": {"type": "string", "contentEncoding": "base64"},
        **{name: {"type": "string"} for name in ("url", *_TEXTS)},
    },
    "required": ["kind", "mime_type"],
}


@explain_options()
@dataclass(frozen=True, slots=True, repr=False)
class Media:
    """An image, a sound or a file, alone or anywhere in what a tool returns.

    Attributes:
        mime_type: Its media type: `image/png`.
        data: Its bytes; None where only the `url` is known.
        url: Where it is. With `data` too, the bytes are sent, and this only says where they are from.
        name: A file name, which the model is shown as well.
        title: A title that people are shown in place of the name.
        description: A text that people are shown besides.

    Raises:
        TypeError: `data` is text, or something else that is not bytes.
        ValueError: There is neither `data` nor `url`, the MIME type is invalid, or the URL has no scheme.
    """

    mime_type: str
    data: bytes | None = None
    url: str | None = None
    name: str = ""
    title: str = ""
    description: str = ""
    __pydantic_serializer__: ClassVar[SchemaSerializer]

    def __post_init__(self) -> None:
        kind, data, url = cast("object", self.mime_type), cast("Any", self.data), self.url
        if not isinstance(kind, str) or re.fullmatch(_MIME_TYPE, kind, re.ASCII) is None:
            raise ValueError(f"a MIME type comes first, as in Media('image/png', data), and this is {kind!r:.60}")
        if isinstance(data, bytearray | memoryview):
            object.__setattr__(self, "data", bytes(cast("bytearray", data)))
        elif data is not None and not isinstance(data, bytes):
            hint = "; decode base64 text first: base64.b64decode(text)" if isinstance(data, str) else ""
            raise TypeError(f"the data of media are bytes, and these are {kind_of(data)}{hint}")
        if data is None and url is None:
            raise ValueError("media have data or a url: Media('image/png', data), or Media('image/png', url=...)")
        if url is not None and not urlsplit(url).scheme:
            raise ValueError(f"the url of media begins with its scheme, as in https://..., and this is {url!r:.60}")

    @property
    def is_image(self) -> bool:
        """True if the media can be looked at."""
        return self.mime_type.startswith("image/")

    @property
    def base64(self) -> str:
        """The bytes as base64 text; empty where only the URL is known."""
        return b64encode(self.data or b"").decode("ascii")

    @property
    def link(self) -> str:
        """A `data:` URL with the bytes, or the URL without one."""
        return f"data:{self.mime_type};base64,{self.base64}" if self.data is not None else self.url or ""

    @property
    def is_sendable(self) -> bool:
        """True if a provider can be sent the media: there are bytes, or an address on the web."""
        return self.data is not None or (self.url or "").startswith(("https://", "http://", "data:"))

    def facts(self) -> dict[str, Any]:
        """Return the facts for a record or a program as JSON shapes: everything but the bytes."""
        texts = {name: text for name in ("url", *_TEXTS) if (text := getattr(self, name))}
        size = {} if self.data is None else {"size": len(self.data)}
        return {"kind": _KIND, "mime_type": self.mime_type, **size, **texts}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON shapes, the bytes as base64."""
        return versioned("Media", self.facts() if self.data is None else {**self.facts(), "data": self.base64})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Media:
        """Return the media that `to_dict` described.

        Raises:
            ValueError: It describes none, or only the facts, without the bytes.
        """
        values = StoredFields(cls, data)
        if values.get("kind") != _KIND:
            raise ValueError(
                f"media are described by a dict with `kind`: {_KIND!r}, and this has {values.get('kind')!r}"
            )
        content, url = values.get("data"), values.get("url")
        return cls(
            values["mime_type"],
            None if content is None else b64decode(str(content), validate=True),
            None if url is None else str(url),
            **{name: str(values.get(name, "")) for name in _TEXTS},
        )

    def __repr__(self) -> str:
        shown = [f"{self.mime_type!r}"]
        shown += [] if self.data is None else [f"<{count_text(len(self.data), 'byte')}>"]
        return f"Media({', '.join(shown + [f'{n}={v!r}' for n in ('url', *_TEXTS) if (v := getattr(self, n))])})"

    def __str__(self) -> str:
        """Return the placeholder for a model that cannot be shown it: `[image/png: chart.png, 264 bytes]`."""
        name = f": {_line(self.name)}" if self.name else ""
        place = _line(self.url or "") if self.data is None else count_text(len(self.data), "byte")
        return f"[{self.mime_type}{name}, {place}]"

    # --- as a part of other values

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated,
            serialization=core_schema.plain_serializer_function_ser_schema(_serialized, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**_SCHEMA}


def _line(text: str) -> str:
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return "".join(c if c.isprintable() else " " for c in shown)


def _validated(value: Any) -> Media:
    if isinstance(value, Media):
        return value
    if isinstance(value, Mapping):
        return Media.from_dict(cast("Mapping[str, Any]", value))
    raise ValueError(f"media are expected, and this is {kind_of(value)}")


def _serialized(value: Any, info: SerializationInfo) -> Any:
    if not isinstance(value, Media):
        raise PydanticSerializationUnexpectedValue(f"media are expected, and this is {kind_of(value)}")
    context: Any = info.context
    options: dict[str, Any] = cast("dict[str, Any]", context) if isinstance(context, dict) else {}
    found: list[Media] | deque[Media] | None = options.get(WITH_MEDIA)
    if found is None:
        return value if info.mode == "python" else value.to_dict()
    found.append(value)
    return value.facts()


Media.__pydantic_serializer__ = SchemaSerializer(  # so that pydantic dumps it in this way also where no type says so
    core_schema.any_schema(serialization=core_schema.plain_serializer_function_ser_schema(_serialized, info_arg=True))
)


def revived(value: Any) -> Any:
    """Return a value of JSON shapes with media in the place of the dicts that describe them."""
    match value:
        case {"kind": "media", "data": str()} | {"kind": "media", "url": str()}:
            try:
                return Media.from_dict(cast("Mapping[str, Any]", value))
            except ValueError:  # something else that has these keys
                return value
        case dict():
            return {key: revived(part) for key, part in cast("dict[str, Any]", value).items()}
        case list():
            return [revived(part) for part in cast("list[Any]", value)]
        case _:
            return value
