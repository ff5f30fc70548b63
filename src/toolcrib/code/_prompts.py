"""Prompts for the model that writes programs: the one place where tools become text for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import ceil

from toolcrib.code._listing import Detail, Listing

__all__ = [
    "DEFAULT_POSTAMBLE",
    "DEFAULT_PREAMBLE",
    "estimated_tokens",
    "render_description",
    "render_prompt",
    "render_tool_prompt",
]

DEFAULT_PREAMBLE = (
    "You can solve this task by writing Python. The functions below are at hand as if they were imported. Nothing else "
    "is: no files, no network, no other packages."
)
DEFAULT_POSTAMBLE = (
    "Answer with one Python block, from ```python to ```. It is run once, and you are then shown what it printed, so "
    "print whatever you need to know. Do the whole job in that one program: loops, conditions, one function's result "
    "as another's argument."
)
_DESCRIPTION = "Run a Python program that calls the functions below, and return what it prints."
_RULES = (
    "Call the functions like any others; `await` is allowed and not needed.",
    "Independent calls run at once: `import asyncio`, then `await asyncio.gather(f(a), f(b))`.",
    'Results are plain Python values: text, numbers, lists, dicts; dates are text, as in "2026-01-31".',
    "A call that fails raises an exception with the reason, which you can catch.",
)
_DOTTED = "`parent__child(...)` may also be written `parent.child(...)`."
_TOOL_RULES = (
    "Write one program for the whole job and send it in a single call, instead of one call for each step.",
    "The program sees only what its own code computes: print what you want to read afterwards.",
    "If it fails, mend the program and send all of it again; nothing is kept from the last one.",
)
_BYTES_PER_TOKEN = 3.5


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text takes: one for each 3.5 bytes of its UTF-8.

    Tokenizers get more than that out of English and about that much out of Python, so it is rather too high than too
    low; other scripts count by their bytes.
    """
    return ceil(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN)


def render_prompt(
    listing: Listing, preamble: str | None, postamble: str | None, notes: Sequence[str], budget: int | None = None
) -> str:
    """Return the system prompt for a model that answers with a program.

    Args:
        listing: The tools.
        preamble: The first paragraph; None for the default, empty for none.
        postamble: The last paragraph, likewise.
        notes: Sentences about the sandbox's Python.
        budget: Tokens that the prompt may take.
    """

    def render(listing: Listing) -> str:
        parts = [
            DEFAULT_PREAMBLE if preamble is None else preamble,
            _functions(listing),
            _bullets(_rules(listing, notes)),
            DEFAULT_POSTAMBLE if postamble is None else postamble,
        ]
        return "\n\n".join(part for part in parts if part)

    return _fitted(listing, budget, render)


def render_description(listing: Listing, notes: Sequence[str], budget: int | None = None) -> str:
    """Return the description of the one tool that programs are sent through; it has no blank line."""

    def render(listing: Listing) -> str:
        return "\n".join([_DESCRIPTION, _functions(listing), _bullets((*_rules(listing, notes), *_TOOL_RULES))])

    return _fitted(replace(listing, compact=True), budget, render)


def render_tool_prompt(names: Sequence[str]) -> str:
    """Return the part of a system prompt which says that programs go through one tool in one call."""
    listed = ", ".join(f"`{name}`" for name in names)
    head = f"The functions {listed} are called from Python programs, which you send through one tool."
    return f"{head}\n{_bullets(_TOOL_RULES)}"


def _fitted(listing: Listing, budget: int | None, render: Callable[[Listing], str]) -> str:
    """Return the text with the most detail that is within the budget, the shortest one when none is."""
    if budget is None:
        return render(listing)
    room = int(budget * _BYTES_PER_TOKEN)
    for detail in Detail:
        smaller = replace(listing, detail=detail)
        if smaller.is_longer(room):
            continue
        text = render(smaller)
        if estimated_tokens(text) <= budget:
            return text
    return render(replace(listing, detail=Detail.SEARCH))


def _functions(listing: Listing) -> str:
    if not listing.tools:
        return "There are no functions."
    if listing.detail == Detail.SEARCH:
        return f"There are {len(listing.tools)} functions, too many to list here."
    if listing.detail == Detail.NAMES:
        return f"The functions: {listing.render()}."
    return f"```python\n{listing.render()}\n```"


def _rules(listing: Listing, notes: Iterable[str]) -> Iterable[str]:
    yield from _lookup_rules(listing)
    yield from _RULES
    if any("__" in name for name in listing.tools):
        yield _DOTTED
    yield from notes


def _lookup_rules(listing: Listing) -> Iterable[str]:
    """Yield how a program looks up what the prompt leaves out."""
    search, describe = listing.lookup_names
    if not listing.tools or listing.detail == Detail.FULL:
        return
    if listing.detail == Detail.SEARCH:
        yield (
            f'`{search}("what it should do")` returns the functions that fit, a list of dicts with `name`, `call` and '
            f"`description`."
        )
    rest = "how a function is called and what it returns" if listing.detail >= Detail.NAMES else "the rest"
    yield (
        f'Not everything is shown here: `{describe}("name")` returns {rest}, as text. Print it, and call the function '
        "in that program or the next."
    )


def _bullets(rules: Iterable[str]) -> str:
    return "\n".join(f"- {rule}" for rule in rules)
