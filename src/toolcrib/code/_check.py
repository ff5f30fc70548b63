"""Findings in a program before it runs: only what cannot work.

Wrong syntax, modules that the sandbox lacks, names that nothing defines, tools with arguments that they do not take.
Nothing is reported where the program may know better: with `exec`, a star import, or a handler for the very error.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import Literal, TypeAlias

from toolcrib._numbers import count_text
from toolcrib.code._program_facts import ProgramFacts, called_name
from toolcrib.code._program_tools import CallShape
from toolcrib.errors import CodeError, closest
from toolcrib.sandbox import Dialect, ProgramError, Source, parse_program

FindingKind: TypeAlias = Literal["SyntaxError", "ImportError", "NameError", "AttributeError", "TypeError"]

_FINDINGS = 20  # at most: a program may have thousands of mistakes, and each takes its time to explain
_UNKNOWN_SHOWN = 10  # unknown arguments of one call
_NAME_CHARS = 100  # in a message
_CANDIDATES = 1_000  # names among which the one that was meant is looked for
_CATCH_ALL = frozenset({"Exception", "BaseException"})
_BUILTINS = frozenset(dir(builtins))
_MAY_BE_MISPLACED = re.compile(r"\b(?:return|yield|await|async|break|continue|nonlocal|global|def|lambda|import)\b|\*")
"""A word of programs that parse and do not compile: `return` outside of a function, an argument named twice."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A mistake in a program that makes it fail.

    Attributes:
        line: The program's line, from 1; 0 when it is the whole.
        kind: The exception that it would raise.
        message: The fault, and the mend where that is known.
    """

    line: int
    kind: FindingKind
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.message}" if self.line else f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that are defined when a program begins.

    Attributes:
        tools: The names by which programs call the tools.
        shape: Returns the arguments that a tool takes; None when they are not known.
        others: Names besides tools and builtins: functions of the toolkit, and what earlier programs of a session left.
        dialect: The sandbox's Python; None when the sandbox does not describe it.
        complete: Whether nothing else is defined; unknown names are looked for only then.
        left_out: The kinds of values that a session had by these names, and no longer has.
    """

    tools: Collection[str]
    shape: Callable[[str], CallShape | None]
    others: Collection[str] = ()
    dialect: Dialect | None = None
    complete: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def check_program(code: str, names: KnownNames, most: int) -> list[Finding]:
    """Return the mistakes in a program, by line, the first twenty of them.

    Args:
        code: The program.
        names: The names that are defined when it begins.
        most: Characters it may have.
    """
    try:
        source = parse_program(code, most)
        _compile(source)
    except CodeError as error:
        return [Finding(error.line, "SyntaxError", error.problem)]
    program = ProgramFacts(source.tree)
    kinds = (_imports(program, names.dialect), _undefined(program, names), _misused(program, names))
    return sorted({finding for kind in kinds for finding in islice(kind, _FINDINGS)})[:_FINDINGS]


def refusal(findings: Iterable[Finding]) -> ProgramError:
    """Return findings as the error of a program that did not run, one on a line."""
    first, *rest = findings
    return ProgramError("syntax", first.kind, "\n".join([first.message, *map(str, rest)]), first.line)


def defined_by(code: str, most: int) -> tuple[frozenset[str], bool]:
    """Return the names that a program may leave to the next one of a session, and whether those are all."""
    try:
        program = ProgramFacts(parse_program(code, most).tree)
    except CodeError:
        return frozenset(), True
    return frozenset(program.bound), not program.is_open


# --- each kind of finding


