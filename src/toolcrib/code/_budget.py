"""Budget of a prompt: about how many tokens a text takes, and as much detail of each tool as there is room for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from math import ceil

from toolcrib.code._listing import Detail, Listing

# Words with the sign or space before them, numbers, signs, and white space: about where tokenizers cut a text.
_PIECE = re.compile(r"[^\na-zA-Z0-9]?(?:[A-Z]*[a-z]+|[A-Z]+)|\d{1,3}| ?[^\sa-zA-Z0-9]+\n*|\s+")
_WORD, _SIGNS, _BYTES = 8, 3, 3  # letters, signs, and bytes of other scripts that are one token
_HEADINGS = 12  # tokens that a list of names takes beside functions, and functions beside that
_ENOUGH = 0.02  # of the budget, not worth looking for a tool that it is enough for
_MUCH = 0.05  # of the budget, worth a description that is cut
_FEW = 4  # words, not worth being shown
_JOINTS = 3  # tokens by which a text may be more than its parts


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text takes: seldom a tenth more or less than `o200k_base` of OpenAI has."""
    return ceil(_weight(text))


def _weight(text: str) -> float:
    total = 0.0
    for piece in _PIECE.findall(text):
        first, last = piece[0], piece[-1]
        if not piece.isascii():
            total += len(piece.encode("utf-8", "replace")) / _BYTES
        elif last.isalpha():
            sign = not (first.isalpha() or first in " _")
            total += 1 + (len(piece) - 2) // _WORD + (0.5 if sign else 0)
        else:
            total += 1 + max(0, len(piece.strip()) - 1) // _SIGNS
    return total


def fitted(listing: Listing, budget: int, render: Callable[[Listing], str]) -> str:
    """Return the text with the most detail that is within the budget, the shortest one when none is.

    All tools get the most detail that there is room for in all of them. Then one tool after the other, in their order,
    gets one step more where that is within what is left, and so on until not even that is worth a look. Where much is
    left then, because one description is longer than that, the words of it that fit are shown.
    """
    for detail in range(listing.detail, Detail.SEARCH):
        even = replace(listing, detail=Detail(detail))
        if not _is_longer(even, budget):
            text = render(even)
            if _weight(text) <= budget:
                break
    else:
        even = replace(listing, detail=Detail.SEARCH)
        text = render(even)
    room = budget - _weight(text) - (_HEADINGS if even.detail >= Detail.NAMES else 0)
    return render(_raised(even, listing.detail, room, budget)) if even.detail > listing.detail else text


def _raised(even: Listing, most: Detail, room: float, budget: int) -> Listing:
    """Return the listing with more detail of single tools, as far as `room` goes."""
    raised: dict[str, Detail] = {}
    weights: dict[str, float] = {}
    for step in range(even.detail - 1, most - 1, -1):
        for name in even.tools:
            if room < _ENOUGH * budget:
                break
            if raised.get(name, even.detail) != step + 1:
                continue
            before = weights[name] if name in weights else _weight_of(even, name, Detail(step + 1))
            after = _weight_of(even, name, Detail(step))
            if after - before <= room:
                raised[name], weights[name] = Detail(step), after
                room -= after - before
    budgeted = replace(even, raised=raised)
    return budgeted if room < _MUCH * budget else _with_words(budgeted, most, room)


def _with_words(listing: Listing, most: Detail, tokens: float) -> Listing:
    """Return the listing with more words of the first description of which less than all is shown."""
    for name, entry in listing.tools.items():
        detail = listing.detail_of(name)
        if detail in (Detail.FIRST_SENTENCE, Detail.SIGNATURES) and detail > most:
            raised = {**listing.raised, name: Detail.FIRST_SENTENCE}
            room = tokens - _JOINTS + _weight_of(listing, name, detail)

            def weight(count: int, name: str = name) -> float:
                return _weight_of(replace(listing, words={name: count}), name, Detail.FIRST_SENTENCE)

            words = bisect_right(range(len(entry.description.split())), room, key=weight) - 1
            if words > _FEW:
                return replace(listing, raised=raised, words={name: words})
    return listing


def _weight_of(listing: Listing, name: str, detail: Detail) -> float:
    if detail == Detail.SEARCH:
        return 0.0
    if detail == Detail.NAMES:
        return 1 + _weight(f" {name}")
    return _weight(listing.function(name, listing.tools[name], detail) + "\n")


def _is_longer(listing: Listing, budget: int) -> bool:
    """Return whether the tools alone take more than the budget; found without rendering all of them."""
    room = budget + 1.0  # the last function has no line after it
    for name in listing.tools:
        room -= _weight_of(listing, name, listing.detail)
        if room < 0:
            return True
    return False
