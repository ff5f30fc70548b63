"""Parameters with their annotations resolved: the type of each, and who fills it.

The values that never leave this package are named tuples: a frozen dataclass costs each import a millisecond.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import typing
import unicodedata
from collections.abc import Sequence
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, ForwardRef, NamedTuple, NotRequired, Optional, Required, Union, get_args, get_origin

import pydantic
import typing_extensions
from typing_extensions import ReadOnly, get_type_hints

from toolcrib.schema._context import RunContext
from toolcrib.schema._foreign import foreign_problem
from toolcrib.schema._markers import Injectable, Injected, InjectedParameter, is_field

EMPTY = inspect.Parameter.empty
_UNPACK = (typing.Unpack, typing_extensions.Unpack)  # two objects in Python 3.11


class Annotations(NamedTuple):
    """The names that a function's annotations may use: its module's globals, and those seen where it was defined."""

    globals: dict[str, Any]
    locals: dict[str, Any]


class Resolved(NamedTuple):
    """One parameter whose annotation is known.

    Attributes:
        annotation: The type, `Any` without one; of `*args` and `**kwargs` that of one item.
        kind: One of `inspect.Parameter`'s kinds.
        problem: Why the annotation cannot be resolved, as the end of a sentence; empty when it can.
        injected: Set when the run fills the parameter.
        omitted: Absent from the arguments when not given (an optional key of `**kwargs: Unpack[...]`).
    """

    name: str
    annotation: Any
    default: Any
    kind: int
    problem: str = ""
    injected: InjectedParameter | None = None
    omitted: bool = False


def is_parameter_name(name: str) -> bool:
    """Return whether Python code may write `name=value` in a call, and the function gets that very name."""
    written = name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"
    return written and unicodedata.normalize("NFKC", name) == name


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
    """Return the type that `annotation` means, and why it cannot be known (or an empty string)."""
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
    if isinstance(inner, _Unknown):
        inner = Any
    has_default = default is not EMPTY
    optional = has_default or accepts_none
    if is_marked(annotation, Injected):
        return InjectedParameter(name, inner, "injected", optional, has_default)
    kind: Any = get_origin(inner) or inner
    if not isinstance(kind, type):
        return None
    if issubclass(kind, RunContext):
        return InjectedParameter(name, kind, "context", optional, has_default)
    if issubclass(kind, Injectable):
        return InjectedParameter(name, kind, "injectable", optional, has_default)
    return None


def default_in(annotation: Any) -> Any:
    """Return the default that an annotation has in a `Field`, as a field of its own; EMPTY where it has none."""
    if get_origin(annotation) is not Annotated:
        return EMPTY
    notes = [note for note in get_args(annotation)[1:] if is_field(note) and not note.is_required()]
    if not notes:
        return EMPTY
    last = notes[-1]
    new = pydantic.Field
    return new(default_factory=last.default_factory) if last.default_factory else new(default=last.default)


def resolve(parameters: Sequence[inspect.Parameter], names: Annotations, context_first: bool) -> tuple[Resolved, ...]:
    """Return the parameters with their types; the keys of `**kwargs: Unpack[...]` become parameters of their own."""
    resolved: list[Resolved] = []
    for index, parameter in enumerate(parameters):
        name, default, kind = parameter.name, parameter.default, int(parameter.kind)
        annotation, problem = evaluate(parameter.annotation, names)
        if get_origin(annotation) in _UNPACK and kind == inspect.Parameter.VAR_KEYWORD:
            resolved.extend(unpacked(get_args(annotation)[0], names))
            continue
        if context_first and index == 0:
            injected = InjectedParameter(name, RunContext, "context", default is not EMPTY, default is not EMPTY)
        else:
            injected = find_injected(name, annotation, default)
            written = EMPTY if parameter.annotation is EMPTY else annotation
            problem = problem or foreign_problem(index, name, written, default)
        if default is EMPTY and injected is None:
            default = default_in(annotation)
        if default is None and annotation is not Any and not problem:  # `x: int = None` means that None will do
            annotation = Optional[annotation]  # noqa: UP045 -- works for every kind of annotation
        if problem and injected is None and isinstance(parameter.annotation, str):
            annotation = parameter.annotation  # what the author wrote, for the signature
        resolved.append(Resolved(name, annotation, default, kind, "" if injected else problem, injected))
    return tuple(resolved)


def unpacked(keys: Any, names: Annotations) -> list[Resolved]:
    """Return the keys of the TypedDict in `**kwargs: Unpack[TypedDict]` as parameters."""
    hints = get_type_hints(keys, names.globals, dict(names.locals), include_extras=True)
    optional: frozenset[str] = keys.__optional_keys__
    found: list[Resolved] = []
    for name, hint in hints.items():
        omitted = name in optional
        while (qualifier := get_origin(hint)) in (Required, NotRequired, ReadOnly):
            omitted = qualifier is NotRequired or (omitted and qualifier is not Required)
            hint = get_args(hint)[0]
        found.append(Resolved(name, hint, EMPTY, inspect.Parameter.KEYWORD_ONLY, omitted=omitted))
    return found
