"""The command `serve`: the tools of a target, for any MCP client; its options as values, and tokens from files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from toolcrib.cli._database import DatabaseOption
from toolcrib.cli._run import exit_on_error
from toolcrib.pipeline import ErrorPolicy

__all__ = ["ServeOptions", "secret_of", "serve"]

_TARGET = "The tools to serve, as for `list`."
_TOKEN = "A client over HTTP; @FILE reads the secret from a file, TOOLCRIB_TOKENS from the environment."
_ERRORS = "What clients are shown of an unexpected error; masked over HTTP and the message over stdio when left out."
ListOption = list[str] | None
Transport = Literal["stdio", "http"]
ApproveBy = Literal["store", "elicit"]

_VARIABLE = "TOOLCRIB_TOKENS"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `serve`.

    Attributes:
        search: Whether a few tools are listed, and the others found.
        wait: Seconds that a call waits for its answer before the client is asked to come back.
        telemetry: Whether events go to the process's providers of OpenTelemetry.
        errors: What a client is shown of a tool's unexpected exception; None for what suits the transport.
    """

    target: str
    transport: Transport
    host: str
    port: int
    tokens: Mapping[str, str]
    allowed_hosts: Sequence[str]
    allowed_origins: Sequence[str]
    name: str | None
    code_mode: bool
    search: bool
    approve_by: ApproveBy
    wait: float
    database: str | None
    record: str | None
    telemetry: bool
    errors: ErrorPolicy | None


def serve(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=_TARGET, show_default=False)],
    transport: Annotated[Transport, typer.Option(metavar="stdio|http", help="The transport to clients.")] = "stdio",
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine, tokens are needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Any free one for 0.")] = 8000,
    token: Annotated[ListOption, typer.Option(metavar="NAME=SECRET", help=_TOKEN)] = None,
    allow_host: Annotated[ListOption, typer.Option(metavar="NAME", help="Another name this server goes by.")] = None,
    allow_origin: Annotated[ListOption, typer.Option(metavar="URL", help="A page that may use it.")] = None,
    name: Annotated[str | None, typer.Option(help="The server's name.", show_default=False)] = None,
    code_mode: Annotated[bool, typer.Option("--code-mode", help="Serve one tool, which runs programs.")] = False,
    search: Annotated[bool, typer.Option("--search", help="List a few tools; the rest is found.")] = False,
    approve_by: Annotated[ApproveBy, typer.Option(metavar="store|elicit", help="The approver.")] = "store",
    wait: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="How long a call waits for its answer.")] = 0.0,
    database: DatabaseOption = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Append each call's record to this file, or its events to a .db.")
    ] = None,
    telemetry: Annotated[bool, typer.Option("--telemetry", help="Make OpenTelemetry spans and metrics.")] = False,
    errors: Annotated[ErrorPolicy | None, typer.Option(metavar="message|masked", help=_ERRORS)] = None,
) -> None:
    """Serve the tools of TARGET over MCP, until the client disconnects or Ctrl-C."""
    if code_mode and search:
        raise typer.BadParameter("programs find tools by themselves: leave out --search", param_hint="--search")
    options = ServeOptions(
        target=target,
        transport=transport,
        host=host,
        port=port,
        tokens=_tokens_of(token or ()),
        allowed_hosts=allow_host or (),
        allowed_origins=allow_origin or (),
        name=name,
        code_mode=code_mode,
        search=search,
        approve_by=approve_by,
        wait=wait,
        database=database,
        record=record,
        telemetry=telemetry,
        errors=errors,
    )
    with exit_on_error():
        module: Any = importlib.import_module("toolcrib.cli._mcp_server")  # of an extra, which its error names
        module.serve_target(options)


def _tokens_of(given: Sequence[str]) -> dict[str, str]:
    """Return the secret of each principal: of `NAME=SECRET`, `NAME=@FILE`, and of the environment.

    Raises:
        BadParameter: One of them is something else, or its file cannot be read.
    """
    tokens: dict[str, str] = {}
    for text in (*os.environ.get(_VARIABLE, "").split(), *given):
        name, equals, secret = text.partition("=")
        if not (name and equals and secret):
            raise typer.BadParameter("write NAME=SECRET, or NAME=@FILE", param_hint="--token")
        if name in tokens:
            raise typer.BadParameter(f"two tokens are given for {name}", param_hint="--token")
        tokens[name] = secret_of(secret)
    return tokens


def secret_of(text: str) -> str:
    """Return a secret as given, or the contents of the file of `@FILE`.

    Raises:
        BadParameter: The file cannot be read.
    """
    if not text.startswith("@"):
        return text
    file = text[1:]
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise typer.BadParameter(f"cannot read {file}: {why}", param_hint="--token") from None
