"""Toolset: tools by name, with the gates that a group of them shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from toolcrib.errors import DuplicateNameError, UnknownTool, closest
from toolcrib.hooks import GlobalHooks, HookSet, PerValue, PostHookFunc, PreHookFunc
from toolcrib.tools import Tool, as_tool, object_tools
from toolcrib.toolsets._entry import ToolEntry, entry_of, steps_after, steps_before

__all__ = ["Toolset", "ToolsetLike"]

ToolsetLike: TypeAlias = "Toolset | type[Toolset] | Sequence[Any]"


class Toolset:
    """Tools by name, with middleware, hooks and limits around them.

    Args:
        tools: Tools, functions, `BaseTool` classes or objects, declared inputs, and other toolsets, whose tools become
            members with all their gates. A tool brings its subtools.
        pre_hooks: Middleware before a tool, by its name: `(ctx, args, metadata) -> args`; one or several.
        post_hooks: Middleware after a tool, by its name: `(ctx, result, metadata) -> result`; one or several.
        global_hooks: Middleware around every tool.
        hooks: Decision and description hooks.
        max_retries: Retryable answers a model gets per tool and run, unless the tool says otherwise.
        timeout: Seconds for one execution, unless the tool says otherwise.
        toolset_id: Names the toolset in messages.
        skip_unavailable: Leave tools that are not available out of what is offered; they can never be called.

    Raises:
        DuplicateNameError: Two members have one name; both origins are named. A ValueError.
        ValueError: A hook is for a tool that is not a member.
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        *,
        pre_hooks: Mapping[str, PreHookFunc | Sequence[PreHookFunc]] | None = None,
        post_hooks: Mapping[str, PostHookFunc | PerValue | Sequence[PostHookFunc | PerValue]] | None = None,
        global_hooks: GlobalHooks | None = None,
        hooks: HookSet | None = None,
        max_retries: int = 3,
        timeout: float | None = None,
        toolset_id: str | None = None,
        skip_unavailable: bool = True,
    ) -> None:
        self.toolset_id = toolset_id
        members: dict[str, ToolEntry] = {}
        for item in tools:
            for entry in _members(item, max_retries, timeout, skip_unavailable):
                _add(members, entry)
        pre, post, wide = pre_hooks or {}, post_hooks or {}, global_hooks or GlobalHooks()
        for name in [*pre, *post]:
            if name not in members:
                raise ValueError(f"a hook is given for `{name}`, which is not in the toolset. {closest(name, members)}")
        if hooks is not None:
            hooks.check(members)
        self._entries = {name: _guard(e, pre.get(name), post.get(name), wide, hooks) for name, e in members.items()}

    @classmethod
    def from_object(cls, item: object, *, prefix: str = "", **keywords: Any) -> Toolset:
        """Return a toolset of every public method of an object; `keywords` are options of `@tool` for all of them."""
        return cls(object_tools(item, prefix=prefix, **keywords))

    @classmethod
    def of(cls, tools: ToolsetLike) -> Toolset:
        """Return `tools` as a toolset: one as it is, a toolset class made, a sequence put into one."""
        if isinstance(tools, Toolset):
            return tools
        return tools() if isinstance(tools, type) else cls(tools)

    # --- finding tools

    @property
    def entries(self) -> Mapping[str, ToolEntry]:
        """The tools by the name models call them by, with their gates."""
        return MappingProxyType(self._entries)

    def tools(self) -> list[Tool[..., Any]]:
        """Return the tools, in order."""
        return [entry.tool for entry in self._entries.values()]

    def names(self) -> list[str]:
        """Return the names models call the tools by, in order."""
        return list(self._entries)

    def __getitem__(self, name: str) -> ToolEntry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownTool(name, tuple(self._entries)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[ToolEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def default_names(self) -> frozenset[str]:
        """Return the names offered by default: all that are not `off`."""
        return frozenset(name for name, entry in self._entries.items() if not entry.off)

    # --- views

    def with_hooks(self, hooks: HookSet) -> Toolset:
        """Return the toolset with a hook set that is asked before those it has.

        Raises:
            ValueError: A hook is for a tool that is not a member.
        """
        hooks.check(self._entries)
        return self._view(entry.with_hooks(hooks) for entry in self)

    def subset(self, names: Iterable[str]) -> Toolset:
        """Return the toolset with only these tools, in its own order; UnknownTool for a name it does not have."""
        wanted = {self[name].name for name in names}
        return self._view(entry for entry in self if entry.name in wanted)

    def _view(self, entries: Iterable[ToolEntry]) -> Toolset:
        made = Toolset(toolset_id=self.toolset_id)
        for entry in entries:
            _add(made._entries, entry)
        return made

    def __repr__(self) -> str:
        title = f" {self.toolset_id}" if self.toolset_id else ""
        return f"<Toolset{title} of {len(self)} tools>"


def _members(item: Any, max_retries: int, timeout: float | None, skip_unavailable: bool) -> Iterator[ToolEntry]:
    if isinstance(item, Toolset) or (isinstance(item, type) and issubclass(item, Toolset)):
        yield from Toolset.of(item)
        return
    tool = as_tool(cast("object", item))
    yield entry_of(tool, max_retries=max_retries, timeout=timeout, skip_unavailable=skip_unavailable)
    for child in tool.subtools:
        yield from _members(child, max_retries, timeout, skip_unavailable)


def _add(members: dict[str, ToolEntry], entry: ToolEntry) -> None:
    taken = members.get(entry.name)
    if taken == entry:
        return  # a subtool that was also listed by itself; with other gates it is a clash, lest one set of them is lost
    if taken is not None:
        mend = "Give one of them another name, or put one set under a prefix."
        raise DuplicateNameError(entry.name, taken.origin, entry.origin, mend)
    members[entry.name] = entry


def _guard(entry: ToolEntry, pre: Any, post: Any, wide: GlobalHooks, hooks: HookSet | None) -> ToolEntry:
    name = entry.name
    before = steps_before(name, wide.pre, wide=True) + steps_before(name, pre, wide=False)
    after = steps_after(name, post, wide=False) + steps_after(name, wide.post, wide=True)
    guarded = entry.with_middleware(before, after) if before or after else entry
    return guarded if hooks is None else guarded.with_hooks(hooks)
