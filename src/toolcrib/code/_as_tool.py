"""The tool that takes programs: a function for any framework to register, and its schema for a provider."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from toolcrib.calls import Media
from toolcrib.code._extract import Extract, off_loop, program_of
from toolcrib.code._result import ExecutionResult
from toolcrib.tools import ez_tool, stand_for

TOOL_NAME = "run_python"
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_CODE = "The program, as Python text."
CODE_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"code": {"type": "string", "description": _CODE}},
    "required": ["code"],
    "additionalProperties": False,
}

OnResult: TypeAlias = Callable[[ExecutionResult], object]
AsyncProgramTool: TypeAlias = Callable[[str], Awaitable[Any]]
SyncProgramTool: TypeAlias = Callable[[str], Any]


def program_tool(
    run: Callable[..., Any],
    name: str,
    description: str,
    *,
    is_async: bool,
    on_result: OnResult | None,
    max_result_chars: int | None,
    extract: Extract,
    has_artifacts: bool = False,
    has_files: bool = False,
) -> Any:
    """Return the function that a framework registers.

    Args:
        run: Runs a program and returns its result; a coroutine function when `is_async`. `origin` says who wrote it.
        name: The tool's name for the model.
        description: The tool's description for the model.
        on_result: A listener for each result.
        max_result_chars: The most characters of a result that the model is shown; None for all.
        extract: Which blocks are the program, where a model sends it in Markdown.
        has_artifacts: Whether programs may leave artifacts.
        has_files: Whether programs are given files, whose text the run has not read.
    """

    def program(code: str) -> str:
        """Return the program that was sent, also where a model put it into a block as if it were a reply."""
        return program_of(code, extract) if _FENCE.search(code) is not None else code

    def function_for(most: int | None, origin: str) -> Any:
        def shown(result: ExecutionResult) -> str | list[str | Media]:
            if on_result is not None:
                on_result(result)
            if not result.artifacts:
                return result.text(most)
            text = replace(result, artifacts=()).text(most)  # each way in shows them, or says what they are
            return [text, *result.artifacts]

        async def run_async(code: str) -> str | list[str | Media]:
            return shown(await run(await off_loop(program, code), origin=origin))

        def run_plain(code: str) -> str | list[str | Media]:
            return shown(run(program(code), origin=origin))

        function: Any = run_async if is_async else run_plain
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{description}\n\nArgs:\n    code: {_CODE}\n"
        function.__annotations__ = {"code": str, "return": str | list[str | Media] if has_artifacts else str}
        return function

    tool = function_for(max_result_chars, "model")
    source = "untrusted" if has_files else None
    as_own = ez_tool(max_result_chars=max_result_chars, effect="program", source=source)
    stand_for(tool, as_own(function_for(None, "host")))  # the pipeline asks about it first; it cuts or keeps the result
    return tool
