"""Renders the public names of the package, their reasons and their signatures as sorted text; `make api` records it.

Read from the source without importing it, so the text is the same on every Python and whatever extras are installed.

A name is public for one reason, which stands behind it: `seed` (the ideas that the package began with have it), `user`
(README, documentation or examples write it, or the signature of another public name has it), or `adapter` (another room
of the package uses it, so the author of an adapter or a feature needs it). A name without a reason is not public.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "public_api.txt"

# An annotation may name a class by its package, which is loaded when it is asked for: `approvals.Approver`.
_ROOMS = "|".join(path.parent.name for path in (ROOT / "src" / "toolcrib").glob("*/__init__.py"))
_OF_A_ROOM = re.compile(rf"(?<![\w.])_?(?:{_ROOMS})\.(?=[A-Z])")

_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_WORD = re.compile(r"\w+")

SEED = frozenset(
    {
        "Access",
        "Agent",
        "AgentContext",
        "ApprovalRequired",
        "BaseTool",
        "Call",
        "Complete",
        "ContextItem",
        "ContextPool",
        "ContextQueue",
        "Continue",
        "Effect",
        "Execute",
        "Execution",
        "ExecutionResult",
        "Finished",
        "GlobalHooks",
        "GlobalPostHookFunc",
        "GlobalPreHookFunc",
        "HandledTool",
        "Hook",
        "Instruction",
        "NeedsTools",
        "Pipeline",
        "PostHookFunc",
        "PreHookFunc",
        "Prompt",
        "Reject",
        "Rejected",
        "RunContext",
        "RunNormally",
        "SafeExecutionError",
        "StopReason",
        "SubprocessSandbox",
        "Tool",
        "ToolAvailability",
        "ToolHook",
        "ToolMetadata",
        "ToolRegistry",
        "ToolRequirement",
        "ToolResult",
        "ToolRoundPlan",
        "ToolType",
        "Toolkit",
        "Toolset",
        "Turn",
        "TurnTimeoutError",
        "Unhandled",
        "UnregisteredToolError",
        "UnsafeInlineSandbox",
        "WrongRunMethodError",
        "as_tool",
        "create_agent",
        "extract_code",
        "ez_tool",
        "hook",
        "stream_agent",
        "tool",
        "tool_input",
        "toolset",
    }
)
"""Names of the ideas that the package began with."""

UNWRITTEN = frozenset(
    {
        *("AddressError", "DatabaseAway", "DurableFailure", "RecordedError"),  # exceptions to catch
        *("enqueue_program", "memory_of", "serve_async"),  # functions for a host of one's own
        *("ReportingWorker", "StoppableWorker"),  # what workers of one's own may be, beside `Worker`
    }
)
"""What a user writes though no page does."""

# Special methods that say nothing about how a class is used.
UNSPOKEN = {
    "__eq__",
    "__get_pydantic_core_schema__",
    "__getstate__",
    "__hash__",
    "__init_subclass__",
    "__post_init__",
    "__reduce__",
    "__repr__",
    "__set_name__",
    "__setstate__",
    "__str__",
}


_MESSAGE_INIT = "toolcrib.errors._base.MessageError.__init__"


def public_names() -> list[str]:
    """Return the names of the modules that a user may import from: no part of one begins with an underscore.

    They are those of the files, which takes no time; `public_modules` reads all of the source.
    """
    files = [path.relative_to(ROOT / "src").with_suffix("") for path in (ROOT / "src" / "toolcrib").rglob("*.py")]
    names = [path.parts[:-1] if path.name == "__init__" else path.parts for path in files]
    return sorted(".".join(parts) for parts in names if not any(part.startswith("_") for part in parts))


@functools.cache
def public_modules() -> dict[str, griffe.Module]:
    """Return the modules that a user may import from, by name."""
    package = griffe.load("toolcrib", search_paths=[ROOT / "src"], allow_inspection=False, resolve_aliases=True)
    found: dict[str, griffe.Module] = {}
    waiting = [package]
    while waiting:
        module = waiting.pop()
        found[module.path] = module
        waiting.extend(m for name, m in module.modules.items() if not name.startswith("_") and not m.is_alias)
    return dict(sorted(found.items()))


def exports(module: griffe.Module) -> list[str]:
    """Return the names in the module's `__all__`, in its order."""
    return [str(name) for name in module.exports or ()]


def render() -> str:
    """Return the record: one line for each public name, class member and overload, sorted."""
    modules = public_modules()
    homes = _homes(modules)
    written = {
        f"{path}.{name}": [
            _OF_A_ROOM.sub("", line) for line in _entry(f"{path}.{name}", module.members.get(name), homes)
        ]
        for path, module in modules.items()
        for name in exports(module)
    }
    reasons = _reasons(written)
    lines = {f"{line}  # {reasons[name]}" if line is of[0] else line for name, of in written.items() for line in of}
    return "\n".join(sorted(lines)) + "\n"


def without_reason() -> list[str]:
    """Return the public names in the record that nobody needs."""
    return [line for line in RECORD.read_text(encoding="utf-8").splitlines() if line.endswith("  # nobody")]


