"""Tool: the class of everything that a model can call, however it was made."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib import import_module
from inspect import Signature, iscoroutinefunction, isfunction, signature
from types import CodeType, FunctionType, MethodType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, get_type_hints, overload

from pydantic import BaseModel

from toolcrib import schema
from toolcrib.errors import DuplicateNameError, NotCallable, UnregisteredToolError, explain_missing, suggestion
from toolcrib.formats import ProviderOptions
from toolcrib.hooks import (
    Hook,
    HookMethod,
    HookRaised,
    Observed,
    Observers,
    ToolHook,
    ambient_context,
)
from toolcrib.registry import Registry
from toolcrib.tools._base import BaseTool
from toolcrib.tools._body import Body
from toolcrib.tools._metadata import ToolMetadata
from toolcrib.tools._options import (
    WORDS_ELSEWHERE,
    ToolKeywords,
    ToolOptions,
    ToolType,
    function_name,
    require_contracts,
    split_keywords,
    without_partial,
)

P = ParamSpec("P")
R = TypeVar("R", covariant=True)  # so that a turn's type follows from the coroutine that its tool returns
Q = ParamSpec("Q")
S = TypeVar("S")

_FUNCTIONS = (FunctionType, MethodType)
_log = logging.getLogger("toolcrib.tools")


class _SignatureOfTool:
    """The signature of a tool as its callers see it; the class `Tool` has none of its own."""

    def __get__(self, tool: Tool[..., Any] | None, owner: type) -> Signature:
        if tool is None or tool.fn is None:
            raise AttributeError("__signature__")
        if tool.options.requires_approval is not False:
            raise ValueError(
                f"`{tool.name}` needs approval, which a call of it as a function does not ask for. Give it to an agent "
                f"of another framework with `as_tools([{tool.__name__}])` of its adapter in `toolcrib.adapters`; "
                f"`{tool.__name__}.fn` is the function, without approval."
            )
        full, hidden = signature(tool.fn), tool.fixed.keys() | tool.spec.injected.keys()
        return full.replace(parameters=[p for p in full.parameters.values() if p.name not in hidden])


@explain_missing(
    {
        **dict.fromkeys(("ainvoke", "arun", "call", "forward", "invoke", "on_invoke_tool", "run"), "`await tool(...)`"),
        **dict.fromkeys(
            ("args", "args_schema", "input_schema", "json_schema", "params_json_schema", "schema"), "`tool.parameters`"
        ),
        **dict.fromkeys(("func", "function"), "`tool.fn`"),
    }
)
class Tool(Observed, Generic[P, R]):
    """Something a model can call: a function or a declared input, with its schema, options and observers.

    Made by `@tool`, `@ez_tool`, a `BaseTool` class or `@tool_input`; a call of the tool itself is the host's own, with
    hooks and lock and without approval. `R` is what calling it returns: a coroutine, an async iterator, or for an
    `@ez_tool` what the function returns.

    When it is inspected, it looks like its function without the parameters that are fixed or that the run fills, so
    that other frameworks take it where they take a function. One that may need approval shows no signature
    (ValueError), so that they refuse it: they would call it as the host does, and ask nobody.

    Attributes:
        fn: The function; None for a declared input.
        spec: Everything known of its signature and docstring.
        is_streaming: Whether it yields values instead of returning one.
        options: How it is run and offered.
        metadata: Name, description, schemas and the times of the last run.
        subtools: The tools attached with `subtool()`.
        identity: The identity of the object whose method it is, as JSON shapes; None for a function.
    """

    __code__: CodeType  # of what a call runs: by its flags `inspect` knows a coroutine function
    __defaults__: tuple[Any, ...] | None = None
    __kwdefaults__: dict[str, Any] | None = None
    __signature__ = _SignatureOfTool()
    __wrapped__: Callable[..., Any]

    before_invoke = HookMethod(ToolHook.BEFORE_INVOKE)
    on_yield = HookMethod(ToolHook.ON_YIELD)
    after_invoke = HookMethod(ToolHook.AFTER_INVOKE)
    on_error = HookMethod(ToolHook.ON_ERROR)

    def __init__(
        self,
        spec: schema.ToolSpec,
        options: ToolOptions | None = None,
        *,
        fixed: Mapping[str, Any] | None = None,
        key: str | None = None,
        bare: bool = False,
        source: BaseTool | None = None,
    ) -> None:
        if _is_method(spec.fn):
            raise TypeError(
                f"`{spec.name}` is a method, and a model has no `self` to give. Make tools of an object's methods with "
                "Toolset.from_object(...), or derive a class from BaseTool."
            )
        if _is_bare_context(spec.fn) and source is None:
            raise TypeError(
                f"`{spec.name}`: its first parameter is a context without an annotation, so a model would be asked for "
                "it. Write `ctx: RunContext` for the run's context, or another annotation where a model is to give it."
            )
        self.spec, self.options = spec, options or ToolOptions()
        self.__name__ = key or spec.name
        self.fn: Callable[..., Any] | None = spec.fn
        self.is_streaming = spec.is_generator or spec.is_sync_generator
        self.fixed, self.bare, self.source = dict(fixed or {}), bare, source
        self.metadata = ToolMetadata(spec, self.__name__.rpartition(".")[2])
        self.subtools: list[Tool[..., Any]] = []
        where: Any = type(source) if source is not None else (spec.fn or spec.input_model)
        self.origin = f"{getattr(where, '__module__', '?')}.{getattr(where, '__qualname__', spec.name)}"
        self.identity: Mapping[str, Any] | None = None
        unknown = next((key for key in self.fixed if not spec.accepts(key)), None)
        if unknown is not None:
            raise TypeError(
                f"`{spec.name}` does not accept the fixed argument `{unknown}`. Remove it, or give the function a "
                f"parameter of that name. {suggestion(unknown, ToolKeywords.__annotations__, WORDS_ELSEWHERE)}"
            )
        if self.options.type == ToolType.COMPLETION_CHECK:
            _require_check(spec)
        require_contracts(spec, self.options)
        self._body = None if spec.fn is None else Body(spec.fn, spec, self.options, self.fixed, self.metadata)
        if spec.fn is not None:
            self._look_like(spec.fn)

    def _look_like(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__, self.__annotations__ = fn, getattr(fn, "__annotations__", {})
        self.__doc__ = (fn.__doc__ if isinstance(fn, _FUNCTIONS) else self.spec.doc) or self.spec.description or None
        self.__module__ = getattr(fn, "__module__", type(fn).__module__)
        self.__qualname__ = getattr(fn, "__qualname__", self.__name__)
        inner = without_partial(fn)
        method: Any = getattr(type(self), "_stream" if self.is_streaming else "_return")
        called = method if not self.bare else inner if isinstance(inner, _FUNCTIONS) else type(inner).__call__
        if isinstance(code := getattr(called, "__code__", None), CodeType):
            self.__code__ = code

    # --- what it is

    @property
    def name(self) -> str:
        """The name that models call it by; a subtool's is `parent__child`."""
        return self.spec.name

    @property
    def description(self) -> str:
        """Its purpose: the first paragraph of the docstring, unless given."""
        return self.spec.description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the input; raises SchemaError for a type pydantic cannot describe."""
        return self.spec.parameters

    @property
    def return_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the result (of each value, when it streams), if it is known."""
        return self.spec.return_schema

    @property
    def provider(self) -> ProviderOptions:
        """The options of providers beside the schema."""
        return self.options.provider

    @property
    def signature(self) -> str:
        """The signature as a model sees it, without fixed and injected parameters."""
        return self.spec.signature

    @property
    def input_model(self) -> type[BaseModel]:
        """The pydantic model of the input."""
        return self.spec.input_model

    @property
    def tags(self) -> frozenset[str]:
        """The words by which global hooks choose."""
        return self.options.tags

    @property
    def body(self) -> Body:
        """The object that runs the function; raises NotCallable for a declared input."""
        if self._body is None:
            raise NotCallable(self.name)
        return self._body

    @property
    def observers(self) -> Observers:
        """The table of this tool's observers."""
        return self.body.observers

    @property
    def hooks(self) -> list[Hook[Any]]:
        """The hooks attached to this tool itself."""
        return list(self.observers.hooks) if self._body is not None else []

    @property
    def lock(self) -> asyncio.Lock | None:
        """The lock of the running event loop; None without one, or when there is one for each key."""
        return self._body.gate.lock if self._body is not None and self._body.gate is not None else None

    @property
    def is_watched(self) -> bool:
        """True if values come before the call ends: those it yields, or those it reports."""
        return self.is_streaming or (self.source is not None and self.source.reports)

    def stub(self) -> str:
        """Return the tool as a Python function without a body, after the definitions of the types that it names."""
        types = schema.StubTypes()
        function = self.spec.stub(types=types)
        return "\n\n".join([*types.render(), function])

    def doc_tree(self) -> dict[str, Any]:
        """Return short name, description and subtools, recursively."""
        children = [child.doc_tree() for child in self.subtools]
        return {"name": self.metadata.name, "description": self.description, "subtools": children}

    # --- calling it

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the tool from Python.

        Extra arguments are ignored, missing ones are a TypeError; observers and lock apply, approval does not. An
        `@ez_tool` is the bare function, with what is fixed or filled by the run.
        """
        if self.bare and self.fn is not None:
            if not (self.fixed or self.spec.injected):
                return cast("R", self.fn(*args, **kwargs))
            arguments, extra = self.spec.bind_host(args, kwargs)
            if extra:
                raise TypeError(f"{self.__name__}() does not take the arguments {', '.join(extra)}")
            positional, keywords = self.spec.split(self.body.merge(arguments, ambient_context()))
            return cast("R", self.fn(*positional, **keywords))
        body = self.body
        called: Any = (self._stream if self.is_streaming else self._return)(body, args, kwargs)
        called.__qualname__ = self.__name__  # by which Python warns of a call that was never awaited
        return cast("R", called)

    async def _return(self, body: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return await body.call(self.bind(args, kwargs), ambient_context())
        except HookRaised as raised:
            raise raised.error from raised.error.__cause__  # the host sees it as it was raised

    async def _stream(self, body: Body, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, None]:
        try:
            async with body.stream(self.bind(args, kwargs), ambient_context()) as values:
                async for value in values:
                    yield value
        except HookRaised as raised:
            raise raised.error from raised.error.__cause__  # the host sees it as it was raised

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return a host's arguments by name: extra ones dropped with a log line, fixed ones overridden with a warning.

        Raises:
            InvalidArguments: A required one is missing. A TypeError.
        """
        arguments, dropped = self.spec.bind_host(args, kwargs)
        if dropped:
            _log.info("%s ignores the arguments %s", self.__name__, ", ".join(dropped))
        for key in self.fixed:
            if key in arguments:
                _log.warning("%s: the call overrides the fixed argument %s", self.__name__, key)
        return arguments

    # --- subtools

    @overload
    def subtool(self, fn: Callable[Q, S], /) -> Tool[Q, S]: ...
    @overload
    def subtool(
        self, /, *, replace: bool = False, fixed: Mapping[str, Any] | None = None, **keywords: Unpack[ToolKeywords]
    ) -> Callable[[Callable[Q, S]], Tool[Q, S]]: ...
    @overload
    def subtool(
        self, /, *, replace: bool = False, fixed: Mapping[str, Any] | None = None, **keywords: Any
    ) -> Callable[[Callable[Q, S]], Tool[Q, S]]: ...
    def subtool(
        self,
        fn: Callable[Q, S] | None = None,
        /,
        *,
        replace: bool = False,
        fixed: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> Tool[Q, S] | Callable[[Callable[Q, S]], Tool[Q, S]]:
        """Attach a tool under this one, used bare or with the options of `@tool`.

        It is registered as `parent.child`, if its parent is registered.
        """

        def attach(target: Callable[Q, S]) -> Tool[Q, S]:
            options, merged = split_keywords(target, keywords, fixed)
            short = options.name or function_name(target)
            child = make_tool(target, options, merged, key=f"{self.__name__}.{short}")
            clash = next((t for t in self.subtools if t.metadata.name == short), None)
            if clash is not None and not replace:
                raise DuplicateNameError(child.__name__, clash.origin, child.origin, "Choose another name.")
            if ToolRegistry.holds(self.__name__, self):
                register_tool(child, replace=replace)
            if clash is not None:
                self.subtools.remove(clash)
            self.subtools.append(child)
            return child

        return attach if fn is None else attach(fn)

    def __reduce__(self) -> str:
        """Return by which name a tool of a module is pickled: its function is found there, and so is the tool.

        Raises:
            PicklingError: The module has something else by that name.
        """
        name = getattr(self, "__qualname__", self.__name__)
        found: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            pickle: Any = import_module("pickle")  # which takes long to load, and has been loaded by what asks
            raise pickle.PicklingError(
                f"the tool `{self.__name__}` is pickled by the name of its function, and {self.__module__}.{name} is "
                "something else; make the tool at the top of a module, under that name"
            )
        return name

    def __repr__(self) -> str:
        return f"<Tool {self.__name__} from {self.origin}>"


class _ToolRegistry(Registry[Tool[..., Any]]):
    def definitions(self) -> list[dict[str, Any]]:
        """Return `doc_tree()` of every tool that is not a subtool."""
        return [tool.doc_tree() for tool in self if "." not in tool.__name__]


ToolRegistry = _ToolRegistry(
    UnregisteredToolError,
    mend="Choose another name, pass replace=True where a cell or module is run again, or register=False where a "
    "factory makes one for each of its calls.",
)
"""The registered tools, by name."""


def register_tool(tool: Tool[..., Any], *, replace: bool = False) -> None:
    """Register a tool under its scoped name.

    Raises:
        DuplicateNameError: That name is taken, or the one that models would see. A ValueError.
    """
    key = tool.__name__
    for other in {key.replace(".", "__"), key.replace("__", ".")} - {key}:
        if other in ToolRegistry and not replace:
            registered = ToolRegistry.get(other)
            raise DuplicateNameError(
                tool.name, registered.origin, tool.origin, "Models see both under one name; rename one."
            )
    ToolRegistry.register(key, tool, replace=replace)


def make_tool(
    fn: Callable[Q, S], options: ToolOptions, fixed: Mapping[str, Any], *, key: str | None = None
) -> Tool[Q, S]:
    """Return the tool of an async function or async generator function, to be registered as `key`.

    Raises:
        TypeError: The function is sync, or does not accept a fixed argument.
    """
    key = key or options.name or function_name(fn)
    name = key.replace(".", "__")
    spec = schema.ToolSpec.from_function(
        fn, name=name, description=options.description, fixed=frozenset(fixed), return_schema=options.return_schema
    )
    if spec.is_sync or spec.is_sync_generator:
        shown = function_name(fn)
        if isinstance(fn, type):
            raise TypeError(
                f"`{shown}` is a class, and @tool takes async functions; a class of a tool is a `BaseTool`."
            )
        if (kind := type(fn).__name__) in ("staticmethod", "classmethod"):
            raise TypeError(
                f"`{shown}` is a {kind}, and @tool takes functions: write @{kind} above @tool, not below it."
            )
        raise TypeError(
            f"`{shown}` is a sync function, and @tool takes async ones: write `async def {shown}(...)`, or use "
            "@ez_tool, which runs a sync function in a worker thread."
        )
    return Tool(spec, options, fixed=fixed, key=key)


def _is_method(fn: Any) -> bool:
    """Return whether a function is written in a class and not bound to an object of it."""
    return (
        isfunction(fn)
        and "." in fn.__qualname__
        and fn.__code__.co_varnames[: fn.__code__.co_argcount][:1] == ("self",)
    )


def _is_bare_context(fn: Any) -> bool:
    """Return whether a function takes a context first, as in other frameworks, without an annotation."""
    first = fn.__code__.co_varnames[0] if isfunction(fn) and fn.__code__.co_argcount else ""
    return first in ("ctx", "run_context") and first not in fn.__annotations__ and not fn.__defaults__


def _require_check(spec: schema.ToolSpec) -> None:
    fn = spec.fn
    if fn is None or not iscoroutinefunction(fn):
        raise TypeError(
            f"the completion check `{spec.name}` must be a coroutine function: `async def {spec.name}() -> bool`"
        )
    if get_type_hints(fn).get("return") is not bool:
        raise TypeError(f"the completion check `{spec.name}` must be annotated `-> bool`")
