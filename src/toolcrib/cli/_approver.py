"""Approver of the command line: flags answer first, then a person at the terminal."""

from __future__ import annotations

import asyncio
import getpass
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolcrib._json_writer import read_json
from toolcrib.approvals import Approver, GrantForm, field_choices, field_value, misfit
from toolcrib.calls import DOUBT_ANSWERS, ApprovalRequest, Denial, Grant
from toolcrib.cli._terminal import Terminal
from toolcrib.errors import ApprovalError, ClientUnavailable, InvalidArguments, SchemaError, UnknownTool
from toolcrib.schema import hidden_paths
from toolcrib.toolsets import Toolset

_QUESTION = "approve? [y]es, [n]o, [e]dit the arguments, [a]lways for this tool, [w]ithin bounds: "
_DOUBT = "".join(
    f"  [{key}] {DOUBT_ANSWERS[answer]}\n" for key, answer in (("d", "approve"), ("r", "done"), ("n", "deny"))
)
_ANSWER = "answer? [y]es, [n]o: "
_PLAIN = "answer? [y]es, [n]o, [d]ecline: "
_YES_OR_NO = "do it? [y]es, [n]o: "
_HELP = "Type y, n (a message for the model may follow), e, a or w."
_BOUNDS = 'What may each argument be? any, <= 50, 5..50, under /a/path, one of "a", "b"; Enter for exactly this.'


def tool_name(toolset: Toolset, name: str) -> str:
    """Return the name that models use for `name`, which may be a subtool's `parent.child`."""
    known = name.replace(".", "__")
    return known if name not in toolset and known in toolset else name


@dataclass(frozen=True, slots=True)
class ApprovalFlags:
    """The flags of a command that decide about approval.

    Attributes:
        approve: Tools that may run.
        deny: Tools that may not; this wins over everything else.
        yes: Whether every other tool may run.
        suspend: Whether to leave the call suspended, instead of asking or refusing.
        message: The text that the model is shown about a tool in `deny`.
    """

    approve: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    yes: bool = False
    suspend: bool = False
    message: str = ""

    def named(self, toolset: Toolset) -> ApprovalFlags:
        """Return the same with the names that models use; raises UnknownTool for one that the toolset does not have."""
        approve, deny = ({tool_name(toolset, name) for name in names} for names in (self.approve, self.deny))
        for name in sorted(approve | deny):
            if name not in toolset:
                raise UnknownTool(name, tuple(toolset.names()))
        return replace(self, approve=frozenset(approve), deny=frozenset(deny))

    def gated(self, toolset: Toolset) -> Toolset:
        """Return the toolset whose denied tools need approval, which they do not get, whether they need it or not."""
        return toolset.with_approval(names=self.deny) if self.deny else toolset


def approver_of(flags: ApprovalFlags, toolset: Toolset, terminal: Terminal | None) -> Approver:
    """Return the approver of calls; `terminal` is None where there is no terminal."""
    person = None if terminal is None else _TerminalApprover(terminal, toolset)

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        answer = await answer_to(request)
        if isinstance(answer, Grant) and request.consent is None and (why := misfit(answer, request)):
            raise ApprovalError(request.tool, why)  # who reads it is the person who answered
        return answer

    async def answer_to(request: ApprovalRequest) -> Grant | Denial | None:
        tool = request.tool
        if tool in flags.deny:
            return request.deny(message=flags.message or f"`{tool}` was denied with --deny {tool}", by="--deny")
        if (tool in flags.approve or flags.yes) and not request.in_doubt:  # a person knows whether it was done
            return request.grant(by="--approve" if tool in flags.approve else "--yes")
        if flags.suspend:
            return None
        if person is None and request.asked_by is not None:
            why = f"{request.asked_by} asks during the call, and there is no terminal to ask on; run it on a terminal"
            raise ClientUnavailable(tool, "the answer of a person", why)
        if person is not None:
            return await person.answer(request)
        if request.in_doubt:
            return None
        options = f"--approve {tool}, --deny {tool}, --yes, or --suspend"
        message = f"`{tool}` needs approval, and there is no terminal to ask on; decide with {options}"
        return request.deny(message=message, by="no terminal")

    return approver


