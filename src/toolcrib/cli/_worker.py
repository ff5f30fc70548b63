"""The commands `worker` and `enqueue`: a worker runs durable work, and `enqueue` queues it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from toolcrib._run_sync import run_sync
from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._formatting import print_json, write
from toolcrib.cli._status import Status, exit_on_error, text_of
from toolcrib.cli._telemetry import TelemetryOption

_NAME = re.compile(r"[\w.:/-]+")

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A module or file with durable agents and toolkits, or with tools.",
        show_default=False,
    ),
]


def durable() -> Any:
    """Return the module `_durable`; raises MissingExtraError when the extra `durable` is not installed."""
    return importlib.import_module("toolcrib.cli._durable")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of `worker`."""

    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Take work from this queue; from all of TARGET's when left out."),
    ] = None
    database: DatabaseOption = None
    worker_id: Annotated[
        str | None,
        typer.Option(
            "--worker-id", metavar="ID", help="Its name, the same after a restart; the host's name when left out."
        ),
    ] = None
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", metavar="N", min=1, help="The most that runs at a time, per queue.")
    ] = None
    grace: Annotated[
        float,
        typer.Option("--grace", metavar="SECONDS", min=0, help="What is left to work that runs when it is stopped."),
    ] = 10.0
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Keep what happens in the database, for the console.")
    ] = True
    recover_lost: Annotated[
        bool | None,
        typer.Option(
            "--recover-lost/--no-recover-lost",
            help="Hand over the work of workers that are lost, unasked.",
            show_default="without --worker-id",
        ),
    ] = None
    health: Annotated[
        str | None,
        typer.Option(
            "--health", metavar="[HOST:]PORT", help="Answer /healthz, /readyz and /metrics there; this machine alone."
        ),
    ] = None
    telemetry: TelemetryOption = False
    live: Annotated[bool, typer.Option("--live", help="Show on stderr what it runs, as it changes.")] = False

    def health_place(self) -> tuple[str, int] | None:
        """Return host and port of its health; raises BadParameter where they cannot be read."""
        if self.health is None:
            return None
        host, _, port = self.health.rpartition(":")
        if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65_536):
            raise typer.BadParameter(
                f"give a port, or host:port, as 9100 or 0.0.0.0:9100; it was {self.health}", param_hint="--health"
            )
        return host.strip("[]") or "127.0.0.1", int(port)


def worker(target: TargetArgument, *, options: WorkerOptions) -> None:
    """Run turns and programs of TARGET from their queues, until Ctrl-C or SIGTERM."""
    place = options.health_place()
    with exit_on_error():
        is_finished = run_sync(durable().work(target, options, place), "use toolcrib.adapters.dbos.Engine")
    raise typer.Exit(Status.DONE if is_finished else Status.FAILED)


def attributes_of(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return the attributes that an option names, each as NAME=TEXT; None without any."""
    pairs = [text.partition("=") for text in given or ()]
    for name, sign, text in pairs:
        if not (sign and _NAME.fullmatch(name)):
            raise typer.BadParameter(
                "give NAME=TEXT, as customer=acme, with a name of letters, digits and `_.:/-`; it was "
                f"{name}{sign}{text}",
                param_hint="--attribute",
            )
    return {name: text for name, _, text in pairs} or None


def enqueue(
    target: TargetArgument,
    tool: Annotated[str | None, typer.Argument(metavar="[TOOL]", help="The tool's name.", show_default=False)] = None,
    arguments: Annotated[
        str, typer.Argument(metavar="[JSON]", help="Its arguments as a JSON object, or - to read them from stdin.")
    ] = "{}",
    program: Annotated[
        str | None,
        typer.Option("--program", metavar="FILE", help="A program in place of a tool, or - to read it from stdin."),
    ] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", metavar="NAME", help="The queue to put it in, where TARGET has several.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Only one with this key is queued or runs at a time.")
    ] = None,
    priority: Annotated[
        int, typer.Option("--priority", metavar="N", min=0, help="1 comes before 2, and 0 before all.")
    ] = 0,
    delay: Annotated[
        float | None, typer.Option("--delay", metavar="SECONDS", min=0, help="Do not start before this long.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Cancel it when it runs for longer than this."),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="NAME", help="Whose work it is, in a queue with limits for each."),
    ] = None,
    debounce: Annotated[
        float | None,
        typer.Option(
            "--debounce", metavar="SECONDS", min=0.001, help="Wait for another with its key, which takes its place."
        ),
    ] = None,
    debounce_limit: Annotated[
        float | None,
        typer.Option("--debounce-limit", metavar="SECONDS", min=0.001, help="Wait no longer after the first of them."),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute", metavar="NAME=TEXT", help="An attribute by which it is found; give it again for several."
        ),
    ] = None,
    work_id: Annotated[
        str,
        typer.Option("--id", metavar="ID", help="Its id; only one with this id is enqueued, ever."),
    ] = "",
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", metavar="ID", help="The conversation that it is part of, which its requests show."
        ),
    ] = None,
    database: DatabaseOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON document to stdout, and nothing else.")
    ] = False,
) -> None:
    """Put the call of a tool, or a program, in a queue for a worker, and print its id."""
    if (tool is None) == (program is None):
        both = "not both" if tool is not None else "one of them"
        raise typer.BadParameter(f"name a tool, or give a program with --program: {both}", param_hint="TOOL")
    with exit_on_error():
        module = durable()
        code = None if program is None else text_of(program)
        text = text_of("-") if arguments == "-" else arguments
        try:
            placement = module.Placement(
                work_id,
                priority,
                key,
                delay,
                timeout,
                partition,
                debounce,
                debounce_limit,
                attributes_of(attribute),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error).removeprefix("put: ")) from None
        job = module.Job(tool, text, code, queue, placement, conversation)
        work = run_sync(module.enqueue_job(target, job, database), "use DurableAgent.put")
    if as_json:
        print_json({"id": work})
    else:
        write(f"{work}\n")
