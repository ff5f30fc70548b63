"""Parameters in a path, a query, headers and cookies: each value as its style writes it, encoded so that it stays in.

Source: https://spec.openapis.org/oas/v3.1.1.html#style-values
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote

from toolcrib.errors import ModelRetry
from toolcrib.openapi._document import Document
from toolcrib.openapi._schemas import Schemas
from toolcrib.openapi._shapes import mapping_of
from toolcrib.openapi._texts import brief

Where: TypeAlias = Literal["path", "query", "header", "cookie"]
Pairs: TypeAlias = list[tuple[str, str]]

_TEXT_CHARS = 160
_STYLES: Mapping[str, tuple[str, ...]] = {  # the first is the one that is meant where none is given
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_RESERVED = ":/?@!$'()*,;"  # of RFC 3986, but for what would end a value in a query: `#`, `&`, `=`, `+`, brackets
_COOKIE = "!#$&'()*+-./:<=>?@[]^_`{|}~"
_DELIMITERS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: As the server knows it.
        place: Where it goes.
        schema: Of its value, as JSON Schema.
        explode: Whether each part of a value is written by itself.
        media_type: That its value is written in, in the place of a style.
    """

    name: str
    place: Where
    schema: dict[str, Any]
    required: bool = False
    style: str = "simple"
    explode: bool = False
    allow_reserved: bool = False
    media_type: str | None = None
    description: str = ""

    def described(self) -> dict[str, Any]:
        """Return its schema with its description."""
        text = self.description or self.schema.get("description", "")
        return {**self.schema, "description": text} if text else self.schema

    # --- as each place has it

    def in_path(self, value: Any) -> str:
        """Return a value as a part of a path, encoded."""
        if self.media_type is not None:
            return _encoded(json_text(value))
        mark, between = {"label": (".", "."), "matrix": (";", ";")}.get(self.style, ("", ","))
        if self.style == "matrix":
            name = _encoded(self.name)
            if self.explode and isinstance(value, dict):
                parts = cast("dict[str, Any]", value).items()
                return "".join(f";{_encoded(key)}={_encoded(plain_text(part))}" for key, part in parts)
            if self.explode and isinstance(value, list):
                return "".join(f";{name}={_encoded(plain_text(part))}" for part in cast("list[Any]", value))
            return f";{name}={','.join(self._texts(value))}"
        texts = [*self._texts(value)]
        text = (between if self.explode or self.style == "simple" else ",").join(texts)
        return mark + text

    def _texts(self, value: Any) -> Iterator[str]:
        """Yield the parts of a value, encoded; the names and values of an object as `explode` has them."""
        if isinstance(value, dict):
            for key, part in cast("dict[str, Any]", value).items():
                if self.explode:
                    yield f"{_encoded(key)}={_encoded(plain_text(part))}"
                else:
                    yield from (_encoded(key), _encoded(plain_text(part)))
        elif isinstance(value, list):
            yield from (_encoded(plain_text(part)) for part in cast("list[Any]", value))
        else:
            yield _encoded(plain_text(value))

    def in_query(self, value: Any) -> list[str]:
        """Return a value as parts of a query, encoded."""
        safe = _RESERVED if self.allow_reserved else ""
        if self.media_type is not None:
            return [f"{_encoded(self.name)}={_encoded(json_text(value), safe)}"]
        between = _DELIMITERS.get(self.style)
        if between is not None and not self.explode and isinstance(value, dict | list):
            return [f"{_encoded(self.name)}={between.join(self._texts(value))}"]
        if self.style == "form" and not self.explode and isinstance(value, dict | list):
            return [f"{_encoded(self.name)}={','.join(self._texts(value))}"]
        pairs = form_pairs(self.name, value, deep=self.style == "deepObject")
        return [f"{_encoded(key)}={_encoded(text, safe)}" for key, text in pairs]

    def in_header(self, value: Any) -> str:
        """Return a value as that of a header.

        Raises:
            ModelRetry: It cannot be written there.
        """
        if self.media_type is not None:
            return header_text(self.name, json_text(value))
        texts: list[str] = []
        if isinstance(value, dict):
            for key, part in cast("dict[str, Any]", value).items():
                texts += [f"{key}={plain_text(part)}"] if self.explode else [key, plain_text(part)]
        elif isinstance(value, list):
            texts = [plain_text(part) for part in cast("list[Any]", value)]
        else:
            return header_text(self.name, plain_text(value))
        if any("," in text or text != text.strip() or not text for text in texts):
            raise ModelRetry(
                f"`{self.name}` is sent as a header, where no part of a list can be empty or have a comma."
            )
        return header_text(self.name, ",".join(texts))

    def in_cookie(self, value: Any) -> list[str]:
        """Return a value as cookies, encoded."""
        if self.media_type is not None:
            return [f"{self.name}={quote(json_text(value), safe=_COOKIE)}"]
        if isinstance(value, dict | list) and not self.explode:
            return [f"{self.name}={','.join(self._texts(value))}"]
        return [f"{_encoded(key)}={quote(text, safe=_COOKIE)}" for key, text in form_pairs(self.name, value)]


def style_of(document: Document, schemas: Schemas, spec: Mapping[str, Any], base: str) -> Parameter:
    """Return a parameter as a document describes it."""
    where = cast("Where", spec["in"])
    media_type, described = next(iter(mapping_of(spec.get("content")).items()), (None, spec))
    style: Any = spec.get("style")
    if style not in _STYLES[where]:
        if style is not None:
            document.log_wrong(f"`style` of {style!r:.60} of a parameter in `{where}`")
        style = _STYLES[where][0]
    explode = spec.get("explode")
    return Parameter(
        name=str(spec["name"]),
        place=where,
        schema=schemas.converted(mapping_of(described).get("schema"), base),
        required=spec.get("required") is True or where == "path",
        style=style,
        explode=explode if isinstance(explode, bool) else style in ("form", "deepObject"),
        allow_reserved=spec.get("allowReserved") is True,
        media_type=media_type,
        description=brief(spec.get("description"), _TEXT_CHARS),
    )


# --- values as text


def plain_text(value: Any) -> str:
    """Return one value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def form_pairs(name: str, value: Any, *, deep: bool = False) -> Pairs:
    """Return a value as pairs of a form, each part by itself; `deep` writes names in names, as in `a[b]`."""
    if deep and isinstance(value, dict | list):
        return [*_deep(name, value)]
    if isinstance(value, dict):
        return [(key, plain_text(part)) for key, part in cast("dict[str, Any]", value).items() if part is not None]
    if isinstance(value, list):
        return [(name, plain_text(part)) for part in cast("list[Any]", value)]
    return [(name, plain_text(value))]


def _deep(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            yield from _deep(f"{name}[{key}]", part)
    elif isinstance(value, list):
        for number, part in enumerate(cast("list[Any]", value)):
            yield from _deep(f"{name}[{number}]", part)
    elif value is not None:
        yield name, plain_text(value)


def header_text(name: str, text: str) -> str:
    """Return a text that a header may have.

    Raises:
        ModelRetry: It has a line break, another control character, a character beyond ASCII, or a space at an end.
    """
    if text and _HEADER.fullmatch(text) is None:
        raise ModelRetry(
            f"`{name}` is sent as a header: one line of ASCII characters, which neither begins nor ends with a space."
        )
    return text


def _encoded(text: str, safe: str = "") -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise ModelRetry("A text has half a character in it; write it again.") from None
