"""What is wrong with a program, found before it runs: only what cannot turn out right.

Syntax, modules that the sandbox lacks, names that nothing defines, tools called as they cannot be. Where the program
may know better (`exec`, a star import, a handler for the very error) nothing is said.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Literal, TypeAlias

from toolcrib.code._misuse import CallShape, called_name, misuse
from toolcrib.code._program_facts import Reading
from toolcrib.errors import CodeError
from toolcrib.sandbox import Dialect, ProgramError, Source, parse_program

__all__ = ["Finding", "FindingKind", "Names", "check_program", "defined_by", "refusal"]

FindingKind: TypeAlias = Literal["SyntaxError", "ImportError", "NameError", "AttributeError", "TypeError"]

_TOLD = 20  # findings: a program may have thousands of mistakes, and each takes its time to explain
_NAME = 100  # characters of a name in a message
_SOUGHT = 1_000  # names among which the one that was meant is looked for
_CATCH_ALL = frozenset({"Exception", "BaseException"})
_BUILTINS = frozenset(dir(builtins))
_MAY_BE_MISPLACED = re.compile(r"\b(?:return|yield|await|async|break|continue|nonlocal|global|def|lambda|import)\b|\*")
"""A word of what parses and does not compile: `return` outside of a function, an argument named twice."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something in a program that cannot work.

    Attributes:
        line: The program's line, from 1; 0 when it is the whole.
        kind: The exception it would be.
        message: What is wrong, and what to write instead where that is known.
    """

    line: int
    kind: FindingKind
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.message}" if self.line else f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Names:
    """What a program finds defined.

    Attributes:
        tools: What programs call the tools.
        shape: How one of them may be called; None when that is not known.
        others: What is at hand besides tools and builtins: functions of the toolkit, names that earlier programs of a
            session left.
        dialect: What the sandbox's Python has; None when it does not say.
        complete: Nothing else is defined; unknown names are looked for only then.
    """

    tools: Collection[str]
    shape: Callable[[str], CallShape | None]
    others: Collection[str] = ()
    dialect: Dialect | None = None
    complete: bool = True


def check_program(code: str, names: Names, most: int) -> list[Finding]:
    """Return what is wrong with a program, by line; empty when nothing is, as far as can be told.

    Of very much only the first twenty things are told.

    Args:
        code: The program.
        names: What it finds defined.
        most: Characters it may have.
    """
    try:
        source = parse_program(code, most)
        _compile(source)
    except CodeError as error:
        return [Finding(error.line, "SyntaxError", error.problem)]
    program = Reading(source.tree)
    kinds = (_imports(program, names.dialect), _unknown(program, names), _misused(program, names))
    return sorted({finding for kind in kinds for finding in islice(kind, _TOLD)})[:_TOLD]


def refusal(findings: Iterable[Finding]) -> ProgramError:
    """Return findings as the error of a program that did not run, one on a line."""
    first, *rest = findings
    return ProgramError("syntax", first.kind, "\n".join([first.message, *map(str, rest)]), first.line)


def defined_by(code: str, most: int) -> tuple[frozenset[str], bool]:
    """Return the names that a program may leave to the next one, and whether those are all."""
    try:
        program = Reading(parse_program(code, most).tree)
    except CodeError:
        return frozenset(), True
    return frozenset(program.bound), not program.is_open


# --- each kind of finding


def _compile(source: Source) -> None:
    """Raise CodeError for what parses and is no program."""
    if not _MAY_BE_MISPLACED.search(source.text):
        return
    try:
        with warnings.catch_warnings():  # of no concern to the host
            warnings.simplefilter("ignore")
            compile(source.tree, "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        line = source.text.split("\n")[(error.lineno or 1) - 1].strip()
        raise CodeError(f"{error.msg}\n    {line:.200}", error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return  # the engine's to judge


def _imports(program: Reading, dialect: Dialect | None) -> Iterator[Finding]:
    if not program.imports or dialect is None or dialect.modules is None:
        return
    tops = {module.partition(".")[0] for module in dialect.modules}
    guards = _CATCH_ALL | {"ImportError", "ModuleNotFoundError"}
    for found in sorted(program.imports, key=lambda found: found.line):
        top = found.module.partition(".")[0]
        if top not in tops and top != "__future__" and not found.catches & guards:
            told = ", ".join(sorted(dialect.modules - dialect.unlisted))
            module = f"`{found.module:.{_NAME}}`"
            message = f"{module} cannot be imported. A program can import {told}. For anything else call a tool."
            yield Finding(found.line, "ImportError", message)


def _unknown(program: Reading, names: Names) -> Iterator[Finding]:
    """Yield the first use of each name that nothing defines."""
    if not names.complete or program.is_open or "NameError" in program.handled:
        return
    dialect = () if names.dialect is None else names.dialect.names
    known = program.bound.union(names.tools, names.others, dialect, _BUILTINS)
    parents = {name.partition("__")[0] for name in names.tools if "__" in name}
    told: set[str] = set()
    for use in sorted(program.names, key=lambda use: (use.node.lineno, use.node.col_offset)):
        name = use.node.id
        is_known = name in known or name in parents or (name.startswith("__") and name.endswith("__"))
        if is_known or name in told or use.catches & (_CATCH_ALL | {"NameError"}):
            continue
        told.add(name)
        mend = _likely(name, program, names, known)
        yield Finding(use.node.lineno, "NameError", f"name '{name:.{_NAME}}' is not defined. {mend}")


def _likely(name: str, program: Reading, names: Names, known: Collection[str]) -> str:
    modules = (names.dialect.modules if names.dialect is not None else None) or ()
    if name in modules:
        return f"Write `import {name}` first."
    if name == "parallel":  # full Python has it
        return "Calls run at once with `import asyncio` and `await asyncio.gather(tool(a), tool(b))`."
    if len(name) > _NAME:
        return "It is neither a name of the program nor a tool."
    bound = program.bound if len(program.bound) <= _SOUGHT else ()
    near = get_close_matches(name, sorted({*names.tools, *bound}), n=2, cutoff=0.7)
    near = near or get_close_matches(name, sorted(_worth(known)), n=1, cutoff=0.8)
    if near:
        return f"Did you mean {' or '.join(f'`{word}`' for word in near)}?"
    return "It is neither a name of the program nor a tool."


def _worth(known: Collection[str]) -> list[str]:
    return [word for word in known if not word.startswith("_")] if len(known) <= 2 * _SOUGHT else []


def _misused(program: Reading, names: Names) -> Iterator[Finding]:
    for use in program.calls:
        name = called_name(use.node)
        if name is None or name not in names.tools or _root(use.node) in program.bound:
            continue
        if "TypeError" in program.handled or use.catches & _CATCH_ALL:
            continue
        shape = names.shape(name)
        if shape is not None and (wrong := misuse(use.node, shape)):
            yield Finding(use.node.lineno, "TypeError", f"`{name}` cannot be called like that: {wrong}")
    if "AttributeError" not in program.handled and not program.is_open:
        yield from _no_such_child(program, names)


def _no_such_child(program: Reading, names: Names) -> Iterator[Finding]:
    parents = {name.partition("__")[0] for name in names.tools if "__" in name} - program.bound
    for use in program.attributes if parents else ():
        match use.node:
            case ast.Attribute(value=ast.Name(id=parent), attr=child, ctx=ast.Load()) if parent in parents:
                children = [name.removeprefix(f"{parent}__") for name in names.tools if name.startswith(f"{parent}__")]
                known = any(one == child or one.startswith(f"{child}__") for one in children)
                if children and not known and not child.startswith("_") and not use.catches & _CATCH_ALL:
                    listed = ", ".join(f"`{parent}.{one}`" for one in children)
                    message = f"`{parent}` has no `{child:.{_NAME}}`. There are: {listed}."
                    yield Finding(use.node.lineno, "AttributeError", message)
            case _:
                pass


def _root(call: ast.Call) -> str:
    func = call.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return func.id if isinstance(func, ast.Name) else ""
