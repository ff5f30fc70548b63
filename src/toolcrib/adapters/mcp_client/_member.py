"""Member of a server: the names, the gates and the pin of a thing that the server lists, and the tool of it."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import mcp_types as types

from toolcrib.adapters.mcp_client._checking import argument_checks
from toolcrib.adapters.mcp_client._listing import Change, Item, identity_of
from toolcrib.adapters.mcp_client._options import Options, ToolLabels
from toolcrib.adapters.mcp_client._remote_server import RemoteServer
from toolcrib.adapters.mcp_client._values import (
    RemoteTool,
    Warnings,
    effect_of,
    read_as_json,
    source_of,
)
from toolcrib.approvals import ApprovalPolicy, PinKind
from toolcrib.calls import CHANGED_ON_SERVER, ApprovalRequest, Consent
from toolcrib.clock import wait_until_set
from toolcrib.errors import ServerError
from toolcrib.hooks import ambient_context
from toolcrib.schema import RunContext, ToolSpec
from toolcrib.serving import OriginalResults
from toolcrib.tools import (
    FoundValues,
    Instruction,
    Offering,
    Tool,
    ToolOptions,
)

L = TypeVar("L", types.Tool, types.Resource, types.ResourceTemplate, types.Prompt)

_PINS_SECONDS = 0.5  # between two looks whether another process has accepted a change, as `toolcrib pins accept` does
_log = logging.getLogger("toolcrib.mcp")


class Member(Offering):
    """A tool, resource, template or prompt of a server. The latter three are offered to clients as what they are.

    Attributes:
        names: The names by which an option may name it.
        change: How it differs from what a person knows of it, where tools are pinned.
        fault: Why it cannot be a tool, as `prepare` found.
    """

    about: RemoteTool
    names: frozenset[str]
    change: Change | None = None
    warned = Warnings()
    fault: ServerError | None = None
    _name_before = ""  # the number
    _pinned: tuple[PinKind, Item] | None = None  # what it is made of, as the server lists it
    _spec: ToolSpec

    def __init__(self, remote: RemoteServer, options: Options) -> None:
        self._remote, self._options = remote, options
        self.listed = True

    def is_as(self, other: Member) -> bool:
        """Return whether the server says of both the same, so that one does for the other."""
        mine, theirs = (self.label(), self.about, self.change), (other.label(), other.about, other.change)
        return mine == theirs and self.warned == other.warned and self._compared() == other._compared()

    def _compared(self) -> tuple[Any, ...]:
        """Return the server's statements about it to clients."""
        return self.get_listing(), self.get_offer()

    def _known(self, kind: PinKind, listed: L) -> L:
        """Return the listed item; where it is pinned and has changed, the pinned one."""
        pins = self._remote.kept.pins
        self._pinned = kind, listed
        self.change = None if pins is None else pins.change_in(kind, listed)
        return listed if self.change is None else self.change.shown()

    def prepare(self) -> None:
        """Read the schemas for `tool`; what that takes grows with what the server sends, so call it in a thread."""
        about, options = self.about, self._options
        override = self._override(options.return_schemas)
        text = self._override(options.descriptions)
        try:
            self._spec = ToolSpec.from_schema(
                self._call,
                about.parameters,
                name=options.prefix + about.name,
                description=about.description if text is None else text,
                returns=about.returns if override is None else override,
                check=argument_checks(about.name, about.parameters),
            )
        except (AttributeError, TypeError, ValueError) as error:  # a schema may be anything
            self.fault = unreadable(self._remote.name, about.name, str(error))
            self.fault.__cause__ = error
            return
        self._spec.is_elsewhere = True
        if self._spec.wrong_keywords:
            text = "the schema of %s of the server `%s` is wrong at %s, which is left out and not checked"
            _log.warning(text, self.label(), self._remote.name, self._spec.wrong_keywords)

    def tool(self) -> Tool[..., Any]:
        """Return it as a tool once it is prepared, with the gates of the host, which the server cannot change."""
        about, options = self.about, self._options
        labels: ToolLabels = self._override(options.labels) or options.labels.get("*", {})
        tool: Tool[..., Any] = Tool(
            self._spec,
            ToolOptions(
                tags=self.tags(),
                requires_approval=self._approval(),
                effect=labels.get("effect") or effect_of(about, trusted=options.trusted),
                source=labels.get("source") or source_of(about, self.warned, trusted=options.trusted),
                content=labels.get("content", ()),
                readers=labels.get("readers", () if self.warned.private else None),
                max_result_chars=options.max_result_chars,
                default=self.is_for_models(),
            ),
            source=self,
        )
        tool.origin = f"{self.label()} of the MCP server `{self._remote.name}`"
        return tool

    def tags(self) -> frozenset[str]:
        """Return its tags, which hooks select by."""
        return self.about.tags()

    def is_for_models(self) -> bool:
        """Return whether models are offered it as a tool."""
        return True

    def keep_original(self, ctx: RunContext[Any] | None, value: Any, result: Any) -> Any:
        """Return the value of a result, which is kept for a server that passes it on unchanged."""
        originals = None if ctx is None else ctx.provided.get(OriginalResults)
        if ctx is not None and isinstance(originals, OriginalResults):
            originals.keep(ctx.call_id, value, result)
        return value

    def label(self) -> str:
        """Return its kind and its name on the server, for messages."""
        return f"the tool `{self.about.name}`"

    def is_available(self, ctx: RunContext[Any]) -> bool:
        return self.listed

    def get_definition(self) -> Mapping[str, Any]:
        """Return the server's statements about it; for a change, the whole new item."""
        definition = self.about.definition() if self.change is None else {"listed": self.change.now}
        return definition if self._identity() in ("", self.about.name) else {**definition, "is": self._identity()}

    def rename(self, name: str) -> None:
        """Change the name to one with a number, as another member of the server has it; options name that one by it."""
        self._name_before = self.about.name
        self.about, self.names = replace(self.about, name=name), self.names - {self._name_before} | {name}

    def keeps_name(self) -> bool:
        """Return whether the name is the server's own, which others of the server that come to the same give way to."""
        return self._pinned is not None and self._pinned[0] == "tool" and self._identity() == self.about.name

    def _identity(self) -> str:
        return "" if self._pinned is None else identity_of(self._pinned[1])

    def get_identity(self) -> Mapping[str, Any]:
        return self._remote.identity

    @property
    def may_need_consent(self) -> bool:
        return self._options.credentials is not None

    async def get_consent(self, ctx: RunContext[Any]) -> Consent | None:
        """Return the consent that the principal must give before the server is used for them."""
        return await self._remote.consent_for(ctx)

    def get_approval_metadata(self) -> dict[str, Any] | None:
        """Return the difference between the tool as a person knows it and as it is."""
        return None if self.change is None else {CHANGED_ON_SERVER: self.change.text()}

    async def get_settler(self, request: ApprovalRequest) -> str | None:
        """Return who accepted what the server has now, where a call was suspended because it had changed."""
        pins, pinned = self._remote.kept.pins, self._pinned
        if pins is None or pinned is None or CHANGED_ON_SERVER not in request.metadata:
            return None
        return await pins.accepted_by(*pinned)

    async def wait_for_settler(self, request: ApprovalRequest) -> str | None:
        """Wait until someone has accepted what the server has now, where a call is suspended because it had changed."""
        pins = self._remote.kept.pins
        while pins is not None and CHANGED_ON_SERVER in request.metadata:
            accepted = pins.accepted  # before the look
            if (by := await self.get_settler(request)) is not None:
                return by
            await wait_until_set(accepted, _PINS_SECONDS, self._options.clock)
        return None

    def _approval(self) -> ApprovalPolicy:
        names = self.names | {self._name_before}  # it was asked about by that before the server had another of it
        needed, change = self._options.needs_approval(self.about, names), self.change
        if change is None:
            return needed

        async def policy(arguments: Any, ctx: Any) -> bool | str:
            return needed if await change.pins.is_accepted(change) else change.reason

        return policy

    def get_instruction(self, ctx: RunContext[Any]) -> Instruction | None:
        text = self._remote.instructions if self._options.include_instructions else None
        return Instruction(f"mcp: {self._remote.name}", text) if text else None

    async def _call(self, /, **arguments: Any) -> Any:
        ctx = ambient_context()
        if self.change is not None:
            if ctx is not None and ctx.approved:
                await self.change.pins.accept(self.change, ctx.approved_by or "host")
            await self._remote.kept.on_change()
        value = await self.run(arguments, ctx)
        return value if self._override(self._options.return_schemas) is None else read_as_json(value)

    async def _completed(self, reference: Any, argument: str, typed: str, values: Mapping[str, str]) -> FoundValues:
        found = await self._remote.complete(reference, argument, typed, values)
        return FoundValues(found.values, found.total, found.has_more)

    @abstractmethod
    async def run(self, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        """Make the request to the server."""

    def _override(self, table: Mapping[str, Any]) -> Any:
        return next((table[name] for name in self.names if name in table), None)


def unreadable(server: str, name: str, problem: str) -> ServerError:
    """Return the error for a tool whose description by a server cannot be read."""
    return ServerError(server, f"describes its tool `{name:.200}` in a way that cannot be read: {problem:.500}")
