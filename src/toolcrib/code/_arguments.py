"""The arguments of a program's call, by the names of the tool's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any

from toolcrib.errors import FieldProblem, InvalidArguments
from toolcrib.schema import ToolSpec

__all__ = ["ArgumentNames"]

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class ArgumentNames:
    """The parameters of one tool that a program may give, in the order it may leave their names out."""

    __slots__ = ("_order", "_rest", "_tool")

    def __init__(self, tool: str, spec: ToolSpec) -> None:
        self._tool = tool
        self._rest: str | None = None
        if spec.fn is None:
            self._order = tuple(spec.input_model.model_fields)
            return
        hidden = spec.fixed | spec.injected.keys()
        shown = [p for p in inspect.signature(spec.fn).parameters.values() if p.name not in hidden]
        self._order = tuple(p.name for p in shown if p.kind in _BY_POSITION)
        self._rest = next((p.name for p in shown if p.kind == Parameter.VAR_POSITIONAL), None)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name; whether they fit is the pipeline's to say.

        Raises:
            InvalidArguments: There are too many, or one is given twice: they cannot even be named.
        """
        if not args:
            return dict(kwargs)
        order = self._order
        named = dict(zip(order, args, strict=False))
        if len(args) > len(order):
            if self._rest is None:
                raise InvalidArguments(self._tool, (FieldProblem("", self._too_many(len(args))),))
            named[self._rest] = list(args[len(order) :])
        for name in kwargs:
            if name in named:
                problem = FieldProblem(name, "given twice, by position and by name")
                raise InvalidArguments(self._tool, (problem,))
        named.update(kwargs)
        return named

    def _too_many(self, given: int) -> str:
        if not self._order:
            return f"takes no arguments by position, and {given} were given; name them"
        names = ", ".join(self._order)
        return f"takes at most {len(self._order)} arguments by position ({names}), and {given} were given"
