"""The ground-truth calls, read from their Python text without running it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Call", "parse_call"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the ground truth writes it: a function's name and literal arguments."""

    text: str
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def bound_to(self, fn: Callable[..., Any]) -> dict[str, Any]:
        """Return the arguments by the parameter names of `fn`, as a model would send them.

        Raises:
            TypeError: `fn` cannot be called like this.
        """
        return dict(inspect.signature(fn).bind(*self.args, **self.kwargs).arguments)


def parse_call(text: str) -> Call:
    """Return the call that `text` spells, such as `cd(folder='document')`.

    Raises:
        ValueError: It is something other than one plain name called with literals.
    """
    text = text.strip()
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise ValueError("not one call of a plain name")
        args = tuple(ast.literal_eval(arg) for arg in node.args)
        kwargs = {_keyword(item): ast.literal_eval(item.value) for item in node.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"cannot read the call `{text}`: {error}") from error
    return Call(text, node.func.id, args, kwargs)


def _keyword(item: ast.keyword) -> str:
    if item.arg is None:
        raise ValueError("`**` in place of named arguments")
    return item.arg
