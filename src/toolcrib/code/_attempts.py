"""Attempts at a model's program: checked, also by types, before it runs, and mended and run again when it fails."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, Literal, TypeAlias, cast

from toolcrib._numbers import count_text, require_number
from toolcrib.code._check import Finding, KnownNames, check_program, defined_by, refusal
from toolcrib.code._extract import Extract, off_loop, program_of
from toolcrib.code._program_facts import ProgramFacts, called_name
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runner import ProgramRunner, RunOptions
from toolcrib.errors import CodeError, SandboxLost, SandboxUnavailable, SchemaError
from toolcrib.pipeline import Run, run_for
from toolcrib.sandbox import Source, SourceEdit, TypeChecker, awaited_calls, parse_program, type_checker
from toolcrib.schema import STUB_IMPORTS, StubTypes
from toolcrib.tools import Tool

TypeCheck: TypeAlias = Literal["off", "warn", "error"]
ErrorHint: TypeAlias = str | Callable[[ExecutionResult], str]
RetryHandler: TypeAlias = Callable[[str, str, ExecutionResult], "str | Awaitable[str | None] | None"]
"""Takes the text that a model is shown of a failed program, the program, and its result; returns the mended program, or
a reply that has it in Markdown; None to leave it."""

_DEFAULT_RETRIES = 3
_KEYS = 12  # of a result, in a hint
_TOOLS = 3  # whose latest results a hint shows
_AWAITED = "__awaited"
_UNPACKED = "__unpacked"
_HEADER = """
from typing import AsyncIterator, Generic, Iterator, TypeVar

_T = TypeVar("_T")

class Stream(Generic[_T]):
    def __iter__(self) -> Iterator[_T]: ...
    def __next__(self) -> _T: ...
    def __aiter__(self) -> AsyncIterator[_T]: ...
    async def __anext__(self) -> _T: ...
    def __getattr__(self, name: str) -> Any: ...

def __unpacked(values: Any) -> Any: ...
def parallel(*calls: Any, **options: Any) -> list[Any]: ...
def search_tools(query: str, limit: int = 5) -> list[dict[str, str]]: ...
def describe(name: Any) -> str: ...
"""
_LIST = re.compile(r"-> list(\[.*\]:)")


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of times that a failed program is mended, and the handler that mends it."""

    limit: int = 0
    handler: RetryHandler | None = None

    @classmethod
    def of(cls, limit: int | None, handler: RetryHandler | None) -> Retries:
        """Return the retries of a limit and a handler: three for a handler alone; ValueError for a limit alone."""
        require_number("a program", "max_retries", limit, least=0)
        if handler is None:
            if limit:
                raise ValueError("max_retries needs a retry_handler, which mends the program")
            return cls()
        return cls(_DEFAULT_RETRIES if limit is None else limit, handler)


@dataclass(slots=True)
class SessionNames:
    """The names that the programs of a session left for the next one.

    Attributes:
        complete: Whether those are all.
        left_out: The kinds of the values that were left out when the session went on in another process, by name.
    """

    names: set[str] = field(default_factory=set[str])
    complete: bool = True
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    def add(self, code: str, most: int) -> None:
        """Add the names that a program may have defined."""
        names, complete = defined_by(code, most)
        self.names |= names
        self.complete = self.complete and complete


def default_hint(result: ExecutionResult) -> str:
    """Return the hint for a model after a failure: which calls were made already, and what to do."""
    if result.findings:
        return "Nothing of it ran. Correct the program and send all of it again."
    is_lost = (result.error or "").startswith(SandboxLost.__name__)  # whose program may have no fault to mend
    again = "Send the program again" if is_lost else "Correct the program and send all of it again"
    completed = Counter(call["name"] for call in result.tool_calls if call["outcome"] == "completed")
    if not completed:
        return f"{again}."
    calls = ", ".join(
        f"`{name}`" + (f" ({count_text(count, 'time')})" if count > 1 else "") for name, count in completed.items()
    )
    return (
        f"{_result_keys(result)}Calls that were made before it failed, and are not undone: {calls}. {again}, without "
        "what must not happen twice."
    )