def _compile(source: Source) -> None:
    """Raise CodeError for a program that parses and does not compile."""
    if not _MAY_BE_MISPLACED.search(source.text):
        return
    try:
        source.compile()
    except SyntaxError as error:
        line = source.text.split("\n")[(error.lineno or 1) - 1].strip()
        raise CodeError(f"{error.msg}\n    {line:.200}", error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return  # the engine reports it


def _imports(program: ProgramFacts, dialect: Dialect | None) -> Iterator[Finding]:
    if not program.imports or dialect is None or dialect.modules is None:
        return
    tops = {module.partition(".")[0] for module in dialect.modules}
    mend = f" A program can import {dialect.listed_modules} (docs/sandbox.md lists them)."
    guards = _CATCH_ALL | {"ImportError", "ModuleNotFoundError"}
    for found in sorted(program.imports, key=lambda found: found.line):
        top = found.module.partition(".")[0]
        if top not in tops and top != "__future__" and not found.catches & guards:
            module = f"`{found.module:.{_NAME_CHARS}}`"
            message = f"{module} cannot be imported.{mend} For anything else call a tool."
            yield Finding(found.line, "ImportError", message)
            mend = ""  # which is said once


def _undefined(program: ProgramFacts, names: KnownNames) -> Iterator[Finding]:
    """Yield the first use of each name that nothing defines."""
    if not names.complete or program.is_open or "NameError" in program.handled:
        return
    dialect = () if names.dialect is None else names.dialect.names
    known = program.bound.union(names.tools, names.others, dialect, _BUILTINS)
    parents = {name.partition("__")[0] for name in names.tools if "__" in name}
    found: set[str] = set()
    for use in sorted(program.names, key=lambda use: (use.node.lineno, use.node.col_offset)):
        name = use.node.id
        is_known = name in known or name in parents or (name.startswith("__") and name.endswith("__"))
        if is_known or name in found or use.catches & (_CATCH_ALL | {"NameError"}):
            continue
        found.add(name)
        mend = _likely(name, program, names, known)
        yield Finding(use.node.lineno, "NameError", f"name '{name:.{_NAME_CHARS}}' is not defined. {mend}")


def _likely(name: str, program: ProgramFacts, names: KnownNames, known: Collection[str]) -> str:
    if name in names.left_out:
        kind = f"`{names.left_out[name]}`"
        return f"The session went on in another process without it: it was a value of the kind {kind}. Define it again."
    modules = (names.dialect.modules if names.dialect is not None else None) or ()
    if name in modules:
        return f"Write `import {name}` first."
    if name == "parallel":  # full Python has it
        return "Calls run at once with `import asyncio` and `await asyncio.gather(tool(a), tool(b))`."
    if len(name) > _NAME_CHARS:
        return "It is neither a name of the program nor a tool."
    bound = program.bound if len(program.bound) <= _CANDIDATES else ()
    near = get_close_matches(name, sorted({*names.tools, *bound}), n=2, cutoff=0.7)
    near = near or get_close_matches(name, sorted(_public(known)), n=1, cutoff=0.8)
    if near:
        return f"Did you mean {' or '.join(f'`{word}`' for word in near)}?"
    return "It is neither a name of the program nor a tool."


def _public(known: Collection[str]) -> list[str]:
    return [word for word in known if not word.startswith("_")] if len(known) <= 2 * _CANDIDATES else []


def _misused(program: ProgramFacts, names: KnownNames) -> Iterator[Finding]:
    for use in program.calls:
        name = called_name(use.node)
        if name is None or name not in names.tools or _root(use.node) in program.bound:
            continue
        if "TypeError" in program.handled or use.catches & _CATCH_ALL:
            continue
        shape = names.shape(name)
        if shape is not None and (wrong := _misuse(use.node, shape)):
            yield Finding(use.node.lineno, "TypeError", f"`{name}` cannot be called like that: {wrong}")
    if "AttributeError" not in program.handled and not program.is_open:
        yield from _no_such_child(program, names)


def _no_such_child(program: ProgramFacts, names: KnownNames) -> Iterator[Finding]:
    parents = {name.partition("__")[0] for name in names.tools if "__" in name} - program.bound
    for use in program.attributes if parents else ():
        match use.node:
            case ast.Attribute(value=ast.Name(id=parent), attr=child, ctx=ast.Load()) if parent in parents:
                children = [name.removeprefix(f"{parent}__") for name in names.tools if name.startswith(f"{parent}__")]
                known = any(function == child or function.startswith(f"{child}__") for function in children)
                if children and not known and not child.startswith("_") and not use.catches & _CATCH_ALL:
                    listed = ", ".join(f"`{parent}.{function}`" for function in children)
                    message = f"`{parent}` has no `{child:.{_NAME_CHARS}}`. There are: {listed}."
                    yield Finding(use.node.lineno, "AttributeError", message)
            case _:
                pass


def _root(call: ast.Call) -> str:
    func = call.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return func.id if isinstance(func, ast.Name) else ""


# --- calls of tools ---------------------------------------------------------------------------------------------------


def _misuse(call: ast.Call, shape: CallShape) -> str | None:
    """Return the error in the arguments of a call; None when the call may be valid."""
    unpacked = any(isinstance(argument, ast.Starred) for argument in call.args)
    names = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    wrong: list[str] = []
    if not unpacked and not shape.more and len(call.args) > len(shape.order):
        wrong.append(_too_many(shape, len(call.args)))
    placed = frozenset(() if unpacked else shape.order[: len(call.args)])
    wrong += [f"`{name}` is given twice, by position and by name" for name in names if name in placed]
    if shape.names is not None:
        unknown = [name for name in names if name not in shape.names]
        wrong += [_unknown_argument(name, shape.names) for name in unknown[:_UNKNOWN_SHOWN]]
        wrong += [f"and {len(unknown) - _UNKNOWN_SHOWN} more that it has not"] if len(unknown) > _UNKNOWN_SHOWN else []
    if not unpacked and len(names) == len(call.keywords):
        missing = shape.required - placed - frozenset(names)
        wrong += [f"`{name}` is missing" for name in shape.order if name in missing]
        wrong += [f"`{name}` is missing" for name in sorted(missing.difference(shape.order))]
    return f"{'; '.join(wrong)}. Call it as `{shape.signature}`." if wrong else None


def _too_many(shape: CallShape, count: int) -> str:
    if not shape.order:
        return f"it takes no arguments by position, and {count} are given"
    return f"it takes at most {count_text(len(shape.order), 'argument')} by position, and {count} are given"


def _unknown_argument(name: str, known: Collection[str]) -> str:
    near = closest(name[:_NAME_CHARS], known)
    return f"it has no argument `{name[:_NAME_CHARS]}`{f' ({near[:-1]}?)' if near.startswith('Did') else ''}"
