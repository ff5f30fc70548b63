"""Decorators and functions that make tools, all of them with the constructor of `Tool`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

from pydantic import BaseModel

from toolcrib import schema
from toolcrib._short_repr import kind_of
from toolcrib.errors import explain_options
from toolcrib.tools._base import BaseTool
from toolcrib.tools._foreign import require_own_object
from toolcrib.tools._options import (
    ToolKeywords,
    ToolOptions,
    class_options,
    function_name,
    only_options,
    split_keywords,
)
from toolcrib.tools._tool import Tool, make_tool, register_tool

P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=type[BaseModel])

_MARK = "__toolcrib_tool__"
_KEPT = ("max_result_chars", "effect", "source")  # options of a tool that a function stands for


@overload
def tool(fn: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    replace: bool = False,
    register: bool = True,
    fixed: Mapping[str, Any] | None = None,
    **keywords: Unpack[ToolKeywords],
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@overload
def tool(
    *, replace: bool = False, register: bool = True, fixed: Mapping[str, Any] | None = None, **keywords: Any
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@explain_options()
def tool(
    fn: Callable[P, R] | None = None,
    /,
    *further: object,
    replace: bool = False,
    register: bool = True,
    fixed: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of an async function or async generator function, and register it by its name.

    Args:
        fn: The function, when used bare.
        replace: Take the place of a registered tool of the same name, as when a notebook cell is run again.
        register: Whether it is found by its name; False for a tool that a factory makes more than once.
        fixed: Arguments merged into every call; for those named like an option.
        keywords: Options (see `ToolOptions`); any other keyword is a fixed argument. A callable without parameters is
            evaluated at each call.

    Raises:
        TypeError: The function is sync, or does not accept a fixed argument.
        ValueError: A tool of that name is registered already.
    """
    _refuse_further(further)

    def make(target: Callable[P, R]) -> Tool[P, R]:
        target_fn, options_of_target = _stood_for(target)
        options, merged = split_keywords(target, {**options_of_target, **keywords}, fixed)
        made_tool = make_tool(target_fn, options, merged)
        if register:
            register_tool(made_tool, replace=replace)
        return made_tool

    return make if fn is None else make(fn)


