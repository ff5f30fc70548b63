"""`toolcrib approvals`: pending requests for approval, and their answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from toolcrib import approvals as approval_room
from toolcrib import approvers as approver_room
from toolcrib._json_writer import read_json
from toolcrib._numbers import count_text
from toolcrib._run_sync import run_sync
from toolcrib.approvals import (
    ApprovalEntry,
    ReviewableApprovalStore,
    SqlApprovalStore,
    grant_row,
    typed_bounds,
)
from toolcrib.calls import ApprovalRequest, Denial, Grant, GrantScope, Identity, TimesOfDay
from toolcrib.cli._approval_formatting import (
    SHORT_ID,
    answer_text,
    entries_table,
    entry_json,
    entry_text,
    standing_text,
)
from toolcrib.cli._approver import user_name
from toolcrib.cli._commands import Commands
from toolcrib.cli._database import DATABASE_HINT, DatabaseOption, database_errors, open_approvals, shown_name
from toolcrib.cli._formatting import JsonOption, console, print_json, say, write
from toolcrib.cli._status import Status, confirm, exit_on_error
from toolcrib.cli._terminal import Terminal
from toolcrib.cli._times import time_of
from toolcrib.errors import ApprovalError

T = TypeVar("T")

TOKEN = "TOOLCRIB_APPROVER_TOKEN"  # the environment variable
_PREFIX = "ask_"  # of every id; it may be left out
_MAX_CHOICES = 5  # ids that are shown

approvals = Commands(name="approvals", help="Requests for approval, and their answers.", no_args_is_help=True)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A TOML or JSON file of rules, or a policy in Cedar.", show_default=False)
]
IdArgument = Annotated[
    str,
    typer.Argument(metavar="ID", help="The request's id, or as much of it as `list` shows.", show_default=False),
]
IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...", help="The requests' ids, or as much of each as `list` shows.", show_default=False
    ),
]
ToolOption = Annotated[
    str | None,
    typer.Option("--tool", metavar="NAME", help="All pending requests of this tool that are not in doubt, not by id."),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="The approver in the record; the token's holder or your user name when left out."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer without showing the request and asking.")]


@approvals.command("list")
def list_requests(
    everything: Annotated[bool, typer.Option("--all", help="Show answered requests, too.")] = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the pending requests, oldest first."""
    with exit_on_error():
        store = open_approvals(database, create=False)
        entries = _wait(store.list(pending=not everything), database)
        if as_json:
            print_json([entry_json(entry) for entry in entries])
        elif entries:
            screen = console()
            screen.print(entries_table(entries, answers=everything, width=screen.width))
        else:
            say(f"there is no {'' if everything else 'pending '}request in {_place(store, database)}")


