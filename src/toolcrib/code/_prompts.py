"""What a model is told: the one place where tools become text for a program's author."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.errors import SchemaError
from toolcrib.schema import describe_shape
from toolcrib.toolsets import ToolEntry

__all__ = ["DEFAULT_POSTAMBLE", "DEFAULT_PREAMBLE", "Listing", "render_prompt", "render_tool_prompt"]

DEFAULT_PREAMBLE = (
    "You can solve this task by writing Python. The functions below are at hand as if they were imported. Nothing else "
    "is: no files, no network, no other packages."
)
DEFAULT_POSTAMBLE = (
    "Answer with one Python block, from ```python to ```. It is run once, and you are then shown what it printed, so "
    "print whatever you need to know. Do the whole job in that one program: loops, conditions, one function's result "
    "as another's argument."
)
_RULES = (
    "Call the functions like any others; `await` is allowed and not needed.",
    "Independent calls run at once with `await asyncio.gather(f(a), f(b))`.",
    "Results are plain Python values: text, numbers, lists, dicts.",
    "A call that fails raises an exception with the reason, which you can catch.",
)
_DOTTED = "`parent__child(...)` may also be written `parent.child(...)`."
_TOOL_RULES = (
    "Write one program for the whole job and send it in a single call, instead of one call for each step.",
    "The program sees only what its own code computes: print what you want to read afterwards.",
    "If it fails, mend the program and send all of it again; nothing is kept from the last one.",
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a prompt.

    Attributes:
        tools: What programs call each tool, and the tool.
        returns: Whether the shape of each result is told, so that one call's result can feed another.
    """

    tools: Mapping[str, ToolEntry]
    returns: bool = False

    def render(self) -> str:
        """Return the tools as Python functions without bodies."""
        return "\n\n".join(self._function(name, entry) for name, entry in self.tools.items())

    def _function(self, name: str, entry: ToolEntry) -> str:
        tool = entry.tool
        head = f"def {name}{_parameters(tool.signature, tool.name, tool.is_streaming)}:"
        lines = [head, *_docstring(entry.description, _arguments(entry))]
        if self.returns and (shape := _shape_of(entry)):
            lines.append(f"    # Returns: {shape}")
        return "\n".join([*lines, "    ..."])


def render_prompt(listing: Listing, preamble: str | None, postamble: str | None, notes: Iterable[str]) -> str:
    """Return the system prompt for a model that answers with a program."""
    dotted = (_DOTTED,) if any("__" in name for name in listing.tools) else ()
    rules = "\n".join(f"- {rule}" for rule in (*_RULES, *dotted, *notes))
    parts = [
        DEFAULT_PREAMBLE if preamble is None else preamble,
        f"```python\n{listing.render()}\n```" if listing.tools else "There are no functions.",
        rules,
        DEFAULT_POSTAMBLE if postamble is None else postamble,
    ]
    return "\n\n".join(part for part in parts if part)


def render_tool_prompt(names: Sequence[str]) -> str:
    """Return what reinforces, in a system prompt, that programs go through one tool in one call."""
    listed = ", ".join(f"`{name}`" for name in names)
    rules = "\n".join(f"- {rule}" for rule in _TOOL_RULES)
    return f"The functions {listed} are called from Python programs, which you send through one tool.\n{rules}"


# --- one tool --------------------------------------------------------------------------------------------------------


def _parameters(signature: str, name: str, streams: bool) -> str:
    """Return the signature from its first parenthesis on; a program gets a stream as a list."""
    text = signature.removeprefix(name)
    return text.rpartition(") -> ")[0].removesuffix(")") + ") -> list" if streams and ") -> " in text else text


def _docstring(description: str, arguments: Sequence[str]) -> list[str]:
    text = description.strip()
    if not text and not arguments:
        return []
    if not arguments and "\n" not in text:
        return [f'    """{text}"""']
    body = [*text.splitlines(), *(["", "Args:"] if text else ["Args:"]), *arguments] if arguments else text.splitlines()
    indented = [f"    {line}".rstrip() for line in body]
    return [f'    """{indented[0].strip()}', *indented[1:], '    """']


def _arguments(entry: ToolEntry) -> list[str]:
    try:
        schema = entry.parameters
    except SchemaError:
        return []
    lines: list[str] = []
    for name, part in schema.get("properties", {}).items():
        words = [text for text in (_inner_shape(part, schema), " ".join(part.get("description", "").split())) if text]
        if words:
            lines.append(f"    {name}: {'. '.join(words)}")
    return lines


def _inner_shape(part: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the shape of an argument that has keys of its own: a type's name would not tell them."""
    shape = describe_shape({**part, "$defs": schema.get("$defs", {})})
    return shape if "{" in shape else ""


def _shape_of(entry: ToolEntry) -> str:
    try:
        schema = entry.return_schema
    except SchemaError:
        return ""
    if not schema:
        return ""
    shape = describe_shape(schema)
    if "{" not in shape:
        return ""  # the signature says as much
    return f"list[{shape}]" if entry.tool.is_streaming else shape
