"""Hook sets: decisions before a tool runs, and descriptions computed when tools are offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import getmembers, iscoroutinefunction, isroutine
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload, runtime_checkable

from pydantic import BaseModel

from toolcrib._numbers import count_text
from toolcrib.errors import closest, explain_options, nearest
from toolcrib.hooks._middleware import GlobalHooks
from toolcrib.hooks._parameters import require_list, require_parameters

if TYPE_CHECKING:
    from toolcrib.calls import CallMetadata, Decision
    from toolcrib.hooks._decision_hook import DecisionHook, DescriptionHook

D = TypeVar("D", bound=Callable[..., Awaitable[Any]])
I = TypeVar("I")  # noqa: E741 -- the input of a call
M = TypeVar("M", bound=BaseModel)
X = TypeVar("X", covariant=True)
Policy = TypeVar("Policy")

_DECISION_SUFFIX = "_hook"
_DESCRIPTION_SUFFIX = "_description_hook"
_NEARLY = 0.85  # how like a hook's name a method is that was meant to be one: `weather_hok`, and not `weather`


@runtime_checkable
class Named(Protocol):
    """Anything with a tool's name: a tool, a selector, an entry."""

    @property
    def name(self) -> str:
        """The name that models call it by."""
        ...


class Declared(Named, Protocol[X]):
    """A selector of a member that was declared with an `X`."""

    @property
    def declared(self) -> X:
        """The object that the member was declared with."""
        ...


def target_name(target: object) -> str:
    """Return the tool name that `target` stands for: a name, a tool, a selector, or a declared input model.

    Raises:
        TypeError: It stands for no tool.
    """
    if isinstance(target, str):
        return target
    declared: object = getattr(target, "__toolcrib_tool__", target)
    if isinstance(declared, Named):
        return declared.name
    raise TypeError(f"{target!r} does not stand for a tool; give its name, the tool, or its selector")


@runtime_checkable
class NamesTools(Protocol):
    """A toolset, as far as hooks need to know it; a toolset class is one too."""

    @property
    def all(self) -> Callable[[], Iterable[Named]]:
        """Returns its tools, as far as they are known."""
        ...

    @property
    def groups(self) -> Callable[[], Mapping[str, Iterable[str]]]:
        """Returns the names of the tools of each nested toolset, by attribute."""
        ...


