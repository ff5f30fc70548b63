"""Rendered: what a model is shown of a result, for every way in to translate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from toolcrib._arrow import is_table
from toolcrib._cut import cut
from toolcrib._json_writer import valid_text
from toolcrib.calls._json import Tables, json_text, shapes_and_text
from toolcrib.calls._kept import Blocks, KeptResult
from toolcrib.calls._media import Media
from toolcrib.calls._value_class import value_class


@value_class
class Rendered:
    """An outcome as a model is shown it: cut to the tool's `max_result_chars`, with secrets hidden.

    Attributes:
        text: All of it as text, with a placeholder such as `[image/png: chart.png, 264 bytes]` for each of the media.
        is_error: Whether there is no result.
        parts: Text and media in their order, and blocks where `render` was given some; empty where there is text alone.
        value: The result as JSON shapes, or as text where it had to be cut; None unless it was asked for.
    """

    text: str
    is_error: bool = False
    parts: tuple[str | Media, ...] = ()
    value: Any = None


def render_value(
    value: object,
    tool: str = "",
    limit: int | None = None,
    *,
    structured: bool = False,
    blocks: Blocks | None = None,
    tables: Tables | None = None,
    kept: KeptResult | None = None,
) -> Rendered:
    """Render a tool's value for a model.

    Args:
        value: The return value of the tool, or one value of a stream.
        tool: Its name, for the error.
        limit: The most characters of text; of a longer one the head and the tail are kept, and the cut is said.
        structured: Give the value as JSON shapes, too.
        blocks: Returns the text of a part that stays as it is; a value that has one is not given as JSON shapes.
        tables: Returns what stands for a table in the JSON shapes; a value that is one is not cut then.
        kept: The text that is shown in the place of all its text.

    Raises:
        ResultNotSerializable: Something in it has no JSON form.
    """
    if kept is not None and not kept.has_parts:
        return Rendered(kept.text, value=kept.text if structured else None)
    if type(value) is str:
        text = cut(valid_text(value), limit)
        return Rendered(text, value=text if structured else None)
    if blocks is not None and has_blocks(value, blocks):
        return _with_parts(tuple(_parts(value, tool, blocks)), limit, None, blocks, kept)
    media: list[Media] = []
    shape = None
    if structured:
        shape, text = shapes_and_text(value, tool, media, tables)
        limit = None if tables is not None and is_table(value) else limit
    else:
        text = json_text(value, tool, media)
    if media:
        return _with_parts(tuple(_parts(value, tool, _no_block)), limit, shape, _no_block, kept)
    shown = text if limit is None else cut(text, limit)
    return Rendered(shown, value=shape if shown is text or not structured else shown)


def has_blocks(value: object, blocks: Blocks) -> bool:
    """Return whether a value is one of a way's own blocks, or a list that holds one."""
    return any(blocks(part) is not None for part in _several(value) or (value,))


def result_words(value: object, tool: str, blocks: Blocks) -> str:
    """Return all text of a value that has blocks, as it is shown before them."""
    return "\n".join(text for part in _parts(value, tool, blocks) if (text := _text_of(part, blocks)))


def carried(parts: Iterable[str | Media], takes: Callable[[Media], bool]) -> list[str | Media]:
    """Return text and media for a way in that takes some media, with placeholders in the text for the others."""
    rendered: list[str | Media] = []
    for part in parts:
        if isinstance(part, Media) and takes(part):
            rendered.append(part)
        elif rendered and isinstance(rendered[-1], str):
            rendered[-1] = f"{rendered[-1]}\n{part}"
        else:
            rendered.append(str(part))
    return rendered


def _no_block(part: object) -> None:
    return None


def _several(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def _text_of(part: Any, blocks: Blocks) -> str | None:
    return part if isinstance(part, str) else blocks(part)


def _with_parts(
    parts: tuple[Any, ...], limit: int | None, shape: Any, blocks: Blocks, kept_result: KeptResult | None
) -> Rendered:
    """Return the parts as they are, or with all of their text cut as one and put before those that are not text."""
    words = "\n".join(text for part in parts if (text := _text_of(part, blocks)))
    if kept_result is not None or (limit is not None and len(words) > limit):
        head = cut(words, limit) if kept_result is None else kept_result.text
        parts, shape = (head, *(part for part in parts if not _text_of(part, blocks))), None if shape is None else head
    shown = (str(part) if (text := _text_of(part, blocks)) is None else text for part in parts)
    return Rendered("\n".join(shown), parts=parts, value=shape)


def _parts(value: Any, tool: str, blocks: Blocks) -> Iterator[Any]:
    """Yield parts in order: media and blocks alone or in a list where they stand, others after the text around."""
    if isinstance(value, Media) or blocks(value) is not None:
        yield value
        return
    several = _several(value)
    if any(isinstance(part, Media) or blocks(part) is not None for part in several):
        for part in several:
            yield from _parts(part, tool, blocks)
        return
    media: list[Media] = []
    text = json_text(cast("object", value), tool, media)
    if text:  # providers refuse an empty one
        yield text
    yield from media
