"""Words of a user in an item of a transcript, and what is attached to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

_TEXTS = ("", "text", "input_text")  # types of parts that a user writes
_ENCODED = 200  # characters: a longer word is not a word, but bytes as text


@dataclass(frozen=True, slots=True)
class UserWords:
    """The words of a user in one item.

    Attributes:
        texts: The texts that the user wrote.
        attached: The texts in what is attached, such as documents; the kind of one in which none can be read.
    """

    texts: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()


def user_words(item: Mapping[str, Any]) -> UserWords:
    """Return the user's words in an item with `content` or `parts` that holds no tool's result."""
    content = item.get("content", item.get("parts"))
    parts: list[Any] = [content] if isinstance(content, str | Mapping) else [*content] if content else []
    parts += [{"type": "image"}] if item.get("images") else []
    texts, attached = list[str](), list[str]()
    for part in parts:
        text = part if isinstance(part, str) else part.get("text") if _is_written(part) else None
        if isinstance(text, str):
            texts.append(text)
        else:
            attached += [*_texts_in(part)] or ["an attachment"]
    return UserWords(tuple(texts), tuple(attached))


def _is_written(part: Any) -> bool:
    return isinstance(part, Mapping) and (cast("Mapping[str, Any]", part).get("type") or "") in _TEXTS


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, without those that are bytes as text."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            stack.extend(cast("Mapping[str, Any]", part).values())
        elif isinstance(part, list | tuple):
            stack.extend(cast("list[Any]", part))
        elif isinstance(part, str) and (len(part) <= _ENCODED or " " in part[:_ENCODED] or "\n" in part[:_ENCODED]):
            yield part
