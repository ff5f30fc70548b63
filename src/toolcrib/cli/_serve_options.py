"""Options of `toolcrib serve` as values, and tokens from their files or variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

from toolcrib.pipeline import ErrorPolicy

__all__ = ["ApproveBy", "ServeOptions", "Transport", "secret_of", "tokens_of"]

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


def tokens_of(given: Sequence[str]) -> dict[str, str]:
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
