"""Options of a tool, separated from its fixed arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import StrEnum
from functools import partial
from inspect import isroutine
from typing import Any, TypeAlias, TypedDict, cast

from toolcrib import approvals, calls
from toolcrib._numbers import require_numbers
from toolcrib.errors import OptionKinds, explain_options, refuse_unknown_options
from toolcrib.formats import NO_OPTIONS, ProviderOptions
from toolcrib.hooks import (
    OPTION_WORDS,
    near_option,
    refuse_argument_names,
    refuse_misspelt_options,
    require_parameters,
    require_policy,
    tag_set,
)
from toolcrib.schema import ToolSpec
from toolcrib.tools._labels import Effect, Source, require_effect, require_source

LockOption: TypeAlias = bool | str | Callable[[dict[str, Any]], Hashable]
"""The calls of a tool that wait for each other: all, those of a name, or those of a key made of the arguments."""


@explain_options({"cost": "amount", "price": "amount", "spend": "amount", "unit": "currency"})
@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a call of a tool.

    Attributes:
        amount: A number from 0 on, or a function of the arguments that returns it.
        currency: The currency, such as `EUR`; budgets in others do not count it.
    """

    amount: float | Decimal | Callable[[Mapping[str, Any]], float | Decimal]
    currency: str

    def __post_init__(self) -> None:
        if not isinstance(self.currency, str) or not self.currency:  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise ValueError("Cost: give a currency, as in Cost(0.05, 'EUR')")
        if callable(self.amount):
            require_parameters("cost function", self.amount, "arguments", result="the amount", is_awaited=False)
        else:
            self.of({})

    def of(self, arguments: Mapping[str, Any]) -> Decimal:
        """Return the cost of a call with these arguments.

        Raises:
            ValueError: It is not a number from 0 on.
        """
        amount: Any = self.amount(arguments) if callable(self.amount) else self.amount
        number = calls.number_of(str(amount) if isinstance(amount, Decimal) else amount)
        if number is None or number < 0:
            raise ValueError(f"a cost must be a number from 0 on, and not {amount!r:.40}")
        return number