@approvals.command()
def show(request: IdArgument, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Show one request: its final arguments, what changed since the model asked, and its answer."""
    with exit_on_error():
        store = open_approvals(database, create=False)
        entry = _find(store, request, database)
        if as_json:
            print_json(entry_json(entry))
        else:
            write(entry_text(entry))


@approvals.command()
def approve(
    requests: IdsArgument = None,
    tool: ToolOption = None,
    name: ByOption = None,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="A remark for the record.")] = "",
    arguments: Annotated[
        str | None,
        typer.Option("--arguments", metavar="JSON", help="All arguments of the call, in place of the model's."),
    ] = None,
    typed: Annotated[
        str | None, typer.Option("--input", metavar="TEXT", help="What the tool finds as `ctx.user_input`.")
    ] = None,
    always: Annotated[bool, typer.Option("--always", help="Let further calls of this tool run as well.")] = False,
    scope: Annotated[
        GrantScope | None,
        typer.Option(
            "--scope",
            metavar="tool|arguments|values",
            help="With --always: any arguments, just these, or just the values of others that are asked about.",
        ),
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            "--within",
            metavar="ARG=BOUND",
            help="With --always, and for each argument that may differ, or part of one as items[*].price: any, "
            "'<= 50', 5..50, 'under /srv/x', "
            '\'one of "a", "b"\'. The others stay as they are.',
        ),
    ] = None,
    uses: Annotated[
        int | None, typer.Option("--uses", metavar="N", min=1, help="With --always: for how many calls, this one too.")
    ] = None,
    total: Annotated[
        str | None, typer.Option("--total", metavar="ARG=N", help="With --always: up to which sum of an argument.")
    ] = None,
    times: Annotated[
        str | None,
        typer.Option(
            "--times", metavar="TIMES", help="With --always: when it counts, as mon-fri 09:00-17:00 Europe/Berlin."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="Until when: 30m, 2h, 7d, or 2030-01-31[T12:00]."),
    ] = None,
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve requests: their calls run, with the arguments that `show` shows."""
    one_call = {"--always": always or None, "--arguments": arguments, "--input": typed}
    for option in (option for option, value in one_call.items() if value is not None):
        if tool is not None or len(requests or ()) > 1:
            raise typer.BadParameter("it answers one request, by its id", param_hint=option)
    if always and (arguments is not None or typed is not None):
        raise typer.BadParameter("--arguments and --input are for one call, not for --always", param_hint="--always")
    if not always and (within or uses is not None or total is not None or times is not None):
        raise typer.BadParameter(
            "--within, --uses, --total and --times say how far --always goes", param_hint="--always"
        )
    until, override = time_of(expires, "--expires", ahead=True, to_end=True), _override(arguments)

    def answer(entry: ApprovalEntry, by: str) -> Grant:
        asked = entry.request
        if asked.asked_by is not None and always:
            raise typer.BadParameter(f"{asked.asked_by} asks this during one call", param_hint="--always")
        fields = f"{asked.asked_by} asks for fields, give them as one object"
        text = f"`{asked.tool}` cannot take these" if asked.asked_by is None else fields
        _require_fit(asked, asked.grant(by, override_args=override, user_input=typed), text, "--arguments")
        if not always:
            return asked.grant(by, message=message, expires_at=until, override_args=override, user_input=typed)
        if scope == "values" and not asked.origins:
            raise typer.BadParameter("the request asks about no values of others", param_hint="--scope")
        limits = _limits(asked, within or (), total)
        try:
            limits["times"] = None if times is None else TimesOfDay.parse(times)
            return asked.always(by, scope=scope, expires=until, message=message, uses=uses, **limits)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--always") from None

    _answer(requests, tool, database, answer, name, as_json=as_json, yes=yes)


@approvals.command()
def deny(
    requests: IdsArgument = None,
    tool: ToolOption = None,
    name: ByOption = None,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="What the model is shown.")] = "",
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Deny requests: their calls do not run, and the model is shown that."""

    def answer(entry: ApprovalEntry, by: str) -> Denial:
        return entry.request.deny(message=message, by=by)

    _answer(requests, tool, database, answer, name, as_json=as_json, yes=yes, unproven=True)


@approvals.command()
def done(
    request: IdArgument,
    result: Annotated[
        str, typer.Option("--result", metavar="JSON", help="The result of the call.", show_default=False)
    ],
    name: ByOption = None,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="A remark for the record.")] = "",
    yes: YesOption = False,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record that a call in doubt was done, and give its result: its tool does not run again."""
    value = _json(result, "--result")

    def answer(entry: ApprovalEntry, by: str) -> Grant:
        answer = entry.request.done(value, by, message)
        _require_fit(entry.request, answer, f"`{entry.request.tool}` cannot have this result", "--result")
        return answer

    _answer([request], None, database, answer, name, as_json=as_json, yes=yes)


