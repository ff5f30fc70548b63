"""Calls of tools in a reply: their kinds, and their arguments as the tools have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from toolcrib._json_writer import read_json
from toolcrib.approvals import digest
from toolcrib.errors import SchemaError
from toolcrib.formats import ProviderFormat, WireCall, WireReply, own_arguments, text_parameter, without_filler
from toolcrib.toolsets import Toolset

_FUNCTIONS = frozenset({"function"})


class ToolCalls:
    """Reader of the calls of tools in one reply. What it asks of a tool, it asks once.

    Args:
        toolset: The tools.
        format: The wire format of the reply, in which the tools were defined.
        strict: Whether the tools were defined in the provider's strict mode.
    """

    def __init__(self, toolset: Toolset, format: ProviderFormat, *, strict: bool) -> None:
        self._entries, self._format, self._strict = toolset.entries, format, strict
        self._sent: dict[str, Mapping[str, str]] = {}

    def of(self, reply: WireReply) -> list[WireCall]:
        """Return the calls that are of tools, each of the kind that its tool takes."""
        if {call.kind for call in reply.calls} <= _FUNCTIONS:
            return [*reply.calls]
        kinds = [(call, self.kind_of(call.kind, call.name, call.namespace)) for call in reply.calls]
        return [call if call.kind == kind else replace(call, kind=kind) for call, kind in kinds if kind]

    def kind_of(self, kind: str, name: str, namespace: str) -> str:
        """Return the kind of a call as its tool takes it: `function`, or that of a free text for a tool of one text.

        It is empty where the call is the host's to answer. One in a namespace is, unless that has the tool's own name:
        the provider puts each tool that is offered deferred, by its own options or by those of one request, into one.
        """
        if kind == "function":
            return kind
        entry = self._entries.get(name)
        if entry is None or namespace not in ("", name):
            return ""
        if kind not in self._format.free_texts:
            return "function" if namespace else ""
        try:
            return kind if text_parameter(entry.tool.parameters) is not None else ""
        except SchemaError:
            return ""

    def arguments_of(self, call: WireCall) -> str | Mapping[str, Any]:
        """Return a call's arguments as the tool has them, and not as the provider's definition of it does.

        A free text becomes the tool's one argument; names that were sent in the place of others become those again; and
        in strict mode the nulls go that a model writes for what it leaves out.
        """
        names = self._sent.get(call.name)
        if names is None:
            names = self._sent[call.name] = self._sent_names(call.name)
        raw, entry = call.arguments, self._entries.get(call.name)
        if entry is None or (call.kind == "function" and not (names or self._strict)):
            return raw
        try:
            parameters = entry.tool.parameters
            text = text_parameter(parameters) if isinstance(raw, str) and call.kind != "function" else None
            if text is not None:
                return {text: raw}
            if not names and not (self._strict and (not isinstance(raw, str) or "null" in raw)):
                return raw
            value: object = read_json(raw) if isinstance(raw, str) else raw
            if not isinstance(value, Mapping):
                return raw
            known = own_arguments(cast("Mapping[str, Any]", value), names)
            arguments = without_filler(known, parameters) if self._strict else known
        except (ValueError, RecursionError, SchemaError):  # the pipeline says what is wrong with the call
            return raw
        return json.dumps(arguments) if isinstance(raw, str) else arguments

    def _sent_names(self, name: str) -> Mapping[str, str]:
        """Return the names under which the arguments of a tool are sent, by their own; only those that differ."""
        entry = self._entries.get(name)
        try:
            return {} if entry is None else self._format.sent_names(entry.tool.parameters)
        except SchemaError:  # the pipeline says what is wrong with the call
            return {}


def own_copy(value: Any) -> Any:
    """Return a copy that shares nothing with the call; a user's type may refuse to be copied."""
    if not isinstance(value, Mapping):
        return value
    source: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType] -- checked just above
    try:
        return deepcopy(source)
    except Exception:  # a user's __deepcopy__
        return dict(source)


def are_equal(tool: str, before: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the arguments of a tool are the same, as a grant tells them apart."""
    try:
        return before == other or digest(tool, before) == digest(tool, other)
    except Exception:  # a user's __eq__; what cannot be compared is taken to be edited
        return False
