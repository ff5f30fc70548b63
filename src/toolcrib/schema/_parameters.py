"""From a function's signature to its parameters: who fills each, and what its annotation means.

Reading is cheap and happens when a tool is defined; resolving annotations waits until somebody needs them.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, ForwardRef, Union, cast, get_args, get_origin

from typing_extensions import get_type_hints

from toolcrib.schema._context import RunContext
from toolcrib.schema._markers import Injectable, Injected, InjectedParameter

__all__ = ["EMPTY", "Annotations", "Resolved", "read_signature", "resolve"]

EMPTY = inspect.Parameter.empty
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Annotations:
    """What names in a function's annotations mean: its module's globals, and what it could see where it was defined."""

    globals: dict[str, Any]
    locals: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resolved:
    """One parameter whose annotation is known.

    Attributes:
        annotation: The type, `Any` where there is none; of `*args` and `**kwargs` that of one item.
        problem: Why the annotation cannot be resolved, as the end of a sentence; empty when it can.
        injected: Set when the run fills the parameter.
        omitted: Absent from the arguments when not given (an optional key of `**kwargs: Unpack[...]`).
    """

    name: str
    annotation: Any
    default: Any
    kind: inspect._ParameterKind
    problem: str = ""
    injected: InjectedParameter | None = None
    omitted: bool = False


def read_signature(name: str, fn: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of `fn` with annotations as they stand.

    Raises:
        TypeError: `fn` is built in and does not tell.
    """
    try:
        return inspect.signature(fn)
    except ValueError:
        raise TypeError(
            f"`{name}` has no readable signature: {fn!r} is built in. Wrap it in a function with annotations."
        ) from None


def plain_function(fn: Callable[..., Any]) -> Any:
    """Return the function that holds the code and the globals of `fn`, through partials, wrappers and `__call__`."""
    target: Any = fn
    while True:
        if isinstance(target, functools.partial):
            target = cast("functools.partial[Any]", target).func
        elif hasattr(target, "__wrapped__"):
            target = target.__wrapped__
        elif inspect.ismethod(target):
            target = target.__func__
        elif not hasattr(target, "__globals__") and inspect.isroutine(getattr(type(target), "__call__", None)):
            call = type(target).__call__
            if not hasattr(call, "__globals__"):  # a class or a built-in: no annotations to look up
                return target
            target = call
        else:
            return target


def seen_locals(fn: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any] | None:
    """Return what string annotations of a nested function name in the function around it; None for any other function.

    Only the values that are named are kept, so nothing else of that frame is held alive.
    """
    target = plain_function(fn)
    qualname: str = getattr(target, "__qualname__", "")
    outer, nested, _ = qualname.rpartition(".<locals>.")
    if not nested:
        return None
    notes = [p.annotation for p in signature.parameters.values()] + [signature.return_annotation]
    words = {word for note in notes if isinstance(note, str) for word in _WORD.findall(note)}
    if not words:
        return None
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] -- the documented way to the caller's names
    while frame is not None and frame.f_code.co_qualname != outer:
        frame = frame.f_back
    if frame is None:
        return None
    around = frame.f_locals
    return {word: around[word] for word in words if word in around}


def annotations_of(fn: Callable[..., Any], captured: dict[str, Any] | None) -> Annotations:
    """Return the names that the annotations of `fn` may use."""
    target = plain_function(fn)
    own = {parameter.__name__: parameter for parameter in getattr(target, "__type_params__", ())}
    return Annotations(getattr(target, "__globals__", {}), {**own, **(captured or {})})


# --- resolving -------------------------------------------------------------------------------------------------------


class _Unknown:
    """Stands for a name that does not exist at run time, so that what surrounds it can still be read."""

    def __getattr__(self, name: str) -> _Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, item: object) -> _Unknown:
        return self

    def __or__(self, other: object) -> _Unknown:
        return self

    __ror__ = __or__

    def __call__(self) -> None:
        """Callable, because typing asks that of type arguments."""


