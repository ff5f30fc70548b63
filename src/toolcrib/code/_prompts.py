"""Prompts for the model that writes programs: the one place where tools become text for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from toolcrib._numbers import count_text, require_number
from toolcrib.code._budget import fitted
from toolcrib.code._listing import Detail, Listing
from toolcrib.sandbox import Dialect

DEFAULT_PREAMBLE = (
    "You can solve this task by writing Python. The functions below are at hand as if imported. Nothing else is: no "
    "files, no network, no other packages."
)
DEFAULT_POSTAMBLE = (
    "Answer with one Python block, from ```python to ```. It runs once, and you then see what it printed: print what "
    "you need to know. Do the whole job in it: loops, conditions, one function's result as another's argument."
)
_DESCRIPTION = "Run a Python program that calls the functions below, and return what it prints."
_RULES = (
    "Call the functions like any others; `await` is not needed.",
    'Results are plain values: text, numbers, lists, dicts; dates are text like "2026-01-31".',
    "A call that fails raises an exception with the reason.",
)
_FILES = "`open`, and everything that uses it, finds these files: {}."
_PACKAGES = "Packages that can be imported: {}."
_TABLES = "Tables are not lists: each is a `{}`, as a result and as an argument."
_STREAMING = "What a streaming function returns is an iterator: take its values one by one, or `list(...)`."
_DOTTED = "`parent__child(...)` may also be written `parent.child(...)`."
_TOOL_RULES = (
    "Write one program for the whole job and send it in a single call, instead of one call for each step.",
    "The program sees only what its own code computes: print what you want to read afterwards.",
    "If it fails, correct the program and send all of it again; nothing is kept from the last one.",
)


def render_prompt(
    listing: Listing, preamble: str | None, postamble: str | None, dialect: Dialect, budget: int | None = None
) -> str:
    """Return the system prompt for a model that answers with a program.

    Args:
        listing: The tools.
        preamble: The first paragraph; None for the default, empty for none.
        postamble: The last paragraph, likewise.
        dialect: The sandbox's Python.
        budget: Tokens that the prompt may take.
    """

    def render(listing: Listing) -> str:
        parts = [
            _preamble(dialect) if preamble is None else preamble,
            _functions(listing),
            _bullets(_rules(listing, dialect.notes)),
            DEFAULT_POSTAMBLE if postamble is None else postamble,
        ]
        return "\n\n".join(part for part in parts if part)

    return _fitted(listing, budget, render)


def _preamble(dialect: Dialect) -> str:
    if not dialect.packages:
        return DEFAULT_PREAMBLE
    return DEFAULT_PREAMBLE.replace(
        "no files, no network, no other packages", f"no network, no packages but {', '.join(dialect.packages)}"
    )


def render_description(listing: Listing, dialect: Dialect, budget: int | None = None, files: Iterable[str] = ()) -> str:
    """Return the description of the one tool that programs are sent through; it has no blank line.

    Args:
        listing: The tools.
        dialect: The sandbox's Python.
        budget: Tokens that the description may take.
        files: The names of the files that each program is given.
    """
    file_names = ", ".join(f"`{name}`" for name in files)

    def render(listing: Listing) -> str:
        packages = (_PACKAGES.format(", ".join(dialect.packages)),) if dialect.packages else ()
        found = (_FILES.format(file_names),) if file_names else ()
        rules = (*_rules(listing, dialect.notes), *packages, *found, *_TOOL_RULES)
        return "\n".join([_DESCRIPTION, _functions(listing), _bullets(rules)])

    return _fitted(listing, budget, render)


def render_tool_prompt(names: Sequence[str]) -> str:
    """Return the part of a system prompt which says that programs go through one tool in one call."""
    listed = ", ".join(f"`{name}`" for name in names)
    head = f"The functions {listed} are called from Python programs, which you send through one tool."
    return f"{head}\n{_bullets(_TOOL_RULES)}"


def _fitted(listing: Listing, budget: int | None, render: Callable[[Listing], str]) -> str:
    require_number("a prompt", "budget", budget, least=1)
    return render(listing) if budget is None else fitted(listing, budget, render)


def _functions(listing: Listing) -> str:
    if not listing.tools:
        return "There are no functions."
    functions, names, parts = "\n".join(listing.functions()), ", ".join(listing.names()), list[str]()
    if listing.detail == Detail.SEARCH:
        parts.append(f"There are {count_text(len(listing.tools), 'function')}, too many to list here.")
    if functions:
        parts.append(f"```python\n{functions}\n```")
    if names:
        which = "The functions" if not parts else "The others" if listing.detail == Detail.NAMES else "Some others"
        parts.append(f"{which}: {names}.")
    return "\n".join(parts)


def _rules(listing: Listing, notes: Iterable[str]) -> Iterable[str]:
    yield from _lookup_rules(listing)
    yield from _RULES
    if listing.has_tables:
        yield _TABLES.format(listing.table)
    if any("__" in name for name in listing.tools):
        yield _DOTTED
    if listing.streams and any(entry.tool.is_streaming for entry in listing.tools.values()):
        yield _STREAMING
    yield from notes


def _lookup_rules(listing: Listing) -> Iterable[str]:
    """Yield how a program looks up what the prompt leaves out."""
    search, describe = listing.lookup_names
    if not listing.tools:
        return
    if listing.detail == Detail.FULL:
        if listing.returns and any(entry.tool.spec.documented_shape for entry in listing.tools.values()):
            yield f'`{describe}("name")` also says what the keys of a result are for.'
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