class ToolType(StrEnum):
    """The use of a tool: an `ACTION`, or a `COMPLETION_CHECK` that says whether an agent is done."""

    ACTION = "action"
    COMPLETION_CHECK = "completion_check"


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options by which a tool is run and offered.

    Attributes:
        name: Its name; the function's when None.
        description: Its purpose; the first paragraph of the docstring when None.
        lock: True for a lock of its own, a name for one shared with other tools, a function of the arguments for one
            per key. It covers the function call alone, or the iteration of a streaming tool.
        max_concurrency: The most executions at a time in one event loop.
        thread: Whether a sync function runs in a worker thread; False keeps a quick one on the event loop.
        tags: Words by which global hooks choose.
        type: The use of the tool.
        requires_approval: True, or a function of the final arguments and the run context that says so.
        approvals_needed: How many people have to approve a call that needs approval, none of whom is its principal.
        timeout: Seconds for one execution, without the wait for locks and people.
        max_retries: Retryable answers a model gets in one run; the toolset's when None.
        max_result_chars: The most characters of a result that go back to a model.
        idempotent: Whether running it twice is as good as once.
        default: Whether it is offered by default.
        return_schema: A JSON schema or a type, in place of the return annotation.
        provider: The options of providers beside the schema.
        effect: Its effect, for a `Provenance` policy: `none` reads, `fetch` reads from an address that an argument
            names, `write` and `create` change and add something in the user's own space, `send` informs others, `spend`
            pays, `delete`, `share` and `execute` do so, `program` runs a program whose own calls are judged one by one.
            None counts as `execute`.
        source: How far its results can be trusted: `trusted`, `name`, `untrusted`, these by field name, or a function
            of the arguments and the result that returns them. None for results that the run has read before.
        content: Parameters that say something and decide nothing, besides those marked with `Content`; `*` is for all
            but those marked with `Decides`.
        readers: To whom its results may be sent, by the values of arguments; None for all.
        listing: Fields that lists of tools show, by their names in MCP: `title`, `icons`, `annotations`, `_meta`.
        cost: The cost of a call of it, for the budgets of `toolcrib.budgets`.
    """

    name: str | None = None
    description: str | None = None
    lock: LockOption = False
    max_concurrency: int | None = None
    thread: bool = True
    tags: frozenset[str] = frozenset()
    type: ToolType = ToolType.ACTION
    requires_approval: approvals.ApprovalPolicy = False
    approvals_needed: int = 1
    timeout: float | None = None
    max_retries: int | None = None
    max_result_chars: int | None = None
    idempotent: bool = False
    default: bool = True
    return_schema: Any = None
    provider: ProviderOptions = NO_OPTIONS
    effect: Effect | None = None
    source: Source | None = "untrusted"
    content: Collection[str] = ()
    readers: Collection[str] | None = None
    listing: Mapping[str, Any] | None = None
    cost: Cost | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            require_name(self.name)
        who = "a tool" if self.name is None else f"`{self.name}`"
        least = {"approvals_needed": 1, "max_concurrency": 1, "max_retries": 0, "max_result_chars": 1}
        require_numbers(who, self, least, seconds=("timeout",))
        if self.type not in tuple(ToolType):
            raise ValueError(f"{who}: type is {self.type!r:.80}; give {' or '.join(str(kind) for kind in ToolType)}")
        if not isinstance(self.provider, ProviderOptions):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"{who}: provider is {self.provider!r:.80}; give ProviderOptions(...) of toolcrib.formats")
        if self.effect is not None:
            require_effect(who, self.effect)
        if self.source is not None and self.source != "untrusted":
            require_source(who, self.source)
        for field, value in (("content", self.content), ("readers", self.readers)):
            if isinstance(value, str):
                raise ValueError(f"{who}: {field} is a collection, as in {field}=[{value!r}]")
            if not isinstance(value, Collection | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
                raise TypeError(f"{who}: {field} is {value!r:.80}; give a list of texts, as in {field}=['ann']")
        if not isinstance(self.listing, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(
                f"{who}: listing is {self.listing!r:.80}; give fields by name, as in listing={{'title': ...}}"
            )
        if self.cost is not None and not isinstance(self.cost, Cost):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
            raise TypeError(f"{who}: cost must be a Cost, as in cost=Cost(0.05, 'EUR'), and not {self.cost!r:.40}")
        require_policy(f"{who}: requires_approval", self.requires_approval)
        if callable(self.lock):
            require_parameters("lock function", self.lock, "arguments", result="the key", is_awaited=False)


class ToolKeywords(TypedDict, total=False):
    """The keywords of `@tool` and its relatives; see `ToolOptions` for what each means."""

    name: str | None
    description: str | None
    lock: LockOption
    max_concurrency: int | None
    thread: bool
    tags: Iterable[str] | None
    type: ToolType
    requires_approval: approvals.ApprovalPolicy
    approvals_needed: int
    timeout: float | None
    max_retries: int | None
    max_result_chars: int | None
    idempotent: bool
    default: bool
    return_schema: Any
    provider: ProviderOptions
    effect: Effect | None
    source: Source | None
    content: Collection[str]
    readers: Collection[str] | None
    listing: Mapping[str, Any] | None
    cost: Cost | None


WORDS_ELSEWHERE = {
    **OPTION_WORDS,
    **{name: f"listing={{'{name}': ...}}" for name in ("annotations", "icons", "title")},
    "meta": "listing={'_meta': ...}",
    "strict": "toolset.definitions(format=..., strict=True)",
    "sequential": "lock",
    "output_schema": "return_schema",
    "return_direct": "a loop over `await session.step()`, which ends where you say",
    **dict.fromkeys(("failure_error_function", "handle_tool_error"), "`raise ModelRetry(text)` in the function"),
    "enabled": OPTION_WORDS["is_enabled"],
    "prepare": "Run(available=...), or `@hooks.on(tool).description`",
    "defer_loading": "searchable(toolset) of toolcrib.toolsets.search",
    "takes_ctx": "a parameter `ctx: RunContext`",
    **dict.fromkeys(("infer_schema", "input_schema", "parameters"), OPTION_WORDS["args_schema"]),
    **dict.fromkeys(("exclude_args", "hidden_args"), "fixed={...}, or a parameter `Annotated[T, Injected]`"),
    "strict_mode": "toolset.definitions(format=..., strict=True)",
    **dict.fromkeys(("docstring_format", "parse_docstring"), "the docstring, which is read without it"),
}
"""`OPTION_WORDS`, and options of other frameworks that restrict no calls: a function with `**kwargs` may take those."""
_MOST_OF_NAME = 128  # what the most generous provider takes
_VERBS = ("approve", "ask", "confirm", "review")  # which a method of the user's own may begin with
_NAMES = frozenset(f.name for f in fields(ToolOptions))
_KINDS = OptionKinds(
    {name: kind for name, kind in ToolOptions.__annotations__.items() if name != "requires_approval"}, __name__
)  # `require_policy` says what a policy is


def split_keywords(
    fn: Callable[..., Any], keywords: Mapping[str, Any], fixed: Mapping[str, Any] | None
) -> tuple[ToolOptions, dict[str, Any]]:
    """Return the options among `keywords`, and the rest as fixed arguments of a function together with `fixed`.

    Raises:
        TypeError: A keyword is near to an option's name, and the function has no such parameter.
    """
    name = _name_among(keywords) or function_name(fn)
    refuse_misspelt_options(
        f"`{name}`", fn, keywords, ToolKeywords.__annotations__, "pass it as fixed={{{name!r}: ...}}", OPTION_WORDS
    )
    if not isinstance(fixed, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's value
        raise TypeError(f"`{name}`: fixed is {fixed!r:.80}; give arguments by name, as in fixed={{'region': 'eu'}}")
    merged = {key: value for key, value in keywords.items() if key not in _NAMES} | dict(fixed or {})
    return _options_of(name, keywords), merged


def function_name(fn: Any) -> str:
    """Return the name of a function, of the one inside a partial, or of a callable object's class."""
    inner = without_partial(fn)
    return getattr(inner, "__name__", None) or type(inner).__name__


