"""`toolcrib console`: the web page to watch calls and runs, and to answer requests for approval."""

from __future__ import annotations

import importlib
import logging
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli._database import (
    DatabaseOption,
    absolute_database,
    database_errors,
    has_file,
    has_workers,
    open_approvals,
    open_log,
    open_server_states,
    shown_name,
)
from toolcrib.cli._formatting import say, say_cannot_listen
from toolcrib.cli._serve import secret_of
from toolcrib.cli._status import Status, exit_on_error
from toolcrib.errors import DatabaseError, MissingExtraError

_TOKEN_VARIABLE = "TOOLCRIB_CONSOLE_TOKEN"
_SECRET_VARIABLE = "TOOLCRIB_WEBHOOK_SECRET"

PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 is any that is free.")]
HostOption = Annotated[str, typer.Option("--host", help="Where to listen; beyond this machine, tokens are needed.")]
TokenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--token",
        metavar="[NAME=]TOKEN",
        help="A user's token, and the name for the record; @FILE in place of the token reads it from a file. "
        f"{_TOKEN_VARIABLE}, with spaces between, when left out.",
    ),
]
HostsOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Another host name of the console, as behind a proxy."),
]
ProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxy",
        metavar="ADDRESS",
        help="A proxy in front, or a network of them, whose X-Forwarded-For tells where a request came from.",
    ),
]
ViewerOption = Annotated[
    list[str] | None,
    typer.Option("--viewer", metavar="NAME", help="The name of a token whose user looks, and answers nothing."),
]
AdministratorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--administrator", metavar="NAME", help="The name of a token whose user also ends the sessions of others."
    ),
]
LoginOption = Annotated[
    Path | None,
    typer.Option("--login", metavar="FILE", help="A TOML file with the OpenID provider where people log in."),
]
WebhookOption = Annotated[
    list[str] | None,
    typer.Option(
        "--webhook",
        metavar="[GROUPS=]URL",
        help=f"Gets a POST for new requests, reminders and escalations, signed with the secret in {_SECRET_VARIABLE}; "
        "with GROUPS, as managers,legal=https://..., for those that people of these groups may answer.",
    ),
]
SlackOption = Annotated[
    list[str] | None,
    typer.Option("--slack", metavar="[GROUPS=]URL", help="A webhook of Slack, or one that takes the same messages."),
]
ReasonsOption = Annotated[
    bool,
    typer.Option("--webhook-reasons", help="Notices have the reasons of requests, which may quote arguments."),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--public-url", metavar="URL", help="The console as people reach it, for links in notices."),
]


def console(
    database: DatabaseOption = None,
    port: PortOption = 8137,
    host: HostOption = "127.0.0.1",
    token: TokenOption = None,
    viewer: ViewerOption = None,
    allowed_host: HostsOption = None,
    trusted_proxy: ProxyOption = None,
    webhook: WebhookOption = None,
    slack: SlackOption = None,
    webhook_reasons: ReasonsOption = False,
    public_url: UrlOption = None,
    login: LoginOption = None,
    administrator: AdministratorOption = None,
) -> None:
    """Show the calls and runs in a database on a web page, as they happen, and answer requests for approval there."""
    with exit_on_error():
        page: Any = importlib.import_module("toolcrib.console")  # of an extra, which its error names
        tokens = token or os.environ.get(_TOKEN_VARIABLE, "").split()
        try:
            viewers = frozenset(viewer or ())
            names, proxies = tuple(allowed_host or ()), tuple(trusted_proxy or ())
            service = None if login is None else importlib.import_module("toolcrib.console.openid").load_login(login)
            administrators = frozenset(administrator or ())
            options = page.ConsoleOptions(host, port, _tokens(tokens), names, viewers, proxies, service, administrators)
            secret = os.environ.get(_SECRET_VARIABLE, "")
            webhooks = [webhook_of(page, address, secret=secret, reasons=webhook_reasons) for address in webhook or ()]
            webhooks += [webhook_of(page, address, shape="slack", reasons=webhook_reasons) for address in slack or ()]
        except ValueError as error:
            say(str(error))
            raise typer.Exit(Status.MISUSED) from None

        def started(url: str) -> None:
            say(f"{shown_name(database)} at {url} (Ctrl-C stops it)")
            # the console's log on stderr: logins, wrong tokens, and who changed durable work
            shown = logging.StreamHandler()
            shown.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
            log = logging.getLogger("toolcrib.console")
            log.addHandler(shown)
            log.setLevel(logging.INFO)

        with database_errors(database):
            is_new = not has_file(database)
            approvals = open_approvals(database)
            if is_new:
                say(f"made the new database {absolute_database(database)}; --database names another")
            servers = open_server_states(database)
            app = page.console_app(open_log(database), approvals, options, partial(_durable_work, database), servers)

        def notifier(url: str) -> Any:
            return page.Notifier(approvals, webhooks, public_url or url)

        try:
            page.serve(app, options, started, notifier if webhooks else None)
        except OSError as error:
            say_cannot_listen(host, port, error)
            raise typer.Exit(Status.MISUSED) from None
        say("stopped")


def webhook_of(page: Any, given: str, **options: Any) -> Any:
    """Return a webhook of a URL, which groups may stand before."""
    names, equals, url = given.partition("=")
    if not equals or ":" in names:  # the = is one in the URL
        return page.Webhook(given, **options)
    return page.Webhook(url, groups=tuple(name.strip() for name in names.split(",")), **options)


def _durable_work(database: str | None) -> Any:
    """Return the operator of durable work; None where no worker has been, or without the extra for it."""
    if not has_workers(database):
        return None
    try:
        module: Any = importlib.import_module("toolcrib.adapters.dbos")
        return module.WorkOperator(module.Client(database))
    except (MissingExtraError, DatabaseError):  # the rest of the console needs no DBOS
        return None


def _tokens(given: list[str]) -> dict[str, str]:
    """Return tokens by the name of their holder."""
    tokens: dict[str, str] = {}
    for text in given:
        name, equals, token = text.partition("=")
        holder, secret = (name.strip(), token) if equals and token else ("", text)
        if holder in tokens:
            raise typer.BadParameter(
                f"two tokens belong to {holder or 'no holder'}; name them: NAME=TOKEN", param_hint="--token"
            )
        tokens[holder] = secret_of(secret)
    return tokens
