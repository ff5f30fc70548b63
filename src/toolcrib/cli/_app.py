"""The commands and their options; their work is in the other modules of the room."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli._approvals import approvals
from toolcrib.cli._approver import ApprovalFlags
from toolcrib.cli._call import make_call, show_outcome
from toolcrib.cli._commands import Commands
from toolcrib.cli._console import console as console_command
from toolcrib.cli._credentials import credentials
from toolcrib.cli._db import db
from toolcrib.cli._exec import run_program, show_program
from toolcrib.cli._formatting import JsonOption, console, print_json, tools_json, tools_table
from toolcrib.cli._inspect import inspect
from toolcrib.cli._install import import_servers, install
from toolcrib.cli._new import new
from toolcrib.cli._paused import read_paused, signing_key, write_paused
from toolcrib.cli._pins import pins
from toolcrib.cli._program_view import ProgramView
from toolcrib.cli._replay import replay_command
from toolcrib.cli._resume import has_resumed, resume_program, target_of
from toolcrib.cli._run import RunOptions, exit_on_error, listed_tools, open_run, text_of
from toolcrib.cli._runs import runs, trace
from toolcrib.cli._serve import serve
from toolcrib.cli._terminal import Terminal
from toolcrib.cli._watch import watch
from toolcrib.cli._worker import enqueue, worker
from toolcrib.cli._workflows import workers, workflows
from toolcrib.formats import FORMATS, FormatName, definition, definitions

__all__ = ["app"]

app = Commands(
    name="toolcrib",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
"""The commands, as an application of Typer."""
_RECORD, _SERVERS, _DURABLE = "The record", "Servers", "Durable work"
app.command()(new)
app.add_typer(approvals)
app.add_typer(pins)
app.command(rich_help_panel=_RECORD)(runs)
app.command(rich_help_panel=_RECORD)(trace)
app.command(rich_help_panel=_RECORD)(watch)
app.command("replay", rich_help_panel=_RECORD)(replay_command)
app.command(rich_help_panel=_SERVERS)(serve)
app.command(rich_help_panel=_SERVERS)(inspect)
app.command(rich_help_panel=_SERVERS)(install)
app.command("import", rich_help_panel=_SERVERS)(import_servers)
app.add_typer(credentials, rich_help_panel=_SERVERS)
app.command("console", rich_help_panel=_SERVERS)(console_command)
app.command(rich_help_panel=_DURABLE)(worker)
app.command(rich_help_panel=_DURABLE)(enqueue)
app.add_typer(db, rich_help_panel=_DURABLE)
app.add_typer(workflows, rich_help_panel=_DURABLE)
app.add_typer(workers, rich_help_panel=_DURABLE)

_TARGET = (
    "package.module:attribute or path/to/file.py[:attribute]: a toolset, tools, an object, or a module with tools. "
    "Or an agent of another framework, an OpenAPI document, a file of MCP servers, or the address of one of these."
)
TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)]
ApproveOption = Annotated[
    list[str] | None, typer.Option("--approve", metavar="NAME", help="Approve this tool's calls.")
]
DenyOption = Annotated[list[str] | None, typer.Option("--deny", metavar="NAME", help="Deny this tool's calls.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Approve every call that is not denied.")]
SuspendOption = Annotated[bool, typer.Option("--suspend", help="Stop at a call that needs approval; exit status 3.")]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Stop the tool, or the program, after this long."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The key that signs a paused program; your own when left out."),
]
RecordOption = Annotated[
    str | None,
    typer.Option(
        "--record", metavar="FILE", help="Append each call's record to this file, as JSON lines; to a .db, all events."
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolcrib {version('toolcrib')}")
        raise typer.Exit


@app.callback()
def of_all_commands(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run tools the way a model would: with their schema, hooks, approval, limits and record."""


@app.command("list")
def list_tools(target: TargetArgument, as_json: JsonOption = False) -> None:
    """List the tools of TARGET, with their marks."""
    with exit_on_error():
        toolset = listed_tools(target)
        if as_json:
            print_json(tools_json(toolset))
        else:
            console().print(tools_table(toolset))


@app.command()
def schema(
    target: TargetArgument,
    provider: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.", show_default=True)
    ] = "raw",
) -> None:
    """Print the tools of TARGET as JSON, as a provider's API takes them."""
    with exit_on_error():
        format = _format(provider)
        toolset = listed_tools(target)
        if format != "raw":
            print_json(definitions(toolset, format, refused="raise"))
            return
        made = [definition(e.name, e.description, e.parameters, "raw") | {"returns": e.return_schema} for e in toolset]
        print_json(made)