def without_partial(fn: Any) -> Any:
    """Return the function inside a partial, or a function itself."""
    while isinstance(fn, partial):
        fn = cast("partial[Any]", fn).func
    return fn


def _name_among(keywords: Mapping[str, Any]) -> str:
    """Return the name among keywords, empty where it is not a text."""
    name = keywords.get("name")
    return name if isinstance(name, str) else ""


def _options_of(name: str, keywords: Mapping[str, Any]) -> ToolOptions:
    """Return the options among keywords of a tool that has this name unless they have another."""
    options: dict[str, Any] = {key: value for key, value in keywords.items() if key in _NAMES}
    _KINDS.read(f"`{name}`", options)
    options["tags"] = tag_set(options.get("tags"), f"`{name}`")
    if options.get("name") is None:
        options["name"] = name
    return ToolOptions(**options)


def only_options(maker: str, name: str, keywords: Mapping[str, Any]) -> ToolOptions:
    """Return the options that `keywords` are; a TypeError that names `maker` for one that is not an option.

    Args:
        name: The tool's name, unless they have another.
    """
    refuse_unknown_options(maker, keywords, _NAMES, WORDS_ELSEWHERE)
    return _options_of(_name_among(keywords) or name, keywords)


def require_contracts(spec: ToolSpec, options: ToolOptions) -> None:
    """Check that the functions among a tool's options do not take its arguments one by one; raises TypeError."""
    functions = {
        "approval policy": (options.requires_approval, "arguments", "ctx"),
        "lock function": (options.lock, "arguments"),
        "cost function": (None if options.cost is None else options.cost.amount, "arguments"),
        "source function": (options.source, "arguments", "result"),
    }
    for kind, (fn, *parameters) in functions.items():
        if callable(fn):
            refuse_argument_names(kind, fn, spec.name, spec.argument_names, *parameters)


def require_name(name: object, what: str = "a tool: name") -> None:
    """Check a name that a host gives a tool, or a part of it.

    Args:
        name: The name.
        what: The subject of the errors.

    Raises:
        TypeError: It is not a text.
        ValueError: No provider takes it.
    """
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a text, and not {name!r:.80}")
    if not name.isprintable() or not name or len(name) > _MOST_OF_NAME or any(char.isspace() for char in name):
        raise ValueError(
            f"{what} is {name!r:.80}; give 1 to {_MOST_OF_NAME} characters without spaces, best letters, digits, "
            "`_` and `-`, which every provider takes"
        )


def require_prefix(what: str, prefix: str) -> str:
    """Return the prefix of names of tools, which may be empty; raises as `require_name`."""
    if prefix != "":
        require_name(prefix, what)
    return prefix


def class_options(cls: type, item: object) -> ToolOptions:
    """Return the options that a class has as attributes, with the values of its object.

    Raises:
        TypeError: An attribute of the user's is a misspelt option: a switch, a number, or what asks for approval and is
            not a method such as `ask_user` or `confirm`.
    """
    known = ToolKeywords.__annotations__
    bases = [base for base in cls.__mro__ if base.__module__.partition(".")[0] != __name__.partition(".")[0]]
    for name, value in [(name, value) for base in bases[:-1] for name, value in vars(base).items()]:
        if name.startswith("_") or name in known or (isroutine(value) and name.partition("_")[0] in _VERBS):
            continue
        near = near_option(name, known, OPTION_WORDS)
        if near == "requires_approval" or (near in known and isinstance(value, bool | int | float)):
            raise TypeError(
                f"{cls.__name__} has no option `{name}`. Did you mean `{near}`? If not, rename the attribute."
            )
    return _options_of(cls.__name__, {key: getattr(item, key) for key in known if hasattr(cls, key)})
