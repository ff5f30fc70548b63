"""Parameters that another framework fills: here a model would fill them, with anything that it likes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

_FRAMEWORKS: Final = (  # where the modules begin, the name of the framework, and the classes
    ("agents.", "the OpenAI Agents SDK", ("RunContextWrapper", "ToolContext")),
    ("agent_framework.", "Agent Framework", ("FunctionInvocationContext",)),
    ("fastmcp.", "FastMCP", ("Context",)),
    ("google.adk.", "ADK", ("Context", "InvocationContext", "ReadonlyContext", "ToolContext")),
    ("langchain.", "LangChain", ("ToolRuntime",)),
    ("langchain_core.", "LangChain", ("BaseCallbackManager", "InjectedToolArg", "InjectedToolCallId")),
    ("langchain_core.", "LangChain", ("RunnableConfig",)),
    ("langgraph.", "LangGraph", ("InjectedState", "InjectedStore", "Runtime", "ToolRuntime")),
    ("mcp.server.", "the MCP SDK", ("Context",)),
    ("pydantic_ai.", "Pydantic AI", ("RunContext",)),
)
_NAMES: Final = frozenset(name for _, _, names in _FRAMEWORKS for name in names)
_BARE: Final = frozenset({"ctx", "run_context", "tool_context"})  # a first parameter that has no annotation


def foreign_problem(index: int, name: str, annotation: Any, default: Any) -> str:
    """Return why a model may not fill a parameter, as the end of a sentence; empty where another framework does not.

    Args:
        index: Its number in the function.
        name: Its name.
        annotation: Its annotation, resolved.
        default: Its default.
    """
    if index == 0 and name in _BARE and annotation is default is inspect.Parameter.empty:
        return "has no annotation, so that a model would fill it: for the run write `ctx: RunContext`"
    for kind in _classes_in(annotation):
        for base in kind.__mro__ if kind.__module__ != "builtins" else ():
            framework = _framework_of(base) if base.__name__ in _NAMES else ""
            if framework:
                return (
                    f"is one that {framework} fills (`{kind.__name__}`), and here a model would fill it: for the run "
                    "write `ctx: RunContext`, with the RunContext of toolcrib"
                )
    return ""


def _framework_of(cls: type) -> str:
    """Return the framework that fills parameters of a class; empty where none does."""
    module = f"{cls.__module__}."
    return next(
        (name for start, name, classes in _FRAMEWORKS if cls.__name__ in classes and module.startswith(start)), ""
    )


def _classes_in(annotation: Any) -> Iterator[type]:
    """Yield the classes of an annotation, of the notes beside it, and of what it may be beside None."""
    origin = get_origin(annotation)
    if origin is Annotated or origin is Union or origin is UnionType:
        for part in get_args(annotation):
            yield from _classes_in(part)
        return
    if isinstance(origin or annotation, type):
        yield origin or annotation
    elif annotation is not None and not isinstance(annotation, str):
        yield type(annotation)
