"""The command `call`: one tool, with arguments as JSON."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from toolcrib.calls import Completed, Failed, Outcome, Suspended, ToolCall, Yielded, render, render_value
from toolcrib.cli._approver import tool_name
from toolcrib.cli._find_toolset import TargetArgument
from toolcrib.cli._formatting import outcome_json, print_json, result_text, say, write
from toolcrib.cli._run import CliRun, RunOptions, open_run
from toolcrib.cli._status import Status, exit_on_error, text_of
from toolcrib.errors import HookError
from toolcrib.pipeline import Pipeline
from toolcrib.schema import Progress

_MISUSED = frozenset({"unknown_tool", "invalid_arguments"})


def call(
    target: TargetArgument,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.", show_default=False)],
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its arguments as a JSON object, or - to read them from stdin.")
    ] = "{}",
    *,
    options: RunOptions,
) -> None:
    """Call one tool of TARGET and print its result; the values of a streaming tool are printed as they come."""
    flags = options.flags()
    name, equals, value = arguments.partition("=")
    if equals and name.isidentifier():
        shown = json.dumps({name: value})
        raise typer.BadParameter(f"write the arguments as one JSON object: '{shown}'", param_hint="JSON")
    with exit_on_error():
        raw = text_of("-") if arguments == "-" else arguments
        with open_run(target, options, flags) as run:
            status = _show_outcome(run, run.wait(lambda opened: _make_call(opened, tool, raw, options.timeout)))
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class _MadeCall:
    """A call that has ended, and whether its values were written already."""

    outcome: Outcome
    streamed: bool


async def _make_call(run: CliRun, name: str, arguments: str, timeout: float | None = None) -> _MadeCall:
    """Run a call through the pipeline and return its outcome.

    The values of a streaming tool are written as they come; the reports of another tool go to stderr.
    """
    tool, outcome = tool_name(run.toolset, name), None
    toolset = run.toolset if timeout is None else run.toolset.with_timeout(timeout)
    streams = tool in toolset and toolset[tool].tool.is_streaming
    async with aclosing(Pipeline(toolset).stream(ToolCall(tool, arguments), run.run)) as items:
        async for item in items:
            if not isinstance(item, Yielded):
                outcome = item
            elif not streams:
                is_progress = isinstance(item.value, Progress)
                say(str(item.value) if is_progress else _line(item.value, tool).rstrip("\n"))
            elif not run.json:
                write(_line(item.value, tool))
    if outcome is None:
        raise RuntimeError("the stream of a call ends with its outcome")
    return _MadeCall(outcome, streams and isinstance(outcome, Completed) and outcome.source == "tool")


def _show_outcome(run: CliRun, call: _MadeCall) -> Status:
    """Write the outcome of a call, a result to stdout and anything else to stderr, and return the exit status."""
    outcome = call.outcome
    if run.json:
        print_json(outcome_json(outcome))
    elif isinstance(outcome, Completed):
        if not call.streamed:
            shown = render(outcome, structured=True)
            if shown.is_error:
                say(shown.text)
                return Status.FAILED
            write(f"{shown.text}\n" if shown.parts else result_text(shown.value))
    elif isinstance(outcome, Suspended):
        say(f"{outcome.request.text()}\n{outcome.text()}\nThe request is not kept: to answer it, run the command again")
    else:
        say(_problem(outcome) if isinstance(outcome, Failed) else outcome.reason)
    return _status(outcome)


def _problem(failed: Failed) -> str:
    """Return the problem for the operator, who is shown what a hook raised, as a model is not."""
    if isinstance(failed.exception, HookError):
        return str(failed.exception)
    if failed.code != "tool_error":
        return failed.message
    text = "" if failed.message == failed.error_type else f": {failed.message}"
    return f"`{failed.tool}` raised {failed.error_type}{text}"


def _status(outcome: Outcome) -> Status:
    if isinstance(outcome, Completed):
        return Status.DONE
    if isinstance(outcome, Suspended):
        return Status.SUSPENDED
    return Status.MISUSED if isinstance(outcome, Failed) and outcome.code in _MISUSED else Status.FAILED


def _line(value: Any, tool: str) -> str:
    return render_value(value, tool).text + "\n"
