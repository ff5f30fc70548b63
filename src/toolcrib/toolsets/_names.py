"""Names of tools that a gate is about: one that fits no tool would leave a tool without its gate, in silence."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from toolcrib import toolsets
from toolcrib.errors import ToolConstraintError, nearest
from toolcrib.hooks import GateStep, refused_by, target_name
from toolcrib.toolsets._scopes import fits, is_pattern

_log = logging.getLogger("toolcrib.tools")
_TYPING_ERROR = 0.8  # how near a name is to that of a tool, at least, to be meant for it
_WORD, _CAPITAL = re.compile(r"[^\W_]+"), re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ToolNames(set[str]):
    """Names of the tools that gates may be about, and the names of no tool that were logged already."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__(names)
        self.logged: set[tuple[str, str]] = set()


def check_names(
    who: str,
    named: Iterable[str],
    known: Collection[str],
    *,
    are_all: bool = True,
    by_words: bool = False,
    kind: str = "tool",
) -> None:
    """Check that each name that a gate is about is that of a tool. A pattern that fits none is logged as a warning.

    Args:
        who: The gate, for errors.
        named: The names and patterns that it is about.
        known: The names of the tools.
        are_all: Whether there are no other tools. If there may be, a name that is nearly one of these is an error, and
            any other name is logged; with `ToolNames` it is logged once.
        by_words: Whether a name that is a part of that of a tool, such as one without its prefix, is nearly that, too.
        kind: The kind of things that are named, where they are not tools.

    Raises:
        ToolConstraintError: There is no such tool.
    """
    names = [*named]
    unnamed = {*known}.difference(names)
    for name in _unfit(names, known):
        if not is_pattern(name) and (are_all or any(_is_near(name, tool, by_words=by_words) for tool in unnamed)):
            raise ToolConstraintError(name, f"{who} is about it, and there is no such {kind}", tuple(known))
    log_names(who, names, known, kind=kind)


def log_names(who: str, named: Iterable[str], known: Collection[str], *, kind: str = "tool") -> None:
    """Log each name and pattern that fits none of the tools; see `check_names`."""
    logged = known.logged if isinstance(known, ToolNames) else set[tuple[str, str]]()
    for name in _unfit(named, known):
        if (who, name) not in logged:
            logged.add((who, name))
            _log.warning("%s is about `%s`, which fits no %s here. %s", who, name, kind, _listed(known))


def _is_near(name: str, tool: str, *, by_words: bool) -> bool:
    """Return whether a name is meant for a tool: but for capitals, separators, swapped letters or a typing error."""
    words, words_of_tool = _words(name), _words(tool)
    if by_words and (words <= words_of_tool or words_of_tool <= words):
        return True
    letters, other = "".join(_WORD.findall(name.lower())), "".join(_WORD.findall(tool.lower()))
    swapped = (letters[:at] + letters[at : at + 2][::-1] + letters[at + 2 :] for at in range(len(letters) - 1))
    return letters == other or other in swapped or bool(nearest(letters, [other], cutoff=_TYPING_ERROR))


def _words(name: str) -> set[str]:
    return {*_WORD.findall(_CAPITAL.sub("_", name).lower())}


def _unfit(named: Iterable[str], known: Collection[str]) -> list[str]:
    return [name for name in named if not any(fits(name_or_pattern, name) for name_or_pattern in known)]


def check_gates(steps: Iterable[GateStep], tools: Mapping[str, Any]) -> None:
    """Check that gates can hold for tools (`Tool`, by name), which are all that there are.

    Raises:
        ToolConstraintError: A gate is about a tool that is not one of them.
        ValueError: A gate cannot hold for them.
    """
    for step in steps:
        if tools:
            check_names(f"the gate `{step.name}`", step.tool_names, tools)
        if step.check_tools is not None:
            step.check_tools(tools, is_complete=True)


def misnamed(steps: Iterable[GateStep], known: ToolNames) -> Iterator[tuple[GateStep, ToolConstraintError]]:
    """Yield the gates that are about a name that is nearly that of a tool, and what is wrong with each.

    Args:
        steps: The gates of a run, which may pass other toolsets, too.
        known: The names of the tools here.
    """
    for step in steps:
        try:
            check_names(f"the gate `{step.name}` of the run", step.tool_names, known, are_all=False)
        except ToolConstraintError as error:
            yield step, error


def refusals(steps: Iterable[GateStep], known: ToolNames) -> list[GateStep]:
    """Return a gate that refuses each call for each of the `misnamed`."""
    return [GateStep(step.name, "resolve", _Refusal(error)) for step, error in misnamed(steps, known)]


class _Refusal:
    def __init__(self, error: ToolConstraintError) -> None:
        self._error = error

    def __call__(self, call: Any) -> Any:
        return refused_by(call, self._error)


def require_same_gates(steps: Iterable[GateStep], old: str, new: str) -> None:
    """Check that gates which are about a tool are about it under its new name, too; raises ValueError."""
    for step in steps:
        is_about = {name: any(fits(name, named) for named in step.tool_names) for name in (old, new)}
        if is_about[old] and not is_about[new]:
            raise ValueError(
                f"the gate `{step.name}` is about `{old}`, which would be `{new}`: put the gate on after the new name, "
                "and have it name that"
            )


def _listed(names: Collection[str]) -> str:
    if not names:
        return "There are none"
    first = sorted(names)[:12]
    return "There are: " + ", ".join(f"`{name}`" for name in first) + (", ..." if len(names) > len(first) else "")


def names_of(selected: Iterable[Any]) -> tuple[str, ...]:
    """Return the tool names that each of `selected` stands for, groups spread out; TypeError for a text."""
    if isinstance(selected, str) or not isinstance(selected, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        mend = "; a condition is for toolset.filtered(fn)" if callable(selected) else ""
        raise TypeError(f"names of tools must be a list, as in names=['pay'], and not {selected!r:.80}{mend}")
    names: list[str] = []
    for item in selected:
        names.extend(item.names if isinstance(item, toolsets.Group) else (target_name(item),))
    return tuple(dict.fromkeys(names))
