"""Checks of a hook's parameters, made when it is attached and not when it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Final

from toolcrib import schema
from toolcrib.errors import asks_for_approval, nearest, refuse_coroutine, require_result
from toolcrib.hooks._events import HookType

_IN_ORDER = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ARGUMENTS = ("**arguments",)  # of the observed tool
_REST = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_NEAR = 0.7
_OTHER_THINGS = ("_code", "_id")  # which a name for something else ends with, as `approval_id`
_NAMES_OF_ALL = frozenset({"a", "args", "arguments", "c", "context", "ctx", "kwargs", "params", "r", "result"})
_SYNONYMS: Final = {
    "arguments": ("args", "kwargs", "tool_args", "tool_input"),
    "args": ("arguments", "kwargs", "tool_args", "tool_input"),
    "ctx": ("context", "run_context", "run_ctx"),
    "call": ("tool_call",),
}
"""Other names of parameters; such a name in another place is a mistake in the order."""
OPTION_WORDS: Final = {
    "requires_approval": "requires_approval",
    "description_override": "description",
    "name_override": "name",
    "approvers": "approvals_needed",
    "max_attempts": "max_retries",
    "timeout_seconds": "timeout",
    "approver": "Run(approver=...)",
    "budget": "Run(gates=[Budgets([Limit(calls=10, per='minute')])])",
    "budgets": "Run(gates=[Budgets([Limit(calls=10, per='minute')])])",
    "limit": "Run(limits=CallLimits(per_tool={...}))",
    "max_calls": "Run(limits=CallLimits(per_tool={...}))",
    "max_usage_count": "Run(limits=CallLimits(per_tool={...}))",
    "is_enabled": "Run(available=...)",
    "args_schema": "the annotations of the function's parameters",
}
"""The options of a tool, or what is used instead, by their names in other frameworks and earlier versions.

`requires_approval` stands for every name that `asks_for_approval`.
"""
_NO_WORDS: Final[Mapping[str, str]] = MappingProxyType({})


def name_of(hook: object) -> str:
    """Return the name of a gate or a delivery that errors and the record show."""
    name = getattr(hook, "name", None) or getattr(hook, "__name__", None)
    return name if isinstance(name, str) else type(hook).__name__


def require_list(who: str, option: str, values: object, example: str) -> None:
    """Raise TypeError when an option is a text, a number or another object that is not a list.

    Args:
        who: The owner of the option, for errors.
        option: The option.
        values: The value that it is given.
        example: An object of the list, as it is written.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{who}: {option} is {values!r:.80}; give a list of them, as in {option}=[{example}]")


def near_option(name: str, options: Iterable[str], words: Mapping[str, str]) -> str | None:
    """Return the option that a keyword is likely meant for, or what is used instead; None where it is near to none.

    Args:
        name: The keyword.
        options: The names of the options.
        words: Options, or what is used instead, by other words for them, as `OPTION_WORDS`.
    """
    other = words.get("requires_approval" if asks_for_approval(name) else name)
    near = () if name.endswith(_OTHER_THINGS) else nearest(name, options, cutoff=_NEAR)
    return other or next(iter(near), None)


def refuse_misspelt_options(
    who: str,
    fn: Callable[..., Any],
    keywords: Iterable[str],
    options: Collection[str],
    remedy: str,
    words: Mapping[str, str] = _NO_WORDS,
) -> None:
    """Check that no keyword is a misspelt option, which a function with `**kwargs` would take as a fixed argument.

    Args:
        who: The owner of the options.
        fn: The function.
        keywords: The keywords: options and fixed arguments.
        options: The names of the options.
        remedy: The remedy for a fixed argument that is named like one, with `{name}` in the place of its name.
        words: As for `near_option`.

    Raises:
        TypeError: One is near to an option's name, or another word for it, and is not a parameter that the function
            has written out.
    """
    unknown = [name for name in keywords if name not in options]
    written: Mapping[str, Parameter] = signature(fn).parameters if unknown else {}
    if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in written.values()):
        return  # such an argument is refused, as the function has no such parameter
    for name in unknown:
        if name not in written and (near := near_option(name, options, words)):
            mend = remedy.format(name=name)
            here = f"Did you mean `{near}`?" if near in options else f"Here it is {near}."
            raise TypeError(f"{who} has no option `{name}`. {here} If it is a fixed argument, {mend}.")