class _Namespace(dict[str, Any]):
    """Names for `eval`, with `_Unknown` for those that do not exist."""

    def __init__(self, names: Annotations) -> None:
        super().__init__()
        self.names = names
        self.unknown: list[str] = []

    def __missing__(self, name: str) -> Any:
        for known in (self.names.locals, self.names.globals, vars(builtins)):
            if name in known:
                return known[name]
        if name == "RunContext":  # imported for type checkers only; nothing else is called that by accident
            return RunContext
        self.unknown.append(name)
        return _Unknown()


def evaluate(annotation: Any, names: Annotations) -> tuple[Any, str]:
    """Return the type that `annotation` means, and why it cannot be told (or an empty string)."""
    if annotation is EMPTY:
        return Any, ""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation, ""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, names.globals, dict(names.locals), include_extras=True)["it"], ""
    except Exception as error:  # annotations are the user's code
        problem = f"has an annotation that cannot be evaluated ({type(error).__name__}: {error})"
    if not isinstance(annotation, str | ForwardRef):
        return annotation, problem
    space = _Namespace(names)
    text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
    try:
        partial = eval(text, {}, space)  # the text is the program's own annotation, as get_type_hints evaluates it
    except Exception:  # annotations are the user's code
        return Any, problem
    if space.unknown:
        missing = ", ".join(f"`{name}`" for name in dict.fromkeys(space.unknown))
        problem = f"is annotated `{text}`, and {missing} does not exist at run time (imported under TYPE_CHECKING?)"
    return partial, problem


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return the type without `Annotated` and `| None`, and whether None was accepted."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return without_none(get_args(annotation)[0])
    if origin is Union or origin is UnionType:
        rest = [part for part in get_args(annotation) if part is not NoneType]
        if len(rest) == 1 and len(rest) < len(get_args(annotation)):
            return without_none(rest[0])[0], True
    return annotation, False


def is_marked(annotation: Any, marker: type) -> bool:
    """Return whether `annotation` is `Annotated[..., marker]`, also as `Annotated[..., marker] | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *notes = get_args(annotation)
        return any(note is marker or isinstance(note, marker) for note in notes) or is_marked(inner, marker)
    if origin is Union or origin is UnionType:
        return any(is_marked(part, marker) for part in get_args(annotation))
    return False


def find_injected(name: str, annotation: Any, default: Any) -> InjectedParameter | None:
    """Return how the run fills the parameter, or None when the caller does."""
    inner, accepts_none = without_none(annotation)
    has_default = default is not EMPTY
    optional = has_default or accepts_none
    if is_marked(annotation, Injected):
        return InjectedParameter(name, inner, "injected", optional, has_default)
    kind = get_origin(inner) or inner
    if not isinstance(kind, type):
        return None
    if issubclass(kind, RunContext):
        return InjectedParameter(name, kind, "context", optional, has_default)
    if issubclass(kind, Injectable):
        return InjectedParameter(name, kind, "injectable", optional, has_default)
    return None


def resolve(
    parameters: Mapping[str, inspect.Parameter], names: Annotations, context_first: bool
) -> tuple[Resolved, ...]:
    """Return the parameters with their types, and with the keys of `**kwargs: Unpack[...]` as parameters of their own."""
    resolved: list[Resolved] = []
    for index, parameter in enumerate(parameters.values()):
        name, default = parameter.name, parameter.default
        annotation, problem = evaluate(parameter.annotation, names)
        if context_first and index == 0:
            injected = InjectedParameter(name, RunContext, "context", default is not EMPTY, default is not EMPTY)
        else:
            injected = find_injected(name, annotation, default)
        if default is None and parameter.annotation is not EMPTY and not problem:
            annotation = annotation | None if isinstance(annotation, type) else Union[annotation, None]  # noqa: UP007
        resolved.append(Resolved(name, annotation, default, parameter.kind, "" if injected else problem, injected))
    return tuple(resolved)