@overload
def ez_tool(fn: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def ez_tool(
    *, fixed: Mapping[str, Any] | None = None, **keywords: Unpack[ToolKeywords]
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
@overload
def ez_tool(*, fixed: Mapping[str, Any] | None = None, **keywords: Any) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def ez_tool(
    fn: Callable[P, R] | None = None, /, *further: object, fixed: Mapping[str, Any] | None = None, **keywords: Any
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of any function, sync or async, without registering it.

    Called from Python it is the bare function. A model's call goes over the pipeline like any other; a sync function
    then runs in a worker thread, unless `thread=False`. Options and fixed arguments are those of `tool`.
    """
    _refuse_further(further)

    def make(target: Callable[P, R]) -> Tool[P, R]:
        target_fn, options_of_target = _stood_for(target)
        options, merged = split_keywords(target, {**options_of_target, **keywords}, fixed)
        return _function_tool(target_fn, options, merged)

    return make if fn is None else make(fn)


def _refuse_further(values: tuple[object, ...]) -> None:
    if values:
        raise TypeError(
            "a tool is made of a function, whose annotations are the schema and whose docstring is the description; "
            "other words for these are options: name=..., description=..."
        )


def _function_tool(fn: Callable[P, R], options: ToolOptions, fixed: Mapping[str, Any]) -> Tool[P, R]:
    name = options.name or function_name(fn)
    spec = schema.ToolSpec.from_function(
        fn, name=name, description=options.description, fixed=frozenset(fixed), return_schema=options.return_schema
    )
    return Tool(spec, options, fixed=fixed, bare=True)


def tool_input(name: str | None = None, *, output: Any = None, **keywords: Any) -> Callable[[M], M]:
    """Declare a pydantic model as the input of a tool that your own code executes; returns the model itself.

    A RootModel, as of a union or an enum, is one tool, too: every provider wants named arguments, so its value is the
    argument `root`.

    Args:
        name: The tool's name; the class name in snake case when None.
        output: The type of the result, which `complete` checks.
        keywords: Options of `@tool`.
    """

    def declare(model: M) -> M:
        if not isinstance(model, type) or not issubclass(model, BaseModel):  # pyright: ignore[reportUnnecessaryIsInstance] -- what a user gives
            shown = getattr(model, "__name__", model)
            raise TypeError(
                f"@tool_input takes a pydantic model, and {shown} is not a model; make it one with a RootModel: "
                f"`class Input(RootModel[{shown}])`"
            )
        title = name or type(model.__name__, (BaseTool,), {}).name
        options = only_options("@tool_input", title, keywords)
        spec = schema.ToolSpec.from_model(model, name=title, description=options.description, output=output)
        setattr(model, _MARK, Tool[..., Any](spec, options))
        return model

    return declare


def stand_for(fn: Callable[..., Any], made_tool: Tool[..., Any]) -> None:
    """Register a function to stand for this tool where a tool is wanted, instead of one that is made of it.

    A tool that is made of it with options of its own runs this one's function, too, and keeps those of its options that
    `_KEPT` names.
    """
    setattr(fn, _MARK, made_tool)


def _stood_for(fn: Callable[P, R]) -> tuple[Callable[P, R], dict[str, Any]]:
    """Return the function that a tool made of this one runs, and options that it has unless others are given."""
    if isinstance(fn, str):
        raise TypeError(f"a tool is made of a function, and {fn!r} is a text; its name is an option: name={fn!r}")
    made_tool = _declared(fn)
    if not isinstance(fn, FunctionType) or made_tool is None or made_tool.fn is None:
        return fn, {}
    return cast("Callable[P, R]", made_tool.fn), {name: getattr(made_tool.options, name) for name in _KEPT}


def _declared(item: object) -> Tool[..., Any] | None:
    """Return the tool that a function or a declared input stands for; a function that wraps one does not."""
    attributes: Mapping[str, Any] = getattr(item, "__dict__", {}) if isinstance(item, type | FunctionType) else {}
    made_tool = None if "__wrapped__" in attributes else attributes.get(_MARK)
    return cast("Tool[..., Any]", made_tool) if isinstance(made_tool, Tool) else None


def as_tool(item: object) -> Tool[..., Any]:
    """Return the tool that `item` is or stands for.

    It may be a tool, a `BaseTool` class or object, a declared input, or a function.

    Raises:
        TypeError: It is not one of these, or the class cannot be made without arguments.
    """
    if isinstance(item, Tool):
        return cast("Tool[..., Any]", item)
    if isinstance(item, type) and issubclass(item, BaseTool):
        return _base_tool(_instance(item))
    if isinstance(item, BaseTool):
        return _base_tool(item)
    declared = _declared(cast("object", item))
    if declared is not None:
        return declared
    if inspect.isroutine(cast("object", item)):
        return _function_tool(cast("Callable[..., Any]", item), ToolOptions(), {})
    require_own_object(cast("object", item))
    hint = "decorate it with @tool_input(...)" if isinstance(item, type) else "give a tool, a function or a BaseTool"
    hint = "await it first" if inspect.iscoroutine(item) else hint
    raise TypeError(f"{item!r:.200} is not a tool; {hint}")


def _instance(cls: type[BaseTool]) -> BaseTool:
    try:
        return cls()
    except TypeError as error:
        raise TypeError(
            f"{cls.__name__} cannot be made without arguments ({error}); give an object: {cls.__name__}(...)"
        ) from error


def _base_tool(item: BaseTool) -> Tool[..., Any]:
    made_tool = item.__dict__.get(_MARK)
    if isinstance(made_tool, Tool):
        return cast("Tool[..., Any]", made_tool)
    cls = type(item)
    if not callable(getattr(item, "call", None)):
        raise TypeError(f"{cls.__name__} has no method `call`; write `async def call(self, ctx, ...)`")
    options = class_options(cls, item)
    description = item.description or _own_doc(cls)
    spec = schema.ToolSpec.from_function(
        item.call,
        name=item.name,
        description=" ".join((description or "").strip().split("\n\n")[0].split()) or None,
        return_schema=options.return_schema,
        context_first=True,
    )
    tool_of_item: Tool[..., Any] = Tool(spec, options, source=item)
    item.__dict__[_MARK] = tool_of_item
    return tool_of_item


def _own_doc(cls: type[BaseTool]) -> str:
    """Return the docstring of the class or of a class of the user's that it is made from, never `BaseTool`'s own."""
    bases = cls.__mro__[: cls.__mro__.index(BaseTool)]
    return next((inspect.cleandoc(base.__doc__) for base in bases if base.__doc__), "")


def object_tools(
    item: object, *, prefix: str = "", fixed: Mapping[str, Any] | None = None, **keywords: Any
) -> Iterator[Tool[..., Any]]:
    """Yield a tool for every public method of an object, in the order they are written.

    `keywords` are options for all of them, and `fixed` their fixed arguments.

    Methods are found on the class, so that no property is read; names with a leading underscore are private, and those
    that a class of Toolcrib's own defines are the host's: an agent's `approve` is not a tool.

    Raises:
        TypeError: It is a class or a module, whose functions are not methods of an object, it is of another framework,
            or has no public method written in Python.
    """
    if isinstance(item, type):
        raise TypeError(f"{item.__name__} is a class; give an object of it: {item.__name__}(...)")
    if isinstance(item, ModuleType):
        raise TypeError(f"{item.__name__} is a module; give a list of its functions")
    require_own_object(item)
    cls = type(item)
    names: set[str] = set()
    for owner in reversed(cls.__mro__[:-1]):
        is_ours = owner.__module__.partition(".")[0] == "toolcrib"
        for name in () if is_ours else vars(owner):
            if name.startswith("_") or name in names:
                continue
            member = inspect.getattr_static(cls, name)  # as the class has it now, which may be an override
            if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
                names.add(name)
                method = getattr(item, name)
                options, merged = split_keywords(method, {**keywords, "name": prefix + name}, fixed)
                made_tool = _function_tool(method, options, merged)
                made_tool.identity = {"class": cls.__qualname__}
                yield made_tool
    if not names:
        raise TypeError(
            f"{kind_of(item)} has no public method that can be a tool; give an object that has, or functions"
        )
