"""Toolset: tools by name, with the gates that a group of them shares."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, Final, Never, Self, TypeAlias, TypeVar, cast
from weakref import WeakSet

from toolcrib import results as _results
from toolcrib import toolsets
from toolcrib._numbers import count_text, require_number, require_seconds
from toolcrib.errors import closest, explain_missing, explain_options
from toolcrib.hooks import (
    GateStep,
    GlobalHooks,
    HookSet,
    PerValue,
    PostHookFunc,
    PreHookFunc,
    require_hooks,
    require_middleware,
    target_name,
)
from toolcrib.schema import RunContext
from toolcrib.tools import Instruction, Tool, as_tool, object_tools
from toolcrib.toolsets._class_or_instance import Definitions, class_or_instance
from toolcrib.toolsets._declare import (
    AnyMember,
    NestedMember,
    declared_members,
    member_of,
)
from toolcrib.toolsets._entry import ToolEntry, entry_of
from toolcrib.toolsets._members import (
    Change,
    Step,
    add,
    define,
    guard,
    is_available,
    keeping,
    listed,
    merged,
    offered_names,
    require,
    switched_off,
)
from toolcrib.toolsets._names import ToolNames, log_names
from toolcrib.toolsets._sources import RenewalListener, ToolSource, open_sources
from toolcrib.toolsets._views import ToolsetViews

_log = logging.getLogger("toolcrib.tools")
T = TypeVar("T", bound="Toolset | type[Toolset]")

ToolsetLike: TypeAlias = "Toolset | type[Toolset] | Sequence[Any]"
"""A toolset, a class of one, or a list of tools and functions."""


_GIVEN_AWAY: Final = (
    "`toolset.toolset_id`; to the agent of another framework, `as_tools(toolset)` of its adapter in "
    "`toolcrib.adapters` gives the tools, with their gates"
)


@explain_options(
    {
        "requires_approval": "toolset.with_approval(names=[...])",
        "gates": "toolset.with_gates(...)",
        "budgets": "toolset.with_gates(Budgets([...]))",
        "approvers": "toolset.with_gates(ApproverRules([...], groups))",
        "limits": "Run(limits=CallLimits(...)), or toolset.with_gates(Budgets([...]))",
        "prefix": "toolset.prefixed(...)",
        "name": "toolset_id",
    }
)
@explain_missing(
    {
        **dict.fromkeys(("add", "add_tool", "add_function", "append", "register"), "`Toolset.combined(toolset, [fn])`"),
        **dict.fromkeys(
            ("ainvoke", "call", "call_tool", "execute", "execute_tool", "invoke", "run"),
            "`await Pipeline(toolset).run(ToolCall(name, arguments))`",
        ),
        **dict.fromkeys(("__add__", "__or__"), "`Toolset.combined(first, second)`"),
        **dict.fromkeys(("__enter__", "__aenter__"), "`async with toolset.open() as opened:`"),
        "tool": "`@tool` above the function, and Toolset([fn])",
        **dict.fromkeys(("get_tools", "list_tools"), "`toolset.tools()`"),
        **dict.fromkeys(
            ("as_openai", "openai_tools", "schemas", "to_dict", "to_json", "to_openai", "to_schema"),
            "`toolset.definitions(format='openai')`, or another provider's format",
        ),
        **dict.fromkeys(("from_functions", "from_list", "from_tools"), "`Toolset([fn])`"),
        "from_openapi": "`toolset(document)` of `toolcrib.openapi`",
        **dict.fromkeys(("from_mcp", "from_server"), "`connect(...)` of `toolcrib.adapters.mcp_client`"),
        **dict.fromkeys(("approval_required", "require_approval"), "`toolset.with_approval(...)`"),
        "name": _GIVEN_AWAY,
    }
)
class Toolset(ToolsetViews):
    """Tools by name, with middleware, hooks and limits around them.

    Declared as a class, with members made by `use`, `off` and `nested`, or made of a sequence. Views (`subset`,
    `filtered`, `prefixed`, `renamed`, `with_hooks`, `with_gates`, `with_deliveries`, `with_approval`, `combined`) are
    new toolsets; none of them loses a gate.

    Args:
        tools: Tools, functions, `BaseTool` classes or objects, declared inputs, sources, and other toolsets, whose
            tools become members with all their gates. A tool brings its subtools.
        pre_hooks: Middleware before a tool, by its name: `(ctx, args, metadata) -> args`; one or several.
        post_hooks: Middleware after a tool, by its name: `(ctx, result, metadata) -> result`; one or several.
        global_hooks: Middleware around every tool.
        hooks: Decision and description hooks.
        max_retries: Retryable answers a model gets per tool and run, unless the tool says otherwise.
        timeout: Seconds for one execution, unless the tool says otherwise.
        toolset_id: Names the toolset in messages and in the rules of a `Provenance` policy.
        skip_unavailable: Leave tools that are not available out of what is offered; they can never be called.
        results: Where a result is kept that is too long for a model, with `read_result` as one more tool by which the
            model reads it. Without a store the result is cut.

    Raises:
        DuplicateNameError: Two members have one name; both origins are named. A ValueError.
        ValueError: A hook is for a tool that is not a member.
        TypeError: Middleware cannot be called with the parameters of its kind.
    """

    _fault: Exception | None = None  # of a source that has no tools yet
    _may_be_empty = False
    _rank: int | None = None  # of a source whose tools give way to others of their names

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Read the members a class declares; a TypeError for one that would hide an attribute of Toolset."""
        super().__init_subclass__(**kwargs)
        for name, value in list(vars(cls).items()):
            member = member_of(value)
            if member is None:
                if _is_toolset(value):
                    member = NestedMember(value)
                else:
                    continue
            elif isinstance(member, NestedMember) and not _is_toolset(member.item):
                raise TypeError(f"{cls.__name__}.{name}: nested() takes a toolset; for anything else write use()")
            if hasattr(Toolset, name):
                raise TypeError(f"{cls.__name__}.{name} would hide Toolset.{name}; give the member another name")
            setattr(cls, name, member)

    def __init__(
        self,
        tools: Iterable[Any] = (),
        *others: Never,
        pre_hooks: Mapping[str, PreHookFunc | Sequence[PreHookFunc]] | None = None,
        post_hooks: Mapping[str, PostHookFunc | PerValue | Sequence[PostHookFunc | PerValue]] | None = None,
        global_hooks: GlobalHooks | None = None,
        hooks: HookSet | None = None,
        max_retries: int = 3,
        timeout: float | None = None,
        toolset_id: str | None = None,
        skip_unavailable: bool = True,
        results: _results.ResultStore | None = None,
    ) -> None:
        if others:
            raise TypeError("a toolset takes its tools as one list: Toolset([first, second])")
        require_hooks("a toolset", hooks, global_hooks, pre_hooks=pre_hooks, post_hooks=post_hooks)
        require_seconds("a toolset", "timeout", timeout)
        require_number("a toolset", "max_retries", max_retries, least=0)
        if results is not None and not isinstance(cast("object", results), _results.ResultStore):
            raise TypeError(
                f"`results` of a toolset is {results!r}, and has to be a result store: MemoryResultStore(), or "
                "SqliteResultStore('toolcrib.db') for a file"
            )
        self.toolset_id = toolset_id
        self._sources, self._entries, self._names = (), {}, None
        self._listeners: WeakSet[Any] | None = None  # a set once it is open with tools that may change
        # once it is open: its own tools, and those of each source, with the rank of each; and what clashed
        self._parts: list[tuple[int | None, Iterable[ToolEntry]]] = []
        self._clashes: dict[tuple[str, str], None] = {}
        # the parts whose source is not there, and the steps that wait for its names, with the entries that passed them
        self._absent: dict[int, Exception] = {}
        self._late: dict[Step, dict[str, ToolEntry]] = {}
        self._defaults = (max_retries, timeout, skip_unavailable)
        for _, member in declared_members(type(self)):
            self._admit(member.item, off=member.off)
        for item in listed(tools):
            self._admit(item)
        if results is not None:
            self._apply(lambda entries: (keeping(e, results) for e in entries))
            if (reader := _results.reader_of(results)) not in (entry.tool for entry in self):
                self._admit(reader)
        if timeout is not None:  # also for the members of other toolsets, unless these say otherwise
            self._apply(lambda entries: (e.with_timeout(e.timeout or timeout) for e in entries))
        pre, post, wide = pre_hooks or {}, post_hooks or {}, global_hooks or GlobalHooks()
        require_middleware(pre.values(), "ctx", "args", "metadata")
        require_middleware(post.values(), "ctx", "result", "metadata")
        unknown = next((name for name in [*pre, *post] if name not in self._entries), None)
        if unknown is not None and not self._sources:
            raise ValueError(f"a hook is given for `{unknown}`, which is not in it. {closest(unknown, self._entries)}")
        if hooks is not None and not self._sources:
            hooks.check(self._entries)
        named = {*pre, *post, *(() if hooks is None else hooks.targets())}
        self._apply(lambda entries: (guard(e, pre.get(e.name), post.get(e.name), wide, hooks) for e in entries), named)
        if toolset_id:
            self._apply(lambda entries: (replace(e, toolsets=(toolset_id, *e.toolsets)) for e in entries))
        if type(self)._call_tool_func is not Toolset._call_tool_func:
            self._apply(lambda entries: (replace(e, runners=(self._call_tool_func, *e.runners)) for e in entries))

    @classmethod
    def from_object(
        cls, item: object, *, prefix: str = "", fixed: Mapping[str, Any] | None = None, **keywords: Any
    ) -> Self:
        """Return a toolset of every public method of an object.

        `keywords` are options of `@tool` for all of them, and `fixed` their fixed arguments.
        """
        return cls(object_tools(item, prefix=prefix, fixed=fixed, **keywords))

    @classmethod
    def of(cls, tools: ToolsetLike) -> Toolset:
        """Return `tools` as a toolset: one as it is, a toolset class made, a sequence put into one."""
        if isinstance(tools, Toolset):
            return tools
        return cast("type[Toolset]", tools)() if _is_toolset_class(tools) else cls(cast("Sequence[Any]", tools))

    @classmethod
    def combined(cls, *toolsets: ToolsetLike) -> Toolset:
        """Return one toolset with the tools of several, each with its own gates; DuplicateNameError for a clash."""
        return Toolset([Toolset.of(tools) for tools in toolsets])

    @classmethod
    def declared(cls) -> Iterator[tuple[str, AnyMember]]:
        """Yield the members that the class declares, by attribute."""
        return declared_members(cls)

    async def _call_tool_func(self, args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        """Override to wrap the execution of every tool: a timeout, a retry of idempotent ones, another engine.

        Args:
            args: The final arguments.
            tool: Has `name`, `entry`, and `call_func(args, ctx)`, which goes on.
        """
        return await tool.call_func(args, ctx)

    # --- finding tools

    @property
    def entries(self) -> Mapping[str, ToolEntry]:
        """The tools by the name models call them by, with their gates."""
        return MappingProxyType(self._entries)

    @property
    def __name__(self) -> Never:
        """The name of a function, which other frameworks read of what stands among their tools."""
        raise AttributeError(f"'Toolset' object has no attribute '__name__'. Here it is {_GIVEN_AWAY}")

    def require_open(self) -> None:
        """Raise a ValueError when not every tool is known."""
        if not self.is_open:
            raise ValueError(
                "the toolset has members whose tools are not known yet; open it: `async with toolset.open() as opened:`"
            )

    @class_or_instance
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the tools of each nested member, by attribute."""
        nested = (name for name, member in self.declared() if isinstance(member, NestedMember))
        return {name: getattr(type(self), name).names for name in nested}

    @class_or_instance
    def tools(self) -> list[Tool[..., Any]]:
        """Return the tools, in order."""
        return [entry.tool for entry in self]

    @class_or_instance
    def names(self) -> list[str]:
        """Return the names models call the tools by, in order; a ValueError where they are not known yet."""
        self.require_open()
        return list(self._entries)

    @class_or_instance
    def all(self) -> list[toolsets.Selector[Any]]:
        """Return a selector of every tool, in order."""
        return [toolsets.Selector(entry.name, entry.tool, entry.tool) for entry in self]

    @class_or_instance
    def from_name(self, name: str) -> toolsets.Selector[Any]:
        """Return the selector of a tool, or raise UnknownTool."""
        tool = self[name].tool
        return toolsets.Selector(name, tool, tool)

    @class_or_instance
    def try_from_name(self, name: str) -> toolsets.Selector[Any] | None:
        """Return the selector of a tool, or None."""
        return self.from_name(name) if name in self else None

    @class_or_instance
    def definition(self, selected: toolsets.Selectable) -> toolsets.Definition:
        """Return the definition of one tool for models."""
        return define(self[target_name(selected)])

    definitions = Definitions()

    @class_or_instance
    def offered(self, available: toolsets.ToolAvailability | None = None) -> frozenset[str]:
        """Return the names that an availability comes to; ToolConstraintError for one that is not a member."""
        return offered_names(self._entries, available)

    # --- opening

    @asynccontextmanager
    async def open(
        self, ctx: RunContext[Any] | None = None, *, hide_unavailable: bool = True
    ) -> AsyncGenerator[Toolset]:
        """Open the toolset for one run: sources are asked for their tools, unavailable tools are left out.

        Availability is asked again when a call arrives.

        Args:
            hide_unavailable: False keeps tools that are not available now, for an adapter that asks at each step.

        Raises:
            ToolConstraintError: A hook, an approval or a new name is given for a tool that no member has.
            ServerError: It has no tools, since the server that they come from is not there.
        """
        context: RunContext[Any] = RunContext(None, "", "", "") if ctx is None else ctx
        async with AsyncExitStack() as stack:
            bound, found = self._copy(), dict[Step, dict[str, ToolEntry]]()
            unknown, absent = set[Step](), list[Toolset]()
            bound._parts.append((None, [*bound]))
            opened = await open_sources(stack, sources_of(self), context)
            for (_, steps), source in zip(self._sources, opened, strict=True):
                entries: list[ToolEntry] = [*source]
                for step in steps:
                    found.setdefault(step, {**step.known}).update((entry.name, entry) for entry in entries)
                    entries = [*step.change(entries)]
                bound._parts.append((source._rank if isinstance(source, Toolset) else None, entries))
                bound._entries = merged(bound._parts, bound._note_clash)
                if isinstance(source, Toolset):
                    source._send_renewals_to(bound, steps)
                    if source._fault is not None:
                        unknown.update(steps)
                        absent.append(source)
                        bound._absent[len(bound._parts) - 1] = source._fault
            for source in absent:
                if source._fault is not None and not (bound._entries or source._may_be_empty):
                    raise source._fault
            for source in absent:
                source._note_left_out()
            require({step: entries for step, entries in found.items() if step not in unknown})
            bound._late = {step: entries for step, entries in found.items() if step in unknown}
            asked = [entry for entry in bound if hide_unavailable and entry.skip_unavailable]
            hidden = [entry.name for entry in asked if not await is_available(entry, context)]
            for name in hidden:
                del bound._entries[name]
            bound._parts = [
                (rank, [entry for entry in part if entry.name not in hidden]) for rank, part in bound._parts
            ]
            yield bound

    def _renew(self, at: int, entries: Iterable[ToolEntry]) -> None:
        """Replace the tools of one source of an open toolset; DuplicateNameError for a name of another's."""
        parts = [*self._parts]
        parts[at] = self._parts[at][0], entries
        self._entries = merged(parts, self._note_clash)
        self._parts = parts
        self._absent.pop(at, None)
        if not self._absent:
            self._warn_of_late_names()
        for listener in [*(self._listeners or ())]:
            listener.renewed()

    def _warn_of_late_names(self) -> None:
        """Log the names of no tool that gates are about, now that all sources have their tools."""
        for step, entries in self._late.items():
            known = ToolNames((*self._entries, *entries))
            log_names("a hook, an approval or another name", step.names, known)
            for gate in step.gates:
                log_names(f"the gate `{gate.name}`", gate.tool_names, known)
        self._late = {}

    def _note_clash(self, entry: ToolEntry, other: ToolEntry) -> None:
        """Log, once, that a tool is left out, as another has its name."""
        if (entry.origin, other.origin) not in self._clashes:
            self._clashes[entry.origin, other.origin] = None
            text = "%s is left out: %s is named `%s`, too. Put one set under another prefix."
            _log.error(text, entry.origin, other.origin, entry.name)

    def listen_for_renewal(self, listener: RenewalListener) -> None:
        """Call the listener, as long as it lives, when the tools are others."""
        if self._listeners is not None:
            self._listeners.add(listener)

    async def get_instructions(self, ctx: RunContext[Any]) -> list[Instruction]:
        """Return the texts the available tools want in the system prompt, one for each group: the first."""
        found: dict[str, Instruction] = {}
        for entry in self:
            source = entry.tool.source
            if source is None or not await is_available(entry, ctx):
                continue
            instruction = source.get_instruction(ctx)
            text = await instruction if isawaitable(instruction) else instruction
            if text is not None:
                found_instruction = text if isinstance(text, Instruction) else Instruction(entry.name, text)
                found.setdefault(found_instruction.group, found_instruction)
        return list(found.values())

    async def description_overrides(self) -> dict[str, str]:
        """Return the descriptions that the description hooks give, by name; the outermost hook set wins."""
        texts: dict[str, str] = {}
        for entry in self:
            for hooks, name in reversed(entry.hook_sets):
                hook = hooks.description_for(name)
                text = None if hook is None else await hook(define(entry, texts.get(entry.name)))
                if text is not None:
                    texts[entry.name] = text
        return texts

    # --- inside

    def _note_left_out(self) -> None:
        """Record that a toolset opened without these tools, whose source is not there: only of `LiveTools`."""

    def _send_renewals_to(self, bound: Toolset, steps: Sequence[Step]) -> None:
        """Send later tools to a toolset, which was opened with these and `steps` taken: only of `LiveTools`."""

    def _admit(self, item: Any, *, off: bool = False) -> None:
        if _is_toolset(item):
            inner = Toolset.of(item)
            steps = (Step(switched_off),) if off else ()
            self._sources += tuple((source, (*before, *steps)) for source, before in inner._sources)
            self._extend(switched_off(inner) if off else inner)
        elif isinstance(item, ToolSource):
            self._sources += ((item, (Step(switched_off),) if off else ()),)
        else:
            retries, timeout, skip = self._defaults
            tool = as_tool(cast("object", item))
            entry = entry_of(tool, max_retries=retries, timeout=timeout, skip_unavailable=skip)
            self._extend([replace(entry, off=True) if off else entry])
            for child in tool.subtools:
                self._admit(child, off=off)

    def _extend(self, entries: Iterable[ToolEntry]) -> None:
        for entry in entries:
            add(self._entries, entry)

    def _apply(self, change: Change, names: Iterable[str] = (), gates: Iterable[GateStep] = ()) -> None:
        before, self._entries = self._entries, {}
        self._extend(change(before.values()))
        step = Step(change, names, before, gates)
        self._sources = tuple((source, (*steps, step)) for source, steps in self._sources)

    def _copy(self) -> Toolset:
        view = Toolset(toolset_id=self.toolset_id)
        view._entries = dict(self._entries)
        return view

    def _view(self, change: Change, names: Iterable[str] = (), gates: Iterable[GateStep] = ()) -> Toolset:
        view = self._copy()
        view._sources = self._sources
        view._apply(change, names, gates)
        return view

    def __repr__(self) -> str:
        title = f" {self.toolset_id}" if self.toolset_id else ""
        return f"<{type(self).__name__}{title} of {count_text(len(self), 'tool')}>"


@explain_options()
def nested(item: T, *, off: bool = False) -> T:
    """Declare another toolset whose tools become members; `off` leaves all of them out of what is offered by default.

    Type checkers see the toolset itself, so that `AppTools.data.get_user` is checked as `DataTools.get_user` is.
    """
    return cast("T", NestedMember(item, off=off))


def sources_of(toolset: Toolset) -> tuple[ToolSource, ...]:
    """Return the members whose tools are known only when the toolset is opened, such as MCP servers."""
    return tuple(source for source, _ in toolset._sources)  # pyright: ignore[reportPrivateUsage] -- of this file


def faults_of(toolset: Toolset) -> tuple[Exception, ...]:
    """Return why the sources of an open toolset that have had no tools yet have none."""
    return tuple(toolset._absent.values())  # pyright: ignore[reportPrivateUsage] -- of this file


def _is_toolset(item: object) -> bool:
    return isinstance(item, Toolset) or _is_toolset_class(item)


def _is_toolset_class(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Toolset)