def require_parameters(
    kind: str, fn: Any, *parameters: str, result: str = "", is_awaited: bool = True, takes_none: bool = False
) -> None:
    """Check that `fn` is a function of this kind, which is called with these parameters, by position.

    Args:
        kind: The kind of function, for errors.
        fn: The function.
        parameters: The names of the values that it is called with.
        result: The value that it is to return, for errors; empty where None is an answer as well.
        is_awaited: Whether it may be async.
        takes_none: Whether a path of it may lack a `return`, as None is an answer beside others.

    Raises:
        TypeError: It is not a function, has other parameters, lacks a `return`, or is async where it must not be.
    """
    if not callable(fn):
        raise TypeError(f"the {kind} is {fn!r:.80}; give a function ({', '.join(parameters)})")
    if not is_awaited:
        refuse_coroutine(kind, fn, result)
    try:
        wanted = signature(fn)
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    try:
        wanted.bind(*parameters)
    except TypeError:
        raise TypeError(f"{_called(kind, fn, parameters)}, and takes {wanted}") from None
    named = [p.name for p in wanted.parameters.values() if p.kind in _IN_ORDER][: len(parameters)]
    for name, value in zip(named, parameters, strict=False):
        others = (other for other in parameters if other != value and name in (other, *_SYNONYMS.get(other, ())))
        if meant := next(others, None):
            mend = (
                f"the parameter `{name}` is given the `{value}`, and not the `{meant}`: write ({', '.join(parameters)})"
            )
            raise TypeError(f"{_called(kind, fn, parameters)}, and takes ({', '.join(named)}); {mend}")
    if result:
        require_result(kind, fn, result, takes_none=takes_none)


def _called(kind: str, fn: Any, parameters: Sequence[str]) -> str:
    name = getattr(fn, "__name__", type(fn).__name__)
    return f"the {kind} `{name}` is called with ({', '.join(parameters)})"


def require_policy(who: str, policy: object) -> None:
    """Raise TypeError when an approval policy is not True, False, or a function of the arguments and the context."""
    if callable(policy):
        require_parameters("approval policy", policy, "arguments", "ctx", result="True or False")
    elif not isinstance(policy, bool):
        mend = "give True, False, or a function of the arguments and the run context that returns one of them"
        raise TypeError(f"{who} is {policy!r:.80}; {mend}")


def refuse_argument_names(kind: str, fn: Any, tool: str, arguments: Collection[str], *parameters: str) -> None:
    """Check that the parameters of `fn`, a function of this kind, are not named like the arguments of its tool.

    It is called with these `parameters` by position, and would take the mapping of all arguments for one of them.

    Args:
        kind: The kind of function.
        fn: The function; anything else is left alone.
        tool: The name of the tool.
        arguments: The names of the tool's arguments.
        parameters: The names of the values that the function is called with.

    Raises:
        TypeError: One is named like an argument.
    """
    if not callable(fn) or isinstance(fn, type):
        return
    try:
        named = [p.name for p in signature(fn).parameters.values() if p.kind in _IN_ORDER][: len(parameters)]
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    clashes = [name for name in named if name in arguments and name not in _NAMES_OF_ALL]
    if clashes:
        called = _called(kind, fn, parameters)
        clash = f"`{clashes[0]}` is an argument of `{tool}`"
        mend = f'write `lambda {", ".join(parameters)}: ...`, with arguments["{clashes[0]}"] in it'
        raise TypeError(f"{called}, and takes ({', '.join(named)}): {clash}; {mend}")


def require_event(
    name: str, fn: Callable[..., Any], fixed: Collection[str], event: HookType, observed: schema.ToolSpec | None = None
) -> None:
    """Raise TypeError when an observer requires more than an event, its fixed arguments and the run give it.

    Args:
        observed: The spec of the tool that is observed; None when it is not one, or may be any.
    """
    written = list(signature(fn).parameters.values())
    if not _lacking(written, fixed, event, observed):
        return
    fresh = schema.ToolSpec.from_function(fn, name=name)  # a second one: nothing is resolved before its names exist
    by_run = fresh.injected.keys() | fresh.unresolved
    lacking = _lacking([p for p in written if p.name not in by_run], fixed, event, observed)
    if lacking:
        supplied = f"({', '.join(event.parameters)})"
        if observed is not None and event.parameters == _ARGUMENTS:
            supplied = f"the arguments of `{observed.signature}`"
        raise TypeError(
            f"the hook `{name}` is called with {supplied} at `{event.value}`, and it also requires `{lacking[0]}`. "
            "Remove that parameter, or give it a default or a fixed argument."
        )


def _lacking(
    written: Sequence[Parameter], fixed: Collection[str], event: HookType, observed: schema.ToolSpec | None
) -> list[str]:
    """Return the required parameters that neither the event nor a fixed argument fills."""
    required = [p.name for p in written if p.default is p.empty and p.kind not in _REST and p.name not in fixed]
    match event.parameters:
        case parameters if parameters == _ARGUMENTS:
            supplied = [name for name in required if observed is None or observed.accepts(name)]
        case ("*", *names):
            supplied = names
        case names:
            supplied = [p.name for p in written if p.kind in _IN_ORDER][: len(names)]
    return [name for name in required if name not in supplied]