@approvals.command()
def standing(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List what was approved with --always: what it covers, who approved it, and how much of it was used."""
    with exit_on_error():
        store = open_approvals(database, create=False)
        grants = _wait(store.standing(), database)
        used = _wait(store.grant_uses(grants), database)
        if as_json:
            print_json([{**grant.to_dict(), **grant_row(grant, use)} for grant, use in zip(grants, used, strict=True)])
        elif grants:
            lines = (standing_text(grant, use) for grant, use in zip(grants, used, strict=True))
            write("".join(f"{line}\n" for line in lines))
        else:
            say(f"nothing was approved for good in {shown_name(database)}")


@approvals.command()
def revoke(request: IdArgument, database: DatabaseOption = None) -> None:
    """Revoke what was approved with --always, by the request that it answered."""
    with exit_on_error():
        store = open_approvals(database, create=False)
        entry = _find(store, request, database)
        answer = entry.answer
        if not isinstance(answer, Grant) or not answer.standing or not _wait(store.revoke(answer), database):
            say(f"nothing that was approved for good answers {entry.request.id}")
            raise typer.Exit(Status.FAILED)
        write(f"took back what {answer.by} approved for `{answer.tool}`\n")


@approvals.command()
def rules(file: FileArgument, as_json: JsonOption = False) -> None:
    """Check a file of the rules of approvers, and list them in words: who approves which calls."""
    with exit_on_error():
        lines = approver_room.describe_rules(file)
        if as_json:
            print_json({"rules": lines})
        else:
            write("".join(f"{line}\n" for line in lines))


@approvals.command()
def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The approver.", show_default=False)],
    revoke: Annotated[bool, typer.Option("--revoke", help="End the approver's token.")] = False,
    database: DatabaseOption = None,
) -> None:
    """Make the token by which an approver answers without a terminal; an older one of the same name ends."""
    with exit_on_error():
        store = open_approvals(database)
        by = _approver(store, None, database)
        if not revoke:
            write(f"{_wait(store.issue_token(name), database)}\n")
            say(f"it is shown once. {name} answers with it as {TOKEN}")
        elif _wait(store.revoke_token(name), database):
            write(f"{name} no longer has a token\n")
        else:
            say(f"{name} has no token in {shown_name(database)} (asked by {by})")
            raise typer.Exit(Status.FAILED)


def _answer(
    requests: Sequence[str] | None,
    tool: str | None,
    database: str | None,
    make: Callable[[ApprovalEntry, str], Grant | Denial],
    name: str | None,
    *,
    as_json: bool,
    yes: bool,
    unproven: bool = False,
) -> None:
    """Answer requests with what is made for each, once a person has confirmed it, and print that.

    Args:
        make: Makes the answer of an approver.
        unproven: It lets nothing run, so that it needs no proof of the approver.
    """
    if bool(requests) == (tool is not None):
        raise typer.BadParameter("name requests, or give --tool for all of a tool's", param_hint="ID")
    with exit_on_error():
        store = open_approvals(database, create=False)
        entries = _chosen(store, requests or (), tool, database)
        drafts = [make(entry, name or user_name()) for entry in entries]  # so that what is wrong with it is said first
        by = _approver(store, name, database, unproven=unproven)
        answers = [
            ApprovalEntry(entry.request, _answered_by(by, draft, entry.request))
            for entry, draft in zip(entries, drafts, strict=True)
        ]
        if not yes and any(entry.state == "pending" for entry in entries):
            _confirm(entries, answers)
        by_id = {answer.request.id: cast("Grant | Denial", answer.answer) for answer in answers}
        sent = _wait(store.answer_each(by_id, lambda entry: by_id[entry.request.id]), database)
        answered = [answer for answer in answers if _is_sent(answer, sent[answer.request.id], as_json)]
        if as_json and answered:
            shown = [entry_json(entry) for entry in answered]
            print_json(shown[0] if tool is None and len(entries) == 1 else shown)
        if len(answered) < len(answers):
            raise typer.Exit(Status.FAILED)


def _chosen(
    store: ReviewableApprovalStore, requests: Sequence[str], tool: str | None, database: str | None
) -> list[ApprovalEntry]:
    """Return the requests with these ids, each once, or the pending ones of a tool.

    A call in doubt is answered by its id alone: whether it was done is known to one who looked at it.
    """
    if tool is None:
        found = [_find(store, request, database) for request in requests]
        return list({entry.request.id: entry for entry in found}.values())
    pending = [entry for entry in _wait(store.list(pending=True), database) if entry.request.tool == tool]
    entries = [entry for entry in pending if not entry.request.in_doubt]
    if doubtful := len(pending) - len(entries):
        say(f"{doubtful} of `{tool}` in doubt {'is' if doubtful == 1 else 'are'} left; answer each by its id")
    if not entries:
        say(
            f"there is no pending request of `{tool}` in {_place(store, database)}; `toolcrib approvals list` shows all"
        )
        raise typer.Exit(Status.MISUSED)
    return entries


def _is_sent(entry: ApprovalEntry, sent: ApprovalEntry | ApprovalError, as_json: bool) -> bool:
    """Print the outcome of an answer to a request; false for one that the store did not take."""
    if isinstance(sent, ApprovalError):  # answered before, or an answer that does not fit
        say(str(sent))
        return False
    answer = cast("Grant | Denial", entry.answer)
    if not as_json:
        again = ", and its further calls" if isinstance(answer, Grant) and answer.standing else ""
        write(f"{entry.status} `{answer.tool}`{again}, as {answer.by} ({entry.request.id})\n")
    return True


def _answered_by(who: str | Identity, answer: Grant | Denial, request: ApprovalRequest) -> Grant | Denial:
    """Return an answer as that of who answers, with the identity that a token shows."""
    if isinstance(answer, Grant) and isinstance(who, Identity):
        who = request.answered_by(who)
        return replace(answer, by=str(who), identity=who)
    return replace(answer, by=str(who))


def proven_approver(name: str | None, database: str | None) -> str:
    """Return who answers and what shows it, by a token of the database's or by the terminal; end the command else."""
    store = open_approvals(database, create=False) if os.environ.get(TOKEN) else None
    return str(_approver(store, name, database))


def _approver(
    store: SqlApprovalStore | None, name: str | None, database: str | None, *, unproven: bool = False
) -> str | Identity:
    """Return who answers and what shows it, for the record; end the command where a model could have typed it."""
    if (token := os.environ.get(TOKEN)) and store is not None:
        holder = _wait(store.holder_of(token), database)
        if holder is None:
            say(f"{TOKEN} is not an approver's in {shown_name(database)}; `toolcrib approvals token NAME` makes one")
            raise typer.Exit(Status.MISUSED)
        if name not in (None, holder):
            raise typer.BadParameter(f"the token is {holder}'s", param_hint="--by")
        return Identity(holder, "token")
    if Terminal.is_interactive():
        return f"{name or user_name()} (terminal)"
    if unproven:
        return name or user_name()
    say(
        "nothing was answered: this is not a terminal, and no command that a model could run approves. Answer at a "
        f"terminal or in the console, or with {TOKEN}, which `toolcrib approvals token NAME` makes at a terminal"
    )
    raise typer.Exit(Status.MISUSED)


def _confirm(entries: Sequence[ApprovalEntry], answers: Sequence[ApprovalEntry]) -> None:
    """Show requests and the answers to them, and end the command unless a person at the terminal says yes."""
    terminal = Terminal()
    for entry, answer in zip(entries, answers, strict=True):
        text = answer_text(cast("Grant | Denial", answer.answer))
        terminal.say(f"{entry_text(entry)}\nyour answer:\n{text}")
    is_single = len(entries) == 1
    asked = confirm(
        "send this answer?" if is_single else f"send these {count_text(len(entries), 'answer')}?",
        undone="nothing was answered",
        meant="the request above is the one"
        if is_single
        else f"the {count_text(len(entries), 'request')} above are the ones",
    )
    run_sync(asked)


def _find(store: ReviewableApprovalStore, text: str, database: str | None) -> ApprovalEntry:
    """Return the request with an id, which may be cut to what `list` shows and go without its prefix."""
    entries = _wait(store.list(), database)
    start = text if text.startswith(_PREFIX) else _PREFIX + text
    found = [entry for entry in entries if entry.request.id in (text, start)]
    if not found and len(start) >= SHORT_ID:
        found = [entry for entry in entries if entry.request.id.startswith(start)]
    if len(found) == 1:
        return found[0]
    hint = "`toolcrib approvals list` shows the pending ones"
    if found:
        more = ", ..." if len(found) > _MAX_CHOICES else ""
        ids = ", ".join(entry.request.id for entry in found[:_MAX_CHOICES])
        say(f"{count_text(len(found), 'request')} begin with {text}: {ids}{more}. Give more of the id")
    else:
        short = ", which is too short for the beginning of an id," if len(start) < SHORT_ID else ""
        say(f"there is no request {text!r}{short} in {_place(store, database)}; {hint}")
    raise typer.Exit(Status.MISUSED)


def _place(store: ReviewableApprovalStore, database: str | None) -> str:
    """Return where the requests are kept, and whether there never were any: calls may wait in another database."""
    never = "" if _wait(store.list(), database) else f", which has had none. {DATABASE_HINT}"
    return f"{shown_name(database)}{never}"


def _wait(work: Coroutine[Any, Any, T], database: str | None) -> T:
    with database_errors(database):
        return run_sync(work)


def _limits(request: ApprovalRequest, within: Sequence[str], total: str | None) -> dict[str, Any]:
    """Return the limits of a standing grant, as they were typed."""
    typed = dict(_named(bound, "--within") for bound in within)
    try:
        limits: dict[str, Any] = {"within": typed_bounds(request, typed)} if typed else {}
        if total is not None:
            name, most = _named(total, "--total")
            limits["total"] = (name, Decimal(most))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--within") from None
    except InvalidOperation:
        raise typer.BadParameter(f"{total!r} has no number behind the =", param_hint="--total") from None
    return limits


def _named(text: str, option: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not of the form ARGUMENT=...", param_hint=option)
    return name.strip(), rest.strip()


def _override(text: str | None) -> dict[str, Any] | None:
    """Return arguments from JSON."""
    if text is None:
        return None
    value = _json(text, "--arguments")
    if not isinstance(value, dict):
        raise typer.BadParameter('give all of them as one object: {"name": value}', param_hint="--arguments")
    return cast("dict[str, Any]", value)


def _json(text: str, option: str) -> object:
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"it is not JSON: {error}", param_hint=option) from None


def _require_fit(request: ApprovalRequest, answer: Grant, text: str, option: str) -> None:
    """Refuse an answer that does not fit what its request asks for; the request stays pending."""
    if problems := approval_room.answer_problems(request, answer):  # which no other command needs: it loads the checker
        raise typer.BadParameter(f"{text}: {'; '.join(problems)}", param_hint=option)