@explain_options()
class HookSet:
    """Decision and description hooks, by tool; decisions run in the order they were registered.

    Of a toolset with nested ones, `hooks.<attribute>` is the part for that nested toolset's tools.

    Args:
        tools: The toolset, toolset class or names that hooks may be registered for. With it, a name that does not
            exist is an error at registration; without it, when the set is put on a toolset.
    """

    __slots__ = ("_decisions", "_descriptions", "_groups", "_known", "version")

    def __init__(self, tools: NamesTools | type[Any] | Iterable[object] | None = None) -> None:
        self._groups: dict[str, frozenset[str]] = {}
        self._known: frozenset[str] | None = None
        if isinstance(tools, NamesTools):
            self._known = frozenset(tool.name for tool in tools.all())
            self._groups = {name: frozenset(names) for name, names in tools.groups().items()}
        elif tools is not None:
            require_list("HookSet", "tools", tools, "pay")
            self._known = frozenset(target_name(t) for t in cast("Iterable[object]", tools))
        self._decisions: list[tuple[str | None, DecisionHook]] = []
        self._descriptions: dict[str, DescriptionHook] = {}
        self.version = 0

    def __getattr__(self, name: str) -> HookPart:
        try:
            return HookPart(self, self._groups[name])
        except KeyError:
            raise AttributeError(f"the hook set has no part `{name}`. {closest(name, self._groups)}") from None

    def __repr__(self) -> str:
        return f"<HookSet of {count_text(len(self._decisions) + len(self._descriptions), 'hook')}>"

    # --- registering

    @overload
    def on(self, target: type[M] | Declared[type[M]]) -> HookSlot[M]: ...
    @overload
    def on(self, target: object) -> HookSlot[Any]: ...
    def on(self, target: object) -> HookSlot[Any]:
        """Return the slot of one tool: a decorator for its decision hook, with `.description` for the other kind."""
        name = target_name(target)
        self._require(name)
        return HookSlot(self, name)

    @overload
    def register(self, policy: D) -> D: ...
    @overload
    def register(self, policy: Policy) -> Policy: ...
    def register(self, policy: Any) -> Any:
        """Add a policy, and return it.

        An async function decides for every tool. Any other object is read for methods `<tool>_hook` and
        `<tool>_description_hook`.

        Raises:
            ValueError: A method names no tool, or the object has no hook at all; the right names are listed.
            TypeError: A hook is not async, or the policy is a class and not an object of it.
        """
        if iscoroutinefunction(policy):
            self._add(None, policy)
            return policy
        if isinstance(policy, type):
            raise TypeError(f"{policy.__name__} is a class; give an object of it: `{policy.__name__}()`")
        if isroutine(policy):
            _async(policy)
        members = getmembers(policy, callable)  # a gate that was passed over for want of a word would stand open
        slots = [(*self._slot_of(name), _async(member)) for name, member in members if self._is_hook(name)]
        if not slots:
            wanted = "write an async method named `<tool>_hook` or `<tool>_description_hook`"
            raise ValueError(f"{type(policy).__name__} has no hook; {wanted}.{self._right_names(_DECISION_SUFFIX)}")
        for tool, describes, method in slots:
            if describes:
                self._describe(tool, method)
            else:
                self._add(tool, method)
        return policy

    def with_hooks(self, policy: object) -> HookSet:
        """Return a copy that has `policy` too."""
        copy = self.copy()
        copy.register(policy)
        return copy

    def extend(self, other: HookSet) -> None:
        """Add the other set's hooks after this one's; its descriptions win."""
        for name, decision in other._decisions:
            if name is not None:
                self._require(name)
            self._add(name, decision)
        for name, description in other._descriptions.items():
            self._require(name)
            self._describe(name, description)

    def with_extended(self, other: HookSet) -> HookSet:
        """Return a copy that has the other set's hooks too."""
        copy = self.copy()
        copy.extend(other)
        return copy

    def copy(self) -> HookSet:
        """Return a set with the same hooks."""
        copied = HookSet(self._known)
        copied._groups = self._groups
        copied._decisions = list(self._decisions)
        copied._descriptions = dict(self._descriptions)
        return copied

    # --- asking

    def decisions_for(self, name: str) -> list[DecisionHook]:
        """Return the decision hooks of a tool, in the order of registration."""
        return [decision for target, decision in self._decisions if target is None or target == name]

    def description_for(self, name: str) -> DescriptionHook | None:
        """Return the description hook of a tool, if it has one."""
        return self._descriptions.get(name)

    def targets(self) -> frozenset[str]:
        """Return the tools that a hook is registered for by name."""
        return frozenset([*(name for name, _ in self._decisions if name is not None), *self._descriptions])

    def check(self, names: Iterable[str]) -> None:
        """Raise ValueError when a hook is registered for none of `names`."""
        known = frozenset(names)
        for target in [*(t for t, _ in self._decisions if t is not None), *self._descriptions]:
            if target not in known:
                raise ValueError(
                    f"a hook is registered for `{target}`, and there is no such tool. {closest(target, known)}"
                )

    # --- inside

    def _add(self, name: str | None, decision: DecisionHook) -> None:
        require_parameters("decision hook", decision, "call", "input", result="RunNormally, Complete, Reject or Ask")
        self._decisions.append((name, decision))
        self.version += 1

    def _describe(self, name: str, description: DescriptionHook) -> None:
        require_parameters("description hook", description, "definition")
        self._descriptions[name] = description
        self.version += 1

    def _require(self, name: str, method: str = "") -> None:
        if self._known is None or name in self._known:
            return
        subject = f"the method `{method}` is for" if method else "a hook is registered for"
        suffix = _DESCRIPTION_SUFFIX if method.endswith(_DESCRIPTION_SUFFIX) else _DECISION_SUFFIX
        near, right = closest(name, self._known), self._right_names(suffix)
        raise ValueError(f"{subject} `{name}`, and there is no such tool. {near}{right}")

    def _right_names(self, suffix: str) -> str:
        return f" Methods may be {', '.join(f'`{n}{suffix}`' for n in sorted(self._known))}." if self._known else ""

    def _is_hook(self, method: str) -> bool:
        """Return whether a policy's method is a hook; ValueError for one that was meant to be, and would be no gate."""
        if method.startswith("_") or method.endswith(_DECISION_SUFFIX):
            return not method.startswith("_")
        names = [f"{name}{suffix}" for name in self._known or () for suffix in (_DECISION_SUFFIX, _DESCRIPTION_SUFFIX)]
        near = nearest(method, names, cutoff=_NEARLY)
        if near:
            raise ValueError(f"the method `{method}` is not a hook. Did you mean `{near[0]}`? If not, rename it.")
        return False

    def _slot_of(self, method: str) -> tuple[str, bool]:
        """Return the tool a policy's method is for, and whether it describes it; ValueError for no tool, or two."""
        decides = method.removesuffix(_DECISION_SUFFIX)
        describes = method.removesuffix(_DESCRIPTION_SUFFIX)
        known = self._known or frozenset()
        if describes == method or (decides in known and describes not in known):
            self._require(decides, method)
            return decides, False
        if decides in known:
            raise ValueError(
                f"the method `{method}` may decide for `{decides}` or describe `{describes}`; use `hooks.on(...)`"
            )
        self._require(describes, method)
        return describes, True


