"""From a model's program to what the model is told: checked before it runs, mended and run again when it fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, Literal, TypeAlias, cast

from toolcrib.code._check import Finding, Names, check_program, defined_by, refusal
from toolcrib.code._extract import program_in
from toolcrib.code._misuse import CallShape
from toolcrib.code._result import ExecutionResult
from toolcrib.code._runner import RunOptions, Runs
from toolcrib.code._typing import Stubs
from toolcrib.errors import SandboxUnavailable
from toolcrib.pipeline import Run
from toolcrib.sandbox import TypeChecker, type_checker

__all__ = ["ErrorHint", "Left", "Programs", "Retries", "RetryHandler", "TypeCheck", "default_hint"]

TypeCheck: TypeAlias = Literal["off", "warn", "error"]
ErrorHint: TypeAlias = str | Callable[[ExecutionResult], str]
RetryHandler: TypeAlias = Callable[[str, str, ExecutionResult], "str | Awaitable[str | None] | None"]
"""Gets what a model is shown of a failed program, the program, and its result; returns the mended one, or a reply that
has it in Markdown; None to leave it."""

_USUAL_RETRIES = 3
_KEYS = 12  # of a result, in a hint
_TOOLS = 3  # whose results are told there, the latest


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a failed program is mended, and by whom."""

    most: int = 0
    handler: RetryHandler | None = None

    @classmethod
    def of(cls, most: int | None, handler: RetryHandler | None) -> Retries:
        """Return them as they were given: three where there is only a handler; ValueError for a number without one."""
        if handler is None:
            if most:
                raise ValueError("max_retries without a retry_handler: nobody is there to mend the program")
            return cls()
        if most is not None and most < 0:
            raise ValueError(f"max_retries must be at least 0, and is {most}")
        return cls(_USUAL_RETRIES if most is None else most, handler)


@dataclass(slots=True)
class Left:
    """What the programs of a session left for the next one: the names, and whether those are all."""

    names: set[str] = field(default_factory=set[str])
    complete: bool = True

    def add(self, code: str, most: int) -> None:
        """Add what a program may have defined."""
        names, complete = defined_by(code, most)
        self.names |= names
        self.complete = self.complete and complete


def default_hint(result: ExecutionResult) -> str:
    """Return what a model is told after a failure: what has happened already, and what to do."""
    if result.findings:
        return "Nothing of it ran. Mend the program and send all of it again."
    made = Counter(call["name"] for call in result.tool_calls if call["outcome"] == "completed")
    if not made:
        return "Mend the program and send all of it again."
    told = ", ".join(f"`{name}`" + (f" ({count} times)" if count > 1 else "") for name, count in made.items())
    return (
        f"{_keys_given(result)}Calls that were made before it failed, and are not undone: {told}. Mend the program and "
        "send all of it again, without what must not happen twice."
    )


def _keys_given(result: ExecutionResult) -> str:
    """Return which keys the latest results have, where a key is missing and the error cannot say which there are."""
    error = result.error or ""
    if not error.startswith("KeyError") or "The dict has" in error:
        return ""
    latest = {call["name"]: call.get("result") for call in result.tool_calls if call["outcome"] == "completed"}
    told: list[str] = []
    for name, value in latest.items():
        several = isinstance(value, list)
        first: Any = next(iter(cast("list[Any]", value)), None) if several else value
        if isinstance(first, dict):
            keys = ", ".join(repr(key) for key in list(cast("dict[str, Any]", first))[:_KEYS])
            told.append(f"`{name}` gave {'dicts' if several else 'a dict'} with the keys {keys}. ")
    return "".join(told[-_TOOLS:])


class Programs:
    """Runs the programs of one toolkit with all the care that a model's program needs.

    Args:
        runs: Where they run.
        typecheck: What becomes of what a type checker finds.
        hint: What a model is told besides, after a failure.

    Raises:
        MissingExtraError: Types are to be checked, and Monty is not installed.
    """

    def __init__(self, runs: Runs, typecheck: TypeCheck, hint: ErrorHint) -> None:
        if typecheck not in ("off", "warn", "error"):
            raise ValueError(f'typecheck is "off", "warn" or "error", and not {typecheck!r}')
        self.runs, self._typecheck, self._hint = runs, typecheck, hint
        self._checker: TypeChecker | None = None if typecheck == "off" else type_checker()
        self._shapes: dict[str, CallShape | None] = {}
        self._stubs: tuple[frozenset[str], bool, Stubs] | None = None

    # --- before it runs

    def check(self, code: str, run: Run | None = None, left: Left | None = None) -> list[Finding]:
        """Return what cannot work in a program, by line."""
        dialect = None
        with suppress(SandboxUnavailable):
            dialect = self.runs.dialect
        names = Names(
            self.runs.callable_names(code, run),
            self._shape,
            {*self.runs.finders, *(() if left is None else left.names)},
            dialect,
            complete=dialect is not None and (left is None or left.complete),  # else it may have names of its own
        )
        return check_program(code, names, self.runs.limits.source_size)

    async def _type_check(self, code: str, run: Run | None, left: Left | None) -> list[Finding]:
        if self._checker is None:
            return []
        offered = self.runs.callable_names(code, run)
        if left is not None and not left.names.isdisjoint(offered):
            return []  # an earlier program has put something else in a tool's place
        key = frozenset(offered)
        dialect = self.runs.dialect
        streams = dialect is not None and dialect.streams
        if self._stubs is None or self._stubs[:2] != (key, streams):
            tools = {name: self.runs.toolset[tool].tool for name, tool in offered.items()}
            self._stubs = (key, streams, Stubs(tools, streams))
        return await self._stubs[2].check(code, self._checker)

    def _shape(self, name: str) -> CallShape | None:
        if name not in self._shapes:
            tool = self.runs.toolset[self.runs.names[name]].tool
            self._shapes[name] = CallShape.of(tool.spec, self.runs.signature(name))
        return self._shapes[name]

    # --- running

    async def run(
        self, code: str, options: RunOptions, retries: Retries | None = None, left: Left | None = None
    ) -> ExecutionResult:
        """Run a program, and those that it is mended to; return how the last one went, with the calls of all.

        Raises:
            SandboxError: No worker could be had; nothing ran.
            Exception: What an observer raised, or the handler.
        """
        options = replace(options, run=options.run or Run())  # one run for all of them
        retries = retries or Retries()
        earlier: list[ExecutionResult] = []
        while True:
            result = self._told(await self._once(code, options, left), earlier)
            if left is not None:
                left.add(code, self.runs.limits.source_size)
            if result.success or result.is_paused or retries.handler is None or len(earlier) >= retries.most:
                return result
            answer = retries.handler(result.text(), code, result)
            answer = await answer if isawaitable(answer) else answer
            if not answer or not answer.strip():
                return result
            earlier.append(result)
            code = program_in(answer)

    async def _once(self, code: str, options: RunOptions, left: Left | None) -> ExecutionResult:
        findings = self.check(code, options.run, left)
        typed = await self._type_check(code, options.run, left) if not findings else []
        if self._typecheck == "error":
            findings, typed = [*findings, *typed], []
        if findings:
            self.runs.refused(code, options, findings)
            return ExecutionResult(success=False, error=str(refusal(findings)), findings=tuple(findings))
        result = await self.runs.run(code, options)
        return replace(result, warnings=tuple(map(str, typed))) if typed else result

    def told(self, result: ExecutionResult) -> ExecutionResult:
        """Return a result with the hint for the model, if the program failed."""
        return self._told(result, [])

    def _told(self, result: ExecutionResult, earlier: list[ExecutionResult]) -> ExecutionResult:
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
