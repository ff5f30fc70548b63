"""Approver of the command line: flags answer first, then a person at the terminal."""

from __future__ import annotations

import asyncio
import getpass
import json
from dataclasses import dataclass, replace
from typing import Any, cast

from toolcrib.approvals import Approver
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.cli._terminal import Asker
from toolcrib.errors import InvalidArguments, SchemaError, UnknownTool
from toolcrib.schema import REDACTED
from toolcrib.toolsets import Toolset

__all__ = ["Answers", "approver_of", "is_hidden", "tool_name", "user_name"]

_QUESTION = "approve? [y]es, [n]o, [e]dit the arguments, [a]lways for this tool: "
_HIDDEN = (REDACTED, "**********")  # the second is how pydantic shows its own secrets
_HELP = "Type y, n (a message for the model may follow), e or a."


def tool_name(toolset: Toolset, name: str) -> str:
    """Return the name that models use for `name`, which may be a subtool's `parent.child`."""
    known = name.replace(".", "__")
    return known if name not in toolset and known in toolset else name


@dataclass(frozen=True, slots=True)
class Answers:
    """What the flags of a command say about approval.

    Attributes:
        approve: Tools that may run.
        deny: Tools that may not; this wins over everything else.
        yes: Whether every other tool may run.
        suspend: Whether to leave the call suspended, instead of asking or refusing.
        message: What the model is shown of a tool in `deny`.
    """

    approve: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    yes: bool = False
    suspend: bool = False
    message: str = ""

    def named(self, toolset: Toolset) -> Answers:
        """Return the same with the names that models use; raises UnknownTool for one that the toolset does not have."""
        approve, deny = ({tool_name(toolset, name) for name in names} for names in (self.approve, self.deny))
        for name in sorted(approve | deny):
            if name not in toolset:
                raise UnknownTool(name, tuple(toolset.names()))
        return replace(self, approve=frozenset(approve), deny=frozenset(deny))


def approver_of(answers: Answers, toolset: Toolset, asker: Asker | None) -> Approver:
    """Return who is asked before a call that needs approval; `asker` is None where there is no terminal."""
    person = None if asker is None else _Person(asker, toolset)

    async def approver(request: ApprovalRequest) -> Grant | Denial | None:
        tool = request.tool
        if tool in answers.deny:
            return request.deny(answers.message or f"`{tool}` was denied with --deny {tool}", approver="--deny")
        if tool in answers.approve or answers.yes:
            return request.grant(approver="--approve" if tool in answers.approve else "--yes")
        if answers.suspend:
            return None
        if person is not None:
            return await person.answer(request)
        options = f"--approve {tool}, --deny {tool}, --yes, or --suspend"
        message = f"`{tool}` needs approval, and there is no terminal to ask on; decide with {options}"
        return request.deny(message, approver="no terminal")

    return approver


class _Person:
    """Asks one question at a time, and remembers the tools that were approved for good."""

    def __init__(self, asker: Asker, toolset: Toolset) -> None:
        self._asker, self._toolset = asker, toolset
        self._name = user_name()
        self._always: set[str] = set()
        self._turn = asyncio.Lock()

    async def answer(self, request: ApprovalRequest) -> Grant | Denial:
        """Show the request, and ask until there is an answer."""
        async with self._turn:
            if request.tool in self._always:
                return request.grant(self._name, scope="tool")
            with self._asker.quiet():
                self._asker.say(request.text())
                while True:
                    answer = await self._once(request, await self._asker.ask(_QUESTION))
                    if answer is not None:
                        return answer

    async def _once(self, request: ApprovalRequest, line: str | None) -> Grant | Denial | None:
        if line is None:
            return request.deny(f"`{request.tool}` needs approval, and no answer came", self._name)
        word, _, rest = line.partition(" ")
        match word.lower():
            case "y" | "yes":
                return request.grant(self._name)
            case "n" | "no":
                message = rest or await self._asker.ask("message for the model (Enter for none): ") or ""
                return request.deny(message.strip(), self._name)
            case "a" | "always":
                self._always.add(request.tool)
                return request.grant(self._name, scope="tool")
            case "e" | "edit":
                return await self._edited(request)
            case _:
                self._asker.say(_HELP)
                return None

    async def _edited(self, request: ApprovalRequest) -> Grant | None:
        """Ask for arguments until they fit; None when the person gives up."""
        self._asker.say(json.dumps(request.arguments, ensure_ascii=False))
        while True:
            line = await self._asker.ask("all arguments as JSON (Enter to go back): ")
            if not line:
                return None
            problem = self._problem(request.tool, line)
            if problem is None:
                return request.grant(self._name, override_args=json.loads(line))
            self._asker.say(problem)

    def _problem(self, tool: str, line: str) -> str | None:
        """Return why these arguments cannot be used, or None."""
        try:
            self._toolset[tool].tool.spec.validate_json(line)
        except (InvalidArguments, SchemaError) as error:
            return str(error)
        return "type the real values in place of the hidden ones" if is_hidden(json.loads(line)) else None


def is_hidden(value: Any) -> bool:
    """Return whether a value, at any depth, is what a secret looks like where it is hidden."""
    if isinstance(value, dict):
        return any(map(is_hidden, cast("dict[str, Any]", value).values()))
    if isinstance(value, list):
        return any(map(is_hidden, cast("list[Any]", value)))
    return value in _HIDDEN


def user_name() -> str:
    """Return who answers, for the record: the name of the user that runs the command."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no user database, as in some containers and on Windows
        return "terminal"
