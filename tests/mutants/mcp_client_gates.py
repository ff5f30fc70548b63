"""The gates around a server's tools: the host's, which nothing that the server says can open."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["MCP_CLIENT_GATES"]

_MEMBERS = "adapters/mcp_client/_members.py"
_REMOTE = "adapters/mcp_client/_remote_server.py"
_KEPT = "adapters/mcp_client/_kept_connection.py"
_REQUESTS = "adapters/mcp_client/_server_requests.py"
_RESPONSE_SIZE = "adapters/mcp_client/_response_limit.py"
_SOURCE = "adapters/mcp_client/_source.py"

_HERE = "tests/adapters/mcp_client"
_OF_ABSENT = (f"{_HERE}/test_absent.py",)
_OF_CONNECT = (f"{_HERE}/test_connect.py",)
_OF_CHANGES = (f"{_HERE}/test_changes.py",)
_OF_QUESTIONS = (f"{_HERE}/test_questions.py",)
_OF_PINS = ("tests/adapters/mcp_client/test_pins.py",)
_OF_TRUST = ("tests/adapters/mcp_client/test_trust.py",)
_OF_HOSTILE = (f"{_HERE}/test_hostile.py",)

MCP_CLIENT_GATES: tuple[Gate, ...] = (
    # --- what a server says of itself
    Gate(
        "approval of a server's tools",
        _MEMBERS,
        "needed, change = self._options.needs_approval(",
        "needed, change = False and self._options.needs_approval(",
        _OF_CONNECT,
    ),
    Gate(
        "approval of what a server says is harmless",
        _MEMBERS,
        "needed, change = self._options.needs_approval(",
        "needed, change = not self.about.read_only and self._options.needs_approval(",
        _OF_CONNECT,
    ),
    Gate(
        "a server's word that a call can be repeated",
        _MEMBERS,
        "                tags=about.tags(),\n",
        "                tags=about.tags(),\n                idempotent=bool(about.idempotent),\n",
        _OF_CONNECT,
    ),
    Gate(
        "a server's instructions",
        _MEMBERS,
        "self._remote.instructions if self._options.include_instructions else None",
        "self._remote.instructions",
        _OF_CONNECT,
    ),
    Gate(
        "arguments by the server's schema",
        _MEMBERS,
        "            check=checks_of(about.name, about.parameters),\n",
        "",
        _OF_HOSTILE,
    ),
    Gate(
        "schemas that are fetched",
        "schema/checker.py",
        ", registry=_NOTHING)",
        ")",
        _OF_HOSTILE,
    ),
    # --- which tools
    Gate(
        "tools that the host wants",
        _SOURCE,
        " if self._options.wants(member.about, member.names)]",
        "]",
        _OF_CONNECT,
    ),
    Gate(
        "approval of a name that the server does not have",
        _SOURCE,
        "        _require_names(has, self._options, self._remote)\n",
        "",
        _OF_CONNECT,
    ),
    Gate("two things of one name", _SOURCE, "        _require_one_each(wanted)\n", "", _OF_CONNECT),
    Gate(
        "gates of a tool that came later",
        "toolsets/_live.py",
        "            entries = [*step.change(entries)]\n",
        "            pass\n",
        _OF_CHANGES,
    ),
    Gate(
        "a tool that is gone",
        "toolsets/_live.py",
        "gone = [replace(entry, off=True) for",
        "gone = [replace(entry) for",
        _OF_CHANGES,
    ),
    Gate(
        "a new tool with a name that is taken",
        "toolsets/_toolset.py",
        "            add(made, entry)\n",
        "            made[entry.name] = entry\n",
        _OF_CHANGES,
    ),
    # --- a connection that breaks
    Gate(
        "a call that was lost on the way",
        _REMOTE,
        "if not (again or lost.not_done):",
        "if False:",
        _OF_CHANGES,
    ),
    Gate(
        "a connection that was closed",
        _KEPT,
        "        if self._closed:\n",
        "        if False:\n",
        _OF_CONNECT,
    ),
    Gate(
        "approval that a file of servers asks for",
        "adapters/mcp_client/_server_file.py",
        "        approval=approval,\n",
        "        approval=False,\n",
        (f"{_HERE}/test_server_file.py",),
    ),
    # --- servers that are not there
    Gate("a server that has to be there", _SOURCE, "if fault is not None and required:", "if False:", _OF_ABSENT),
    Gate(
        "pauses between two tries of a server",
        _KEPT,
        "        if self._fault is not None and left > _SHORT_PAUSE:\n",
        "        if False:\n",
        _OF_ABSENT,
    ),
    # --- what a server asks
    Gate(
        "a question of the server that nobody hears",
        _REQUESTS,
        "asked.server, asked.message)\n            return False\n",
        "asked.server, asked.message)\n            return {'name': 'nobody'}\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "a denial of a server's question",
        _REQUESTS,
        "            return None if given is None else False\n",
        "            return {'name': 'nobody'}\n",
        _OF_QUESTIONS,
    ),
    Gate(
        "a bare yes to a form of a server",
        _REQUESTS,
        "return fields if _fits(fields, asked.schema) else False",
        "return fields",
        _OF_QUESTIONS,
    ),
    Gate(
        "an answer that does not fit a server's form", _REQUESTS, "if problem is not None:", "if False:", _OF_QUESTIONS
    ),
    Gate(
        "whose question it is",
        _REQUESTS,
        "        if known is not None:\n            return known\n",
        "",
        _OF_QUESTIONS,
    ),
    Gate(
        "a question that may be anybody's",
        _REQUESTS,
        "return first if all(ctx.ask is first.ask for ctx in self.calls if first is not None) else None",
        "return first",
        _OF_QUESTIONS,
    ),
    Gate(
        "number of a server's questions",
        _REQUESTS,
        "        if self._too_many(ctx):\n",
        "        if False:\n",
        _OF_HOSTILE,
    ),
    # --- what is secret
    Gate(
        "what in a URL is secret",
        "adapters/mcp_client/_options.py",
        'return f"{parts.hostname}{',
        'return made or f"{',
        _OF_CONNECT,
    ),
    # --- what was approved
    Gate(
        "what a tool was said to be when it was approved",
        "approvals/_ledger.py",
        "if grant.definition is not None and grant.definition != request.definition:",
        "if False:",
        _OF_HOSTILE,
    ),
    Gate(
        "hints in what a tool was said to be",
        "adapters/mcp_client/_values.py",
        '"parameters": self.parameters, "hints": hints}',
        '"parameters": self.parameters}',
        _OF_HOSTILE,
    ),
    # --- how much a server may say
    Gate(
        "line of a server without an end",
        "adapters/mcp_client/_command.py",
        'receive_until(b"\\n", most + 1)',
        'receive_until(b"\\n", most**2)',
        _OF_HOSTILE,
    ),
    Gate(
        "answer over HTTP without an end",
        _RESPONSE_SIZE,
        "            if left < 0:\n",
        "            if False:\n",
        _OF_HOSTILE,
    ),
    Gate(
        "event over HTTP without an end",
        "adapters/mcp_client/_connection.py",
        ", max_sse_event_size=limit)",
        ", max_sse_event_size=None)",
        _OF_HOSTILE,
    ),
    Gate("answer over HTTP that is packed", _RESPONSE_SIZE, "        if packed:\n", "        if False:\n", _OF_HOSTILE),
    # --- pins
    Gate(
        "tools that changed wait for a person",
        "adapters/mcp_client/_members.py",
        "self.change = None if remote.kept.pins is None else remote.kept.pins.change_in(listed)",
        "self.change = None",
        _OF_PINS,
    ),
    Gate(
        "a change that is not accepted is asked about",
        "adapters/mcp_client/_members.py",
        "needed if await change.pins.is_accepted(change) else change.reason",
        "needed",
        _OF_PINS,
    ),
    Gate(
        "the texts of a change are not shown before it is accepted",
        "adapters/mcp_client/_members.py",
        "        listed = listed if self.change is None else self.change.shown()\n",
        "",
        _OF_PINS,
    ),
    Gate(
        "the texts of a new tool's schema are not shown before it is accepted",
        "adapters/mcp_client/_pins.py",
        '_without_texts(self.now.get("inputSchema") or {})',
        '(self.now.get("inputSchema") or {})',
        _OF_PINS,
    ),
    Gate(
        "a grant is for one change",
        "adapters/mcp_client/_members.py",
        'self.about.definition() if self.change is None else {"listed": self.change.now}',
        "self.about.definition()",
        _OF_PINS,
    ),
    # --- trust
    Gate(
        "a server that is not trusted does not say what its tools do",
        "adapters/mcp_client/_trust.py",
        'return None if not trusted else "fetch"',
        'return "fetch"',
        _OF_TRUST,
    ),
    Gate(
        "a server that is not trusted does not say that its results are",
        "adapters/mcp_client/_trust.py",
        "    is_own = trusted and",
        "    is_own = True and",
        _OF_TRUST,
    ),
    Gate(
        "a result that its server warns of is untrusted",
        "provenance/_memory.py",
        '"untrusted" if untrusted else labels',
        "labels",
        _OF_TRUST,
    ),
    Gate(
        "a result that its server calls private has no readers",
        "provenance/_memory.py",
        "() if private else readers",
        "readers",
        _OF_TRUST,
    ),
)
