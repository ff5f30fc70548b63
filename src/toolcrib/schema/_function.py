"""Function: what its definition says of it: signature, kind, names its annotations may use, docstring.

Reading one is cheap and happens when a tool is defined; annotations are resolved when they are first needed.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, cast

from toolcrib.errors import SchemaError
from toolcrib.schema._docstring import docstring_of
from toolcrib.schema._foreign import foreign_problem
from toolcrib.schema._parameters import Annotations, Resolved, evaluate, find_injected, resolve
from toolcrib.schema._returns import awaited_type, yielded_type

_ROUTINES = (FunctionType, MethodType, BuiltinFunctionType, functools.partial, type)
_WORD = r"[A-Za-z_]\w*"


class Function:
    """A function, method, partial or object with `__call__`, and what can be read off it.

    Attributes:
        code: The object with its code and its module's names, below decorators.
        written: Its parameters with their annotations as they stand.
    """

    def __init__(self, name: str, fn: Callable[..., Any], context_first: bool) -> None:
        self._name, self.fn = name, fn
        self.code = plain_function(fn)
        signature = read_signature(name, fn)
        self.written = tuple(signature.parameters.values())
        self.written_return = signature.return_annotation
        self._locals = seen_locals(self.code, signature)
        self._context_first = context_first
        target: Any = fn
        called = target if isinstance(fn, _ROUTINES) else type(target).__call__  # and not what it may wrap
        self.is_coroutine = inspect.iscoroutinefunction(called)
        self.is_generator = not self.is_coroutine and inspect.isasyncgenfunction(called)
        self.is_sync_generator = not self.is_coroutine and inspect.isgeneratorfunction(called)

    @property
    def module(self) -> str:
        """The module that it was defined in."""
        return getattr(self.code, "__module__", None) or __name__

    @property
    def written_doc(self) -> str:
        """Its docstring as it stands; quicker than to remove its indentation."""
        written: object = getattr(self.code, "__doc__", None)
        return written if isinstance(written, str) else self.doc

    @property
    def doc(self) -> str:
        """Its docstring, or that of the object it belongs to."""
        return docstring_of(self.code) or docstring_of(self.fn)

    def accepts(self, name: str) -> bool:
        """Return whether it can be given an argument of this name."""
        rest = inspect.Parameter.VAR_KEYWORD
        return any(parameter.name == name or parameter.kind is rest for parameter in self.written)

    def require_own_parameters(self, fixed: Collection[str]) -> None:
        """Check that another framework fills no parameter; an annotation that is a text is read later.

        Args:
            fixed: Those that the definition of the tool supplies.

        Raises:
            SchemaError: Another framework fills a parameter.
        """
        for index, parameter in enumerate(self.written):
            note = parameter.annotation
            is_read = isinstance(note, str) or (self._context_first and index == 0)
            if is_read or parameter.name in fixed or find_injected(parameter.name, note, parameter.default):
                continue
            problem = foreign_problem(index, parameter.name, note, parameter.default)
            if problem:
                raise SchemaError(self._name, parameter.name, problem)

    def names(self) -> Annotations:
        """Return the names that its annotations may use."""
        type_parameters = {parameter.__name__: parameter for parameter in getattr(self.code, "__type_params__", ())}
        return Annotations(getattr(self.code, "__globals__", {}), {**type_parameters, **(self._locals or {})})

    def parameters(self) -> tuple[Resolved, ...]:
        """Return its parameters with their annotations resolved."""
        return resolve(self.written, self.names(), self._context_first)

    def untyped(self) -> frozenset[str]:
        """Return the parameters without an annotation."""
        return frozenset(p.name for p in self.written if p.annotation is inspect.Parameter.empty)

    def returns(self) -> Any:
        """Return the return annotation; `inspect.Signature.empty` without one, or if it cannot be resolved."""
        written = self.written_return
        if written is inspect.Signature.empty:
            return written
        annotation, problem = evaluate(written, self.names())
        return inspect.Signature.empty if problem else annotation

    def shown_return(self) -> Any:
        """Return the return annotation, as it is written where it cannot be resolved."""
        annotation = self.returns()
        return self.written_return if annotation is inspect.Signature.empty else annotation

    def result(self) -> Any:
        """Return the type of what comes out: of one value for a generator, of what is awaited for an awaitable."""
        annotation = self.returns()
        if self.is_generator or self.is_sync_generator:
            return yielded_type(annotation)
        return annotation if self.is_coroutine else awaited_type(annotation)


def read_signature(name: str, fn: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of `fn` with annotations as they stand.

    Raises:
        TypeError: `fn` is built in and has no signature.
    """
    try:
        return inspect.signature(fn)
    except ValueError:
        raise TypeError(
            f"`{name}` has no readable signature: {fn!r} is built in. Wrap it in a function with annotations."
        ) from None


def plain_function(fn: Any) -> Any:
    """Return the object with the code and the globals of `fn`, through partials, wrappers, methods and `__call__`."""
    if isinstance(fn, FunctionType):
        wrapped: Any = getattr(fn, "__wrapped__", None)
        return fn if wrapped is None else plain_function(wrapped)
    if isinstance(fn, functools.partial):
        return plain_function(cast("functools.partial[Any]", fn).func)
    if isinstance(fn, MethodType):
        return plain_function(fn.__func__)
    if isinstance(fn, type):
        return plain_function(fn.__init__)
    of_type = cast("type[Any]", type(fn))
    wrapped = getattr(fn, "__wrapped__", None) or getattr(of_type, "__call__", None)  # noqa: B004 -- it is fetched
    return plain_function(wrapped) if isinstance(wrapped, FunctionType | MethodType | functools.partial) else fn


def seen_locals(code: Any, signature: inspect.Signature) -> dict[str, Any] | None:
    """Return the outer function's locals that string annotations of a nested one name; None for any other function.

    Only the values that are named are kept, so nothing else of that frame is held alive.
    """
    qualname: str = getattr(code, "__qualname__", "")
    outer, nested, _ = qualname.rpartition(".<locals>.")
    if not nested:
        return None
    notes = [p.annotation for p in signature.parameters.values()] + [signature.return_annotation]
    words = {word for note in notes if isinstance(note, str) for word in re.findall(_WORD, note)}
    if not words:
        return None
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- the documented way to the caller's names
    module_names: object = getattr(code, "__globals__", None)
    while frame is not None and not (frame.f_code.co_qualname == outer and frame.f_globals is module_names):
        frame = frame.f_back
    if frame is None:
        return None
    around = frame.f_locals
    return {word: around[word] for word in words if word in around}