class _TerminalApprover:
    """Asks a person at the terminal one question at a time, and remembers the tools that are always approved."""

    def __init__(self, terminal: Terminal, toolset: Toolset) -> None:
        self._terminal, self._toolset = terminal, toolset
        self._name = user_name()
        self._always: set[str] = set()
        self._turn = asyncio.Lock()

    async def answer(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Show the request, and ask until there is an answer; None for a call in doubt that is left as it is."""
        async with self._turn:
            if request.asked_by is not None:
                return await self._answer_question(request)
            if request.in_doubt:
                return await self._answer_doubt(request)
            if request.tool in self._always and not request.origins:
                return request.grant(self._name, scope="tool")
            with self._terminal.quiet():
                self._terminal.say(request.text())
                while True:
                    answer = await self._answer_line(request, await self._terminal.ask(_QUESTION))
                    if answer is not None:
                        return answer

    async def _answer_doubt(self, request: ApprovalRequest) -> Grant | Denial | None:
        """Show a call that may have run already, and ask for one of the three answers; None where none came."""
        with self._terminal.quiet():
            self._terminal.say(f"{request.text()}\n{_DOUBT}")
            while True:
                match (await self._terminal.ask("answer? d, r or n: ") or "").lower():
                    case "d":
                        return request.grant(self._name)
                    case "n":
                        message = await self._terminal.ask("message for the model (Enter for none): ") or ""
                        return request.deny(message=message.strip(), by=self._name)
                    case "r":
                        result = await self._result(request)
                        if result is not None:
                            return result
                    case "":
                        return None
                    case _:
                        self._terminal.say("Type d, r or n; Enter leaves the call as it is.")

    async def _result(self, request: ApprovalRequest) -> Grant | None:
        """Ask for the result of a call that was done until it fits its tool; None when the person gives up."""
        while True:
            line = await self._terminal.ask("its result as JSON (Enter to go back): ")
            if not line:
                return None
            try:
                value: object = read_json(line)
            except (ValueError, RecursionError) as error:
                self._terminal.say(f"it is not JSON: {error}")
                continue
            checker: Any = importlib.import_module("toolcrib.jsonschema.checker")
            problems: list[Any] = checker.misfits(request.returns or {}, value)
            if not problems:
                return request.done(value, self._name)
            self._terminal.say("; ".join(map(str, problems)))

    async def _answer_question(self, request: ApprovalRequest) -> Grant | Denial:
        """Show what is asked during a call, and ask for each field until they fit; or for yes or no."""
        schema = dict(request.parameters or {})
        parts: Mapping[str, Any] = schema.get("properties", {})
        only = next(iter(parts)) if [part.get("type") for part in parts.values()] == ["boolean"] else None
        with self._terminal.quiet():
            self._terminal.say(request.text())
            while True:
                question = _YES_OR_NO if not parts else _ANSWER if only is None else _PLAIN
                line = (await self._terminal.ask(question) or "decline").lower()
                if line in ("d", "decline") or (only is None and line in ("n", "no")):
                    return request.deny(message="", by=self._name)
                if line not in ("y", "yes", "n", "no"):
                    self._terminal.say("Type y or n.")
                    continue
                if only is not None:
                    return request.grant(self._name, override_args={only: line in ("y", "yes")})
                fields = await self._fields(schema, request.arguments)
                checker: Any = importlib.import_module("toolcrib.jsonschema.checker")
                problems: list[Any] = checker.misfits(schema, fields)
                if not problems:
                    return request.grant(self._name, override_args=fields)
                self._terminal.say("; ".join(map(str, problems)))

    async def _fields(self, schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Prompt for each field and return the answers; an empty line leaves the default."""
        fields = dict(defaults)
        for name, part in schema.get("properties", {}).items():
            default = f" [{json.dumps(defaults[name], ensure_ascii=False)}]" if name in defaults else ""
            wanted = (
                " | ".join(title for _, title in field_choices(part)) or part.get("title") or part.get("type", "text")
            )
            label = f"{name} ({wanted}){default}: "
            line = await self._terminal.ask(label.replace("\n", " "))
            if line:
                fields[name] = field_value(part, line)
        return fields

    async def _answer_line(self, request: ApprovalRequest, line: str | None) -> Grant | Denial | None:
        if line is None:
            return request.deny(message=f"`{request.tool}` needs approval, and nobody answered", by=self._name)
        word, _, rest = line.partition(" ")
        match word.lower():
            case "y" | "yes":
                return request.grant(self._name)
            case "n" | "no":
                message = rest or await self._terminal.ask("message for the model (Enter for none): ") or ""
                return request.deny(message=message.strip(), by=self._name)
            case "a" | "always":
                if not request.origins:
                    self._always.add(request.tool)
                return request.always(self._name)
            case "w" | "within":
                return await self._within(request)
            case "e" | "edit":
                return await self._edit(request)
            case _:
                self._terminal.say(_HELP)
                return None

    async def _within(self, request: ApprovalRequest) -> Grant | None:
        """Ask what each argument may be and for how many calls, and show what it comes to; None without a yes."""
        self._terminal.say(_BOUNDS)
        typed: dict[str, str] = {}
        of_argument = ""
        for place, value in GrantForm.places(request).items():
            if place in request.arguments or not of_argument:  # a part has a bound where its argument has none
                shown = json.dumps(value, ensure_ascii=False)
                typed[place] = await self._terminal.ask(f"{place} [{shown}]: ") or ""
            if place in request.arguments:
                of_argument = typed[place].strip()
        uses = await self._terminal.ask("for how many calls, this one too (Enter for any number): ") or ""
        total, summed = await self._sum(GrantForm.numbers(request))
        hours = await self._terminal.ask("for how many hours (Enter for the rest of the run): ") or ""
        times = await self._terminal.ask("at which times, as mon-fri 09:00-17:00 Europe/Berlin (Enter for any time): ")
        try:
            form = GrantForm(typed, uses=uses, total=total, summed=summed, hours=hours, times=times or "")
            grant = form.grant(request, self._name)
        except ValueError as error:
            self._terminal.say(str(error))
            return None
        self._terminal.say(grant.text())
        return grant if (await self._terminal.ask("allow it? [y]es, [n]o: ") or "").lower() in ("y", "yes") else None

    async def _sum(self, numbers: list[str]) -> tuple[str, str]:
        """Ask up to which sum of which argument, where one is a number."""
        of = f" of {numbers[0]}" if len(numbers) == 1 else ""
        total = await self._terminal.ask(f"up to which sum{of} in all (Enter for any): ") if numbers else ""
        if not total or len(numbers) == 1:
            return total or "", ""
        return total, await self._terminal.ask(f"of which argument, {', '.join(numbers)}: ") or ""

    async def _edit(self, request: ApprovalRequest) -> Grant | None:
        """Ask for arguments until they fit; None when the person gives up."""
        self._terminal.say(json.dumps(request.arguments, ensure_ascii=False))
        while True:
            line = await self._terminal.ask("all arguments as JSON (Enter to go back): ")
            if not line:
                return None
            problem = self._problem(request.tool, line)
            if problem is None:
                grant = request.grant(self._name, override_args=json.loads(line))
                if not (problem := misfit(grant, request)):
                    return grant
            self._terminal.say(problem)

    def _problem(self, tool: str, line: str) -> str | None:
        """Return why these arguments cannot be used, or None."""
        try:
            self._toolset[tool].tool.spec.validate_json(line)
        except (InvalidArguments, SchemaError) as error:
            return str(error)
        return "type the real values in place of the hidden ones" if hidden_paths(json.loads(line)) else None


def user_name() -> str:
    """Return the name of the user that runs the command, as the approver in the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no user database, as in some containers and on Windows
        return "terminal"
