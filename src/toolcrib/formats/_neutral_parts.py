"""Neutral parts: what stands in a message of any format, as text, media, or something that only its provider takes."""

from __future__ import annotations

import json
import mimetypes
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast
from urllib.parse import unquote_to_bytes, urlsplit

from toolcrib.calls import Media, value_class
from toolcrib.formats._json_reading import is_object, object_or_empty, objects_in, text_or_empty

_ANSWERED = frozenset(  # calls of the client's and their results, which the format's own rules read
    {"tool_use", "tool_result", "functionCall", "functionResponse", "toolUse", "toolResult", "function_call"}
    | {"custom_tool_call", "function_call_output", "custom_tool_call_output", "function_result"}
)
_HOLDING = frozenset({"", "tool_result", "message", "user_input", "model_output"})  # what has parts, and is none
_UNSAID = frozenset({"cachePoint", "thoughtSignature"})  # marks that say nothing to a model
_TEXTS = frozenset({"text", "input_text", "output_text"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoningContent", "reasoning_text", "thought"})
_THOUGHT_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "tool_plan")
_NOTES = ("citations", "annotations")


@value_class
class ForeignPart:
    """A part that another provider does not take.

    Attributes:
        noun: A noun for it, in the words of its own provider.
        is_mark: Whether the words that the model wrote and read are all there without it: a thought, a citation.
    """

    noun: str
    is_mark: bool = False


NeutralPart: TypeAlias = str | Media | ForeignPart
_Reader: TypeAlias = Callable[[Mapping[str, Any]], Media | None]


def parts_in(item: Mapping[str, Any]) -> Iterator[NeutralPart]:
    """Yield the parts in an item of a transcript, or in a result, without the client's calls and their results."""
    if "role" not in item and text_or_empty(item.get("type")) not in _HOLDING:
        yield from _read(item)
    for key in ("content", "parts", "output", "result"):
        content = item.get(key)
        if isinstance(content, str):
            yield from [content] if content else []
        elif is_object(content):
            yield from _read(content)
        elif isinstance(content, list | tuple):
            for part in cast("Sequence[object]", content):
                yield from [part] if isinstance(part, str) else _read(object_or_empty(part))
    yield from filter(None, [text_or_empty(item.get("refusal"))])
    for image in item.get("images") or ():
        yield _data(image, "image/png") or ForeignPart("an image")
    yield from (ForeignPart("reasoning", is_mark=True) for key in _THOUGHT_KEYS if item.get(key))
    yield from (ForeignPart(key, is_mark=True) for key in _NOTES if item.get(key))
    if item.get("audio"):
        yield ForeignPart("audio that only its provider knows")


def _read(part: Mapping[str, Any]) -> Iterator[NeutralPart]:
    kind = text_or_empty(part.get("type")) or next((key for key in part if key not in _UNSAID), "")
    if kind in _ANSWERED or not kind or kind in _UNSAID:
        return
    if kind in _THOUGHTS or part.get("thought"):
        yield ForeignPart("reasoning", is_mark=True)
    elif kind in _TEXTS:
        yield from filter(None, [text_or_empty(part.get("text"))])
    elif kind == "refusal":
        yield from filter(None, [text_or_empty(part.get("refusal"))])
    elif kind == "json":
        yield json.dumps(part["json"], ensure_ascii=False, default=str)
    elif kind == "document" and (document := document_text(part)):
        yield document
    elif kind == "citationsContent":
        cited = object_or_empty(part[kind])
        yield from (text_or_empty(citation.get("text")) for citation in objects_in(cited.get("content")))
        yield ForeignPart("citations", is_mark=True)
    else:
        reader = _MEDIA.get(kind)
        media = None if reader is None else reader(part)
        yield ForeignPart(f"a part of the type `{kind}`") if media is None else media
    yield from (ForeignPart(key, is_mark=True) for key in _NOTES if part.get(key))


def media_at(link: object, kind: str, name: str = "") -> Media | None:
    """Return the media at a `data:` URL or an address of the web; None for anything else.

    Args:
        link: The URL.
        kind: The MIME type of media whose address does not say it.
        name: Their name.
    """
    url = text_or_empty(link)
    if url.startswith("data:"):
        head, _, body = url[5:].partition(",")
        mime_type, *options = head.split(";")
        return _data(body if "base64" in options else unquote_to_bytes(body), mime_type or kind, name)
    if not url.startswith(("https://", "http://")):
        return None
    return Media(mimetypes.guess_type(urlsplit(url).path)[0] or kind, url=url, name=name)


def document_text(part: Mapping[str, Any]) -> str:
    """Return the text of a document that is not a file: Anthropic's, Bedrock's, or Cohere's of fields; else nothing."""
    document = object_or_empty(part.get("document"))
    source = object_or_empty((document or part).get("source"))
    data = source.get("data") if source.get("type") == "text" else source.get("text", document.get("data"))
    return json.dumps(data, ensure_ascii=False, default=str) if is_object(data) else text_or_empty(data)


def _data(data: object, kind: str, name: str = "") -> Media | None:
    """Return media of bytes, or of Base64 in either alphabet; None where it is neither."""
    if isinstance(data, str):
        try:
            data = b64decode(data, altchars=b"-_" if set(data) & {"-", "_"} else None)
        except ValueError:
            return None
    return Media(kind, data, name=name) if isinstance(data, bytes) and kind else None


def _source(part: Mapping[str, Any], kind: str) -> Media | None:
    """Return an image or a file: of Anthropic in `source`, of Bedrock by its format."""
    inner = object_or_empty(part.get(kind)) or part
    source, name = object_or_empty(inner.get("source")), text_or_empty(inner.get("name") or inner.get("title"))
    if "bytes" in source:
        ending = text_or_empty(inner.get("format"))
        mime_type = f"image/{ending}" if kind == "image" else mimetypes.guess_type(f"file.{ending}")[0] or "text/plain"
        return _data(source["bytes"], mime_type, name)
    if source.get("type") == "url":
        return media_at(source.get("url"), "image/jpeg" if kind == "image" else "application/pdf", name)
    return _data(source.get("data"), text_or_empty(source.get("media_type")), name)


def _flat(part: Mapping[str, Any]) -> Media | None:
    """Return the media in a part itself, as Google's Interactions API has it."""
    return _data(part.get("data"), text_or_empty(part.get("mime_type")))


def _image(part: Mapping[str, Any]) -> Media | None:
    link = part.get("image_url")
    return media_at(object_or_empty(link).get("url") if is_object(link) else link, "image/jpeg")


def _file(part: Mapping[str, Any]) -> Media | None:
    file = object_or_empty(part.get("file")) or part
    link = file.get("file_data") or file.get("file_url") or file.get("document_url")
    return media_at(link, "application/pdf", text_or_empty(file.get("filename") or file.get("document_name")))


def _sound(part: Mapping[str, Any]) -> Media | None:
    audio = object_or_empty(part.get("input_audio"))
    return _data(
        audio.get("data"), {"mp3": "audio/mpeg", "wav": "audio/wav"}.get(text_or_empty(audio.get("format")), "")
    )


def _blob(part: Mapping[str, Any]) -> Media | None:
    blob = object_or_empty(part.get("inlineData") or part.get("inline_data"))
    names = [blob.get("mimeType") or blob.get("mime_type"), blob.get("displayName") or blob.get("display_name")]
    return _data(blob.get("data"), text_or_empty(names[0]), text_or_empty(names[1]))


_MEDIA: Mapping[str, _Reader] = {
    "image": lambda part: _flat(part) or _source(part, "image"),
    "document": lambda part: _flat(part) or _source(part, "document"),
    **dict.fromkeys(("audio", "video"), lambda part: _flat(part)),
    **dict.fromkeys(("image_url", "input_image"), _image),
    **dict.fromkeys(("input_file", "file", "document_url"), _file),
    "input_audio": _sound,
    **dict.fromkeys(("inlineData", "inline_data"), _blob),
}