def _result_keys(result: ExecutionResult) -> str:
    """Return which keys the latest results have, where a key is missing and the error does not list the keys."""
    error = result.error or ""
    if not error.startswith("KeyError") or "The dict has" in error:
        return ""
    latest = {call["name"]: call.get("result") for call in result.tool_calls if call["outcome"] == "completed"}
    hints: list[str] = []
    for name, value in latest.items():
        several = isinstance(value, list)
        first: Any = next(iter(cast("list[Any]", value)), None) if several else value
        if isinstance(first, dict):
            keys = ", ".join(repr(key) for key in list(cast("dict[str, Any]", first))[:_KEYS])
            hints.append(f"`{name}` gave {'dicts' if several else 'a dict'} with the keys {keys}. ")
    return "".join(hints[-_TOOLS:])


class Attempts:
    """Checks, runs and mends the programs of one toolkit.

    Args:
        runner: Runs the programs.
        typecheck: Whether what a type checker finds is a warning or refuses the program.
        hint: The hint for a model after a failure.
        extract: Which blocks of a reply are the mended program.

    Raises:
        MissingExtraError: Types are to be checked, and Monty is not installed.
    """

    def __init__(self, runner: ProgramRunner, typecheck: TypeCheck, hint: ErrorHint, extract: Extract = "all") -> None:
        if typecheck not in ("off", "warn", "error"):
            raise ValueError(f'typecheck must be "off", "warn" or "error", and not {typecheck!r}')
        self.runner, self._typecheck, self._hint = runner, typecheck, hint
        self._extract: Extract = extract
        self._checker: TypeChecker | None = None if typecheck == "off" else type_checker()
        self._stubs: tuple[frozenset[str], bool, TypeStubs] | None = None

    # --- before it runs

    def check(self, code: str, run: Run | None = None, session: SessionNames | None = None) -> list[Finding]:
        """Return the certain errors of a program, by line."""
        dialect = None
        with suppress(SandboxUnavailable):
            dialect = self.runner.dialect
        names = KnownNames(
            self.runner.callable_names(code, run),
            lambda name: self.runner.tools[name].shape,
            {*self.runner.lookup_names, *(() if session is None else session.names)},
            dialect,
            complete=dialect is not None and (session is None or session.complete),  # else there may be others
            left_out={} if session is None else session.left_out,
        )
        return check_program(code, names, self.runner.limits.source_size)

    async def _type_check(self, code: str, run: Run | None, session: SessionNames | None) -> list[Finding]:
        if self._checker is None:
            return []
        offered = self.runner.callable_names(code, run)
        if session is not None and not session.names.isdisjoint(offered):
            return []  # an earlier program has put something else in a tool's place
        key = frozenset(offered)
        dialect = self.runner.dialect
        streams = dialect is not None and dialect.streams
        if self._stubs is None or self._stubs[:2] != (key, streams):
            tools = {name: self.runner.toolset[tool].tool for name, tool in offered.items()}
            self._stubs = (key, streams, TypeStubs(tools, streams))
        return await self._stubs[2].check(code, self._checker)

    # --- running

    async def run(
        self, code: str, options: RunOptions, retries: Retries | None = None, session: SessionNames | None = None
    ) -> ExecutionResult:
        """Run a program, and its mended versions; return the result of the last one, with the calls of all.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: An exception of an observer or of the handler.
        """
        if not isinstance(code, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- what a user gives
            raise TypeError(f"the program is given as text, and this is {type(code).__name__}: {code!r:.80}")
        options = replace(options, run=run_for(options.run, "code"))  # one run for all of them
        retries = retries or Retries()
        earlier: list[ExecutionResult] = []
        while True:
            result = self._with_hint(await self._attempt(code, options, session), earlier)
            if session is not None:
                await off_loop(lambda code: session.add(code, self.runner.limits.source_size), code)
            if result.success or result.is_paused or retries.handler is None or len(earlier) >= retries.limit:
                return result
            answer = retries.handler(result.text(), code, result)
            answer = await answer if isawaitable(answer) else answer
            if not answer or not answer.strip():
                return result
            earlier.append(result)
            options = replace(options, origin="model")
            code = await off_loop(lambda text: program_of(text, self._extract), answer)

    async def _attempt(self, code: str, options: RunOptions, session: SessionNames | None) -> ExecutionResult:
        findings = await off_loop(lambda code: self.check(code, options.run, session), code)
        typed = await self._type_check(code, options.run, session) if not findings else []
        if self._typecheck == "error":
            findings, typed = [*findings, *typed], []
        if findings:
            self.runner.refuse(code, options, findings)
            return ExecutionResult(success=False, error=str(refusal(findings)), findings=tuple(findings))
        result = await self.runner.run(code, options)
        return replace(result, warnings=tuple(map(str, typed))) if typed else result

    def with_hint(self, result: ExecutionResult) -> ExecutionResult:
        """Return a result with the hint for the model, if the program failed."""
        return self._with_hint(result, [])

    def _with_hint(self, result: ExecutionResult, earlier: list[ExecutionResult]) -> ExecutionResult:
        if earlier:
            before = earlier[-1]  # with what was before it
            result = replace(
                result,
                tool_calls=[*before.tool_calls, *result.tool_calls],
                records=(*before.records, *result.records),
                earlier=tuple(earlier),
            )
        if result.success or result.is_paused:
            return result
        hint = self._hint if isinstance(self._hint, str) else self._hint(result)
        return replace(result, hint=hint)


class TypeStubs:
    """The type stubs of a toolkit's tools.

    Args:
        tools: The tools, by the name that programs use.
        streams: Programs take the values of a streaming tool one by one.
    """

    def __init__(self, tools: Mapping[str, Tool[..., object]], streams: bool) -> None:
        types = StubTypes()
        self._names: set[str] = set()
        functions: list[str] = []
        for name, tool in tools.items():
            try:
                stub = tool.spec.stub(name, docs=False, types=types)
                awaited = tool.spec.stub(name + _AWAITED, docs=False, is_async=True, types=types)
            except SchemaError:
                functions.append(f"{name}: Any")
                continue
            if tool.is_streaming and streams:
                stub = _LIST.sub(r"-> Stream\1", stub)
            functions += [stub, awaited]
            self._names.add(name)
        self.text = "\n\n".join([STUB_IMPORTS, _HEADER, *types.render(docs=False), *functions])

    async def check(self, code: str, checker: TypeChecker) -> list[Finding]:
        """Return the findings of the type checker, by line; empty for a program that does not parse."""
        try:
            source = self._rewritten(parse_program(code, len(code)))
        except CodeError:
            return []
        problems = await checker.type_check(source.text, self.text)
        return [Finding(problem.line, "TypeError", problem.message.replace(_AWAITED, "")) for problem in problems]

    def _rewritten(self, source: Source) -> Source:
        """Return the program with each awaited call of a tool by a name that is async, and subtools by one name."""
        bound = ProgramFacts(source.tree).bound
        awaited = {id(call.func) for call in awaited_calls(source.tree)}
        edits: list[SourceEdit] = []
        for node in ast.walk(source.tree):
            if isinstance(node, ast.keyword) and node.arg is None:
                # `**values` is taken as it is: a checker tries each of the values for each parameter
                start, end = source.span(node)[0], source.span(node.value)[1]
                edits += [(start, start + len("**"), f"**{_UNPACKED}("), (end, end, ")")]
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                edits.append((*source.span(node), "pass"))  # it would have to be the first statement
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            name = called_name(ast.Call(node, [], []))
            root = node.id if isinstance(node, ast.Name) else (name or "").partition("__")[0]
            if name not in self._names or root in bound:
                continue
            wanted = name + (_AWAITED if id(node) in awaited else "")
            if wanted != (node.id if isinstance(node, ast.Name) else ""):
                edits.append((*source.span(node), wanted))
        # without those inside another one: `a` in `a.b`
        outer: list[SourceEdit] = []
        for edit in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
            if not outer or edit[0] >= outer[-1][1]:
                outer.append(edit)
        return source.edited(outer)