def _format(name: str) -> FormatName:
    for format in FORMATS:
        if name == format:
            return format
    raise typer.BadParameter(f"{name!r} is none of {', '.join(FORMATS)}", param_hint="--format")


# The options of a command are the parameters of its function.


@app.command()
def call(
    target: TargetArgument,
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.", show_default=False)],
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its arguments as a JSON object, or - to read them from stdin.")
    ] = "{}",
    approve: ApproveOption = None,
    deny: DenyOption = None,
    yes: YesOption = False,
    suspend: SuspendOption = False,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    record: RecordOption = None,
) -> None:
    """Call one tool of TARGET and print its result; the values of a streaming tool are printed as they come."""
    options = RunOptions(target, _approval_flags(approve, deny, yes, suspend), as_json, record)
    with exit_on_error():
        raw = text_of("-") if arguments == "-" else arguments
        with open_run(options) as run:
            status = show_outcome(run, run.wait(lambda opened: make_call(opened, tool, raw, timeout)))
    raise typer.Exit(status)


@app.command("exec")
def execute(
    target: TargetArgument,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The program, or - to read it from stdin.", show_default=False)
    ],
    approve: ApproveOption = None,
    deny: DenyOption = None,
    yes: YesOption = False,
    suspend: SuspendOption = False,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    record: RecordOption = None,
    pause: Annotated[
        Path | None,
        typer.Option("--pause", metavar="FILE", help="Stop at a call that needs approval, and keep the program here."),
    ] = None,
    key: KeyOption = None,
) -> None:
    """Run a Python program that calls the tools of TARGET, in a sandbox, and show its output and its calls."""
    flags = _approval_flags(approve, deny, yes, suspend or pause is not None)
    options = RunOptions(target, flags, as_json, record)
    terminal = Terminal()
    view = ProgramView(terminal.console, live=not as_json)
    with exit_on_error():
        code = text_of(file)
        secret = None if pause is None else signing_key(key)
        with open_run(options, terminal, view) as run:
            result = run.wait(lambda opened: run_program(opened, code, view, timeout))
            file_written = None
            if pause is not None and secret is not None and result.paused is not None:
                write_paused(file_written := pause, result.paused, target, secret)
            status = show_program(run, result, file_written)
    raise typer.Exit(status)


@app.command()
def resume(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `exec --pause` wrote.", show_default=False)],
    approve: ApproveOption = None,
    deny: DenyOption = None,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="What the program is shown with --deny.")
    ] = "",
    yes: YesOption = False,
    suspend: SuspendOption = False,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="TARGET", help="Its tools; those it was started with when left out."),
    ] = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
    record: RecordOption = None,
    key: KeyOption = None,
) -> None:
    """Go on with a paused program: the suspended calls are shown, and approved or denied; those made are not repeated.

    FILE is removed when the program has ended, and written anew when it is paused once more.
    """
    flags = replace(_approval_flags(approve, deny, yes, suspend), message=message)
    terminal = Terminal()
    view = ProgramView(terminal.console, live=not as_json)
    with exit_on_error():
        secret = signing_key(key)
        paused = read_paused(file, secret)
        place = target_of(paused, target)
        with open_run(RunOptions(place, flags, as_json, record), terminal, view) as run:
            result = run.wait(lambda opened: resume_program(opened, paused, timeout, view))
            if result.paused is not None:
                write_paused(file, result.paused, place, secret)
            elif has_resumed(paused, result):
                file.unlink(missing_ok=True)
            status = show_program(run, result, None if result.paused is None else file)
    raise typer.Exit(status)


def _approval_flags(approve: list[str] | None, deny: list[str] | None, yes: bool, suspend: bool) -> ApprovalFlags:
    both = set(approve or ()) & set(deny or ())
    if both:
        raise typer.BadParameter(f"`{sorted(both)[0]}` is given to --approve and to --deny", param_hint="--approve")
    if yes and suspend:
        raise typer.BadParameter("--yes approves, so that nothing is left to suspend", param_hint="--suspend")
    return ApprovalFlags(frozenset(approve or ()), frozenset(deny or ()), yes, suspend)
