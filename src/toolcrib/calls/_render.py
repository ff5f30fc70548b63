"""Rendered: what a model is shown of a result, for every way in to translate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from toolcrib.calls._json import cut, json_text, shapes_and_text
from toolcrib.calls._media import Media
from toolcrib.calls._value_class import value_class

__all__ = ["Rendered", "carried", "render_value"]


@value_class
class Rendered:
    """What a model is shown of an outcome: cut to the tool's `max_result_chars`, with secrets hidden.

    Attributes:
        text: All of it as text, with a placeholder such as `[image/png: chart.png, 264 bytes]` for each of the media.
        is_error: Whether there is no result.
        parts: Text and media in their order, for a way in that carries media; empty where there are none.
        value: The result as JSON shapes, or as text where it had to be cut; None unless it was asked for.
    """

    text: str
    is_error: bool = False
    parts: tuple[str | Media, ...] = ()
    value: Any = None


def render_value(value: object, tool: str = "", limit: int | None = None, *, structured: bool = False) -> Rendered:
    """Return what a model is shown of a tool's value.

    Args:
        value: What the tool returned, or one value of a stream.
        tool: Its name, for the error.
        limit: The most characters of text; of a longer one the head and the tail are kept, and the cut is said.
        structured: Give the value as JSON shapes, too.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    if type(value) is str:
        text = cut(value, limit)
        return Rendered(text, value=text if structured else None)
    media: list[Media] = []
    shape = None
    if structured:
        shape, text = shapes_and_text(value, tool, media)
    else:
        text = json_text(value, tool, media)
    if media:
        return _with_media(tuple(_parts(value, tool)), limit, shape)
    shown = cut(text, limit)
    return Rendered(shown, value=shape if shown is text or not structured else shown)


def carried(parts: Iterable[str | Media], takes: Callable[[Media], bool]) -> list[str | Media]:
    """Return text and media for a way in that takes some media, with placeholders in the text for the others."""
    made: list[str | Media] = []
    for part in parts:
        if isinstance(part, Media) and takes(part):
            made.append(part)
        elif made and isinstance(made[-1], str):
            made[-1] = f"{made[-1]}\n{part}"
        else:
            made.append(str(part))
    return made


def _with_media(parts: tuple[str | Media, ...], limit: int | None, shape: Any) -> Rendered:
    words = "\n".join(part for part in parts if isinstance(part, str))
    if limit is not None and len(words) > limit:
        parts = (cut(words, limit), *(part for part in parts if isinstance(part, Media)))
        shape = parts[0]
    return Rendered("\n".join(map(str, parts)), parts=parts, value=shape)


def _parts(value: Any, tool: str) -> Iterator[str | Media]:
    """Yield text and media in their order: media alone or in a list where they stand, others after the text around."""
    if isinstance(value, Media):
        yield value
        return
    several = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
    if any(isinstance(part, Media) for part in several):
        for part in several:
            yield from _parts(part, tool)
        return
    media: list[Media] = []
    text = json_text(cast("object", value), tool, media)
    if text:  # providers refuse an empty one
        yield text
    yield from media