class HookPart:
    """The part of a hook set that is for the tools of one nested toolset."""

    __slots__ = ("_hooks", "_names")

    def __init__(self, hooks: HookSet, names: frozenset[str]) -> None:
        self._hooks, self._names = hooks, names

    @overload
    def on(self, target: type[M] | Declared[type[M]]) -> HookSlot[M]: ...
    @overload
    def on(self, target: object) -> HookSlot[Any]: ...
    def on(self, target: object) -> HookSlot[Any]:
        """Return the slot of one of its tools; ValueError for a tool that is not one."""
        name = target_name(target)
        if name not in self._names:
            raise ValueError(f"`{name}` is not a tool of this nested toolset. {closest(name, self._names)}")
        return self._hooks.on(name)

    def register(self, policy: object) -> None:
        """Add a policy for its tools: an async function for all of them, or an object with methods by tool."""
        part = HookSet(self._names)
        if iscoroutinefunction(policy):
            for name in sorted(self._names):
                part.on(name)(policy)
        else:
            part.register(policy)
        self._hooks.extend(part)


class HookSlot(Generic[I]):
    """The place of one tool's hooks: call it with a decision hook, or `.description` with a description hook.

    `I` is the type of the tool's input, where it is declared.
    """

    __slots__ = ("_hooks", "_name")

    def __init__(self, hooks: HookSet, name: str) -> None:
        self._hooks, self._name = hooks, name

    def __call__(
        self, decision: Callable[[CallMetadata, I], Awaitable[Decision]]
    ) -> Callable[[CallMetadata, I], Awaitable[Decision]]:
        """Register a decision hook and return it; raises TypeError for a function that is not async."""
        self._hooks._add(self._name, _async(decision))  # pyright: ignore[reportPrivateUsage] -- the set's own slot
        return decision

    def description(self, description: D) -> D:
        """Register the description hook and return it; the last one registered counts."""
        self._hooks._describe(self._name, _async(description))  # pyright: ignore[reportPrivateUsage] -- the set's own slot
        return description


def _async(fn: Any) -> Any:
    if not iscoroutinefunction(fn):
        raise TypeError(f"the hook `{getattr(fn, '__name__', fn)}` must be an async function")
    return fn


def require_hooks(who: str, hooks: object, around_all: object = None, **middleware: object) -> None:
    """Check the hooks of a toolset or a guard.

    Args:
        who: The object that has them.
        hooks: Its hook set, or None.
        around_all: Its hooks around all tools, or None.
        middleware: Its other hooks by option; each is a mapping by the names of tools, or None.

    Raises:
        TypeError: One is something else, such as a function.
    """
    if hooks is not None and not isinstance(hooks, HookSet):
        raise TypeError(f"{who}: hooks is {hooks!r:.80}; give a HookSet(), whose @hooks.on('refund') takes a function")
    if not isinstance(around_all, GlobalHooks | None):
        raise TypeError(f"{who}: global_hooks is {around_all!r:.80}; give GlobalHooks(pre=..., post=...)")
    for name, functions in middleware.items():
        if functions is not None and not isinstance(functions, Mapping):
            mend = f"give functions by tool, as in {name}={{'refund': fn}}; around all tools, global_hooks"
            raise TypeError(f"{who}: {name} is {functions!r:.80}; {mend}")