def _reasons(written: dict[str, list[str]]) -> dict[str, str]:
    """Return the reason of each public name, by its whole name."""
    pages = _words(*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "examples").rglob("*.py"))
    rooms: dict[str, set[str]] = {}
    for path in (ROOT / "src" / "toolcrib").rglob("*.py"):
        for word in _words(path):
            rooms.setdefault(word, set()).add(_room(path.relative_to(ROOT / "src").with_suffix("").parts))
    signatures: dict[str, set[str]] = {}
    for name, lines in written.items():
        for word in {word for line in lines for word in _WORD.findall(line.removeprefix(name))}:
            signatures.setdefault(word, set()).add(name)
    found: dict[str, str] = {}
    for name in written:
        word = name.rpartition(".")[2]
        if word in SEED:
            found[name] = "seed"
        elif (
            word in pages
            or word in UNWRITTEN
            or any(other.rpartition(".")[2] != word for other in signatures.get(word, ()))
        ):
            found[name] = "user"
        else:
            found[name] = "adapter" if rooms.get(word, set()) - {_room(name.split(".")), "toolcrib"} else "nobody"
    return found


def _words(*paths: Path) -> set[str]:
    """Return the names in files of Python, and in the code of pages."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    code = (_CODE.findall(text) if path.suffix == ".md" else [text] for path, text in zip(paths, texts, strict=True))
    return {word for several in code for text in several for word in _WORD.findall(text)}


def _room(parts: Sequence[str]) -> str:
    """Return the room of a module or a name: an adapter is a room of its own."""
    return ".".join(parts[:3] if list(parts[1:2]) == ["adapters"] else parts[:2])


def _homes(modules: dict[str, griffe.Module]) -> dict[str, str]:
    """Return for each defined object the public name under which it is written out: the deepest one."""
    homes: dict[str, str] = {}
    for path, module in modules.items():
        for name in exports(module):
            member = module.members.get(name)
            if member is None:
                continue
            public = f"{path}.{name}"
            homes[_defined(member)] = max(homes.get(_defined(member), ""), public, key=lambda p: (p.count("."), p))
    return homes


def _defined(member: griffe.Object | griffe.Alias) -> str:
    return member.final_target.path if isinstance(member, griffe.Alias) and member.resolved else member.path


def _entry(public: str, member: griffe.Object | griffe.Alias | None, homes: dict[str, str]) -> Iterator[str]:
    if member is None or (isinstance(member, griffe.Alias) and not member.resolved):
        yield f"{public}: elsewhere"
        return
    home = homes[_defined(member)]
    if home != public:
        yield f"{public} = {home}"
        return
    yield from _object(public, member.final_target if isinstance(member, griffe.Alias) else member, homes)


def _object(public: str, thing: griffe.Object | griffe.Alias, homes: dict[str, str]) -> Iterator[str]:
    if isinstance(thing, griffe.Class):
        bases = ", ".join(str(base) for base in thing.bases)
        yield f"{public} class({bases})"  # the space sorts it before its members
        members = _members(thing, homes)
        fields = _message_fields(thing) if members.get("__init__", thing).path == _MESSAGE_INIT else {}
        if fields:
            yield f"{public}.__init__({', '.join(fields.values())}) -> None"
        for name, member in members.items():
            if _is_public(name, member) and not (fields and name in (*fields, "__init__")):
                yield from _object(f"{public}.{name}", member, homes)
    elif isinstance(thing, griffe.Function):
        for one in thing.overloads or [thing]:
            yield one.signature(name=public) + _kind(thing)
    elif isinstance(thing, griffe.Attribute):
        yield public + _annotation(thing) + _value(thing)
    else:
        yield f"{public}: {thing.kind.value}"


def _members(thing: griffe.Class, homes: dict[str, str]) -> dict[str, griffe.Object | griffe.Alias]:
    """Return the members of a class, with those that it has from classes of the package without a public name."""
    found: dict[str, griffe.Object | griffe.Alias] = {}
    for base in reversed(thing.mro()):
        if base.path.startswith("toolcrib.") and base.path not in homes:
            found |= base.members
    return found | thing.members


def _message_fields(thing: griffe.Class) -> dict[str, str]:
    """Return the fields of an error that is made of them, each as a parameter of its constructor."""
    classes = [thing, *thing.mro()]
    message = next(at for at, base in enumerate(classes) if f"{base.path}.__init__" == _MESSAGE_INIT)
    return {
        name: f"{name}: {member.annotation}" + (f" = {member.value}" if member.value else "")
        for base in reversed(classes[:message])
        for name, member in base.members.items()
        if isinstance(member, griffe.Attribute) and member.annotation and "instance-attribute" in member.labels
    }


def _is_public(name: str, member: griffe.Object | griffe.Alias) -> bool:
    if member.is_alias:  # an import inside a class body
        return False
    if name.startswith("__") and name.endswith("__"):
        return isinstance(member, griffe.Function) and name not in UNSPOKEN
    return not name.startswith("_")


def _kind(function: griffe.Function) -> str:
    kinds = sorted(function.labels & {"async", "classmethod", "staticmethod"})
    return f" [{', '.join(kinds)}]" if kinds else ""


def _annotation(attribute: griffe.Attribute) -> str:
    annotation = f": {attribute.annotation}" if attribute.annotation is not None else ""
    return annotation + (" [property]" if "property" in attribute.labels else "")


def _value(attribute: griffe.Attribute) -> str:
    """Return ` = value` for a type alias, and for a short constant: an error code, an enum member, a default."""
    text = " ".join(str(attribute.value).split()) if attribute.value is not None else ""
    if str(attribute.annotation) == "TypeAlias":
        return f" = {text}"
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return ""
    return f" = {text}" if len(text) <= 60 else ""


def record() -> None:
    """Write the record anew."""
    RECORD.write_text(render(), encoding="utf-8")
    print(f"Recorded {len(RECORD.read_text(encoding='utf-8').splitlines())} lines in {RECORD.relative_to(ROOT)}.")


if __name__ == "__main__":
    record()
