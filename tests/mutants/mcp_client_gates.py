"""The gates around a server's tools: the host's, which nothing that the server says can open."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["MCP_CLIENT_GATES"]

_MEMBER, _MEMBERS = "adapters/mcp_client/_member.py", "adapters/mcp_client/_members.py"
_REMOTE = "adapters/mcp_client/_remote_server.py"
_KEPT = "adapters/mcp_client/_kept_connection.py"
_QUESTIONS = "adapters/mcp_client/_questions.py"
_REQUESTS = "adapters/mcp_client/_server_requests.py"
_ROOTS = "adapters/mcp_client/_server_requests.py"
_SAMPLING = "adapters/mcp_client/_server_requests.py"
_RESPONSE_SIZE = "adapters/mcp_client/_messages.py"
_SOURCE = "adapters/mcp_client/_source.py"

_HERE = "tests/adapters/mcp_client"
_OF_ABSENT = (f"{_HERE}/test_absent.py",)
_OF_CONNECT = (f"{_HERE}/test_connect.py",)
_OF_CHANGES = (f"{_HERE}/test_changes.py",)
_OF_PASSING_ON = (f"{_HERE}/test_passing_on.py",)
_OF_QUESTIONS = (f"{_HERE}/test_questions.py",)
_OF_PINS = ("tests/adapters/mcp_client/test_pins.py",)
_OF_TRUST = ("tests/adapters/mcp_client/test_trust.py",)
_OF_FILES = ("tests/cli/test_servers.py",)
_OF_DOUBLES = (f"{_HERE}/test_doubles.py",)
_OF_TIMEOUTS = (f"{_HERE}/test_timeouts.py",)
_OF_MESSAGES = (f"{_HERE}/test_messages.py",)
_OF_IDENTITY = (f"{_HERE}/test_identity.py",)
_OF_HOSTILE = (f"{_HERE}/test_hostile.py",)

MCP_CLIENT_GATES: tuple[Gate, ...] = (
    # --- what a server says of itself
    Gate(
        "approval of a server's tools",
        _MEMBER,
        "needed, change = self._options.needs_approval(",
        "needed, change = False and self._options.needs_approval(",
        _OF_CONNECT,
    ),
    Gate(
        "approval of what a server says is harmless",
        _MEMBER,
        "needed, change = self._options.needs_approval(",
        "needed, change = not self.about.read_only and self._options.needs_approval(",
        _OF_CONNECT,
    ),
    Gate(
        "a server's word that a call can be repeated",
        _MEMBER,
        "                tags=self.tags(),\n",
        "                tags=self.tags(),\n                idempotent=bool(about.idempotent),\n",
        _OF_CONNECT,
    ),
    Gate(
        "a server's instructions",
        _MEMBER,
        "self._remote.instructions if self._options.include_instructions else None",
        "self._remote.instructions",
        _OF_CONNECT,
    ),
    Gate(
        "arguments by the server's schema",
        _MEMBER,
        "            check=argument_checks(about.name, about.parameters),\n",
        "",
        _OF_HOSTILE,
    ),
    Gate(
        "schemas that are fetched",
        "jsonschema/checker.py",
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
    Gate("two things of one name", _SOURCE, "        number_doubles(has)\n", "", _OF_DOUBLES),
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
        "removed = [replace(entry, off=True) for",
        "removed = [replace(entry) for",
        _OF_CHANGES,
    ),
    Gate(
        "a new tool with a name that is taken",
        "toolsets/_members.py",
        "                add(members, entry)\n",
        "                members[entry.name] = entry\n",
        _OF_CHANGES,
    ),
    Gate(
        "the name of a server's tool that a server with a shorter prefix takes",
        "toolsets/_members.py",
        "key=lambda part: (part[0] is not None, -(part[0] or 0))",
        "key=lambda part: part[0] is not None",
        (f"{_HERE}/test_doubles.py",),
    ),
    Gate(
        "the name of a host's tool that a server takes",
        "toolsets/_members.py",
        "key=lambda part: (part[0] is not None, -(part[0] or 0))",
        "key=lambda part: -(part[0] or 0)",
        (f"{_HERE}/test_doubles.py",),
    ),
    Gate(
        "a tool for pages alone, which is no model's",
        _MEMBERS,
        'return not is_for_apps({"_meta": self._listed.meta})',
        "return True",
        ("tests/adapters/mcp_server/test_nothing_lost.py",),
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
        "gateway/_server.py",
        "        approval=approval,\n",
        "        approval=False,\n",
        ("tests/gateway/test_servers.py",),
    ),
    # --- servers that are not there
    Gate("a server that has to be there", _SOURCE, "if fault is not None and required:", "if False:", _OF_ABSENT),
    Gate(
        "pauses between two tries of a server",
        _KEPT,
        "        if pause > _SHORT_PAUSE:  # also where it was there, and lost again and again\n",
        "        if False:\n",
        _OF_ABSENT,
    ),
    # --- what a server asks
    Gate(
        "a question of the server that nobody hears",
        _QUESTIONS,
        'return PersonAnswer("decline", {})',
        'return PersonAnswer("accept", {"name": "nobody"})',
        _OF_QUESTIONS,
    ),
    Gate(
        "a denial of a server's question",
        _REQUESTS,
        'response = {"accept": answer.fields, "cancel": None}.get(answer.action, False)',
        'response = {"name": "nobody"}',
        _OF_QUESTIONS,
    ),
    Gate(
        "a bare yes to a form of a server",
        _QUESTIONS,
        'return "; ".join(map(str, misfits(asked.schema, fields)))',
        'return ""',
        _OF_QUESTIONS,
    ),
    Gate(
        "an answer that does not fit a server's form", _QUESTIONS, "if problem is not None:", "if False:", _OF_QUESTIONS
    ),
    Gate("a page that is no page", _REQUESTS, "unsafe(url) or oversize", "oversize", _OF_PASSING_ON),
    Gate("size of a server's form", _REQUESTS, "        if problem:\n", "        if False:\n", _OF_PASSING_ON),
    Gate(
        "whose question it is",
        _REQUESTS,
        "        if known is not None:  # it may have ended meanwhile\n"
        "            return next((ctx for ctx in self.calls if ctx is known), None)\n",
        "",
        _OF_QUESTIONS,
    ),
    Gate(
        "a question after the call",
        _REQUESTS,
        "            return next((ctx for ctx in self.calls if ctx is known), None)\n",
        "            return known\n",
        _OF_PASSING_ON,
    ),
    Gate(
        "a question that may be anybody's",
        _REQUESTS,
        "if last is None or not all(_is_of_same_party(ctx, last) for ctx in self.calls):",
        "if last is None:",
        _OF_PASSING_ON,
    ),
    Gate(
        "number of a server's questions",
        _REQUESTS,
        "        if self._too_many(ctx):\n            return types.ElicitResult",
        "        if False:\n            return types.ElicitResult",
        _OF_HOSTILE,
    ),
    Gate(
        "what a server may ask a client for",
        _REQUESTS,
        "if link is None or not self._options.may_ask(kind):",
        "if link is None:",
        _OF_PASSING_ON,
    ),
    Gate(
        "other servers' context in a request to a model",
        _SAMPLING,
        '    shapes.pop("includeContext", None)\n',
        "",
        _OF_PASSING_ON,
    ),
    Gate("the source of a request to a model", _SAMPLING, '    shapes["_meta"] = {', "    _ = {", _OF_PASSING_ON),
    Gate(
        "approval of a request to a model",
        _REQUESTS,
        "            if self._options.approve_sampling:\n",
        "            if False:\n",
        _OF_PASSING_ON,
    ),
    Gate(
        "folders that a server may know of",
        _REQUESTS,
        "found if allowed is None else common_roots(found, allowed)",
        "found",
        _OF_PASSING_ON,
    ),
    Gate("the path of a folder", _ROOTS, "posixpath.normpath(", "(", _OF_PASSING_ON),
    Gate(
        "number of a server's log lines",
        _REQUESTS,
        "        if count > _MAX_LINES + 1:\n",
        "        if False:\n",
        _OF_PASSING_ON,
    ),
    Gate(
        "a standing yes to a server's question",
        "calls/_approval.py",
        "        if self.asked_by is not None:\n            raise",
        "        if False:\n            raise",
        _OF_QUESTIONS,
    ),
    # --- pins of what is no tool
    Gate(
        "a prompt that has changed",
        _REMOTE,
        "        if not accepted:\n            self._require_known(name)\n",
        "",
        _OF_PINS,
    ),
    Gate(
        "a resource that has changed",
        _MEMBERS,
        'listed = self._known("resource", listed)',
        "listed = listed",
        _OF_PINS,
    ),
    Gate(
        "a template that has changed",
        _MEMBERS,
        'listed = self._known("template", listed)',
        "listed = listed",
        _OF_PINS,
    ),
    Gate(
        "a prompt that has changed, to a client",
        _MEMBERS,
        'listed = self._known("prompt", listed)',
        "listed = listed",
        _OF_PINS,
    ),
    Gate(
        "instructions that have changed",
        _REMOTE,
        "self.kept.instructions if self.kept.pins is None else self.kept.pins.known_instructions()",
        "self.kept.instructions",
        _OF_PINS,
    ),
    Gate(
        "who accepts what a server changed",
        "cli/_pins.py",
        "        by = proven_approver(name, database)\n",
        '        by = "anybody"\n',
        ("tests/cli/test_pins.py",),
    ),
    Gate(
        "who forgets a server",
        "cli/_pins.py",
        "        proven_approver(name, database)\n        known",
        "        known",
        ("tests/cli/test_pins.py",),
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
        "approvals/_fit.py",
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
    Gate(
        "the server's description in what a tool was said to be",
        "adapters/mcp_client/_values.py",
        '"kind": self.kind, **texts,',
        '"kind": self.kind,',
        _OF_HOSTILE,
    ),
    Gate(
        "the environment of a command in what tells a server from others",
        "adapters/mcp_client/_options.py",
        '"env": env,',
        '"env": {},',
        _OF_IDENTITY,
    ),
    Gate(
        "the folder of a command in what tells a server from others",
        "adapters/mcp_client/_options.py",
        '"cwd": folder}',
        '"cwd": None}',
        _OF_IDENTITY,
    ),
    Gate(
        "the server that a client of the SDK is for",
        "adapters/mcp_client/_options.py",
        "return target_identity(target.server)",
        'return {"object": server_name(target)}',
        _OF_IDENTITY,
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
        "            if rest < 0:\n",
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
    # --- what a file says
    Gate(
        "a file's policy for values of others",
        "cli/_mcp_server.py",
        "    policy, approvals = file.policy, ",
        "    policy, approvals = None, ",
        _OF_FILES,
    ),
    Gate(
        "a file's limits",
        "cli/_mcp_server.py",
        "        limits=limits,\n",
        "",
        _OF_FILES,
    ),
    Gate(
        "defaults of a file for each server",
        "gateway/_file.py",
        "merged: dict[str, Any] = {name: value for name, value in defaults.items() if name in fields} | own_fields",
        "merged: dict[str, Any] = {**own_fields}",
        ("tests/gateway/test_options.py",),
    ),
    Gate(
        "a server that is left out of the record",
        "record/_sinks.py",
        "        if self._wants(event.tool):\n",
        "        if True:\n",
        _OF_FILES,
    ),
    # --- pins
    Gate(
        "tools that changed wait for a person",
        _MEMBER,
        "self.change = None if pins is None else pins.change_in(kind, listed)",
        "self.change = None",
        _OF_PINS,
    ),
    Gate(
        "a change that is not accepted is asked about",
        _MEMBER,
        "needed if await change.pins.is_accepted(change) else change.reason",
        "needed",
        _OF_PINS,
    ),
    Gate(
        "the texts of a change are not shown before it is accepted",
        _MEMBER,
        "return listed if self.change is None else self.change.shown()\n",
        "return listed\n",
        _OF_PINS,
    ),
    Gate(
        "the texts of a new tool's schema are not shown before it is accepted",
        "adapters/mcp_client/_listing.py",
        '_without_texts(self.now.get("inputSchema") or {})',
        '(self.now.get("inputSchema") or {})',
        _OF_PINS,
    ),
    Gate(
        "a grant is for one change",
        _MEMBER,
        'self.about.definition() if self.change is None else {"listed": self.change.now}',
        "self.about.definition()",
        _OF_PINS,
    ),
    # --- trust
    Gate(
        "a server that is not trusted does not say what its tools do",
        "adapters/mcp_client/_values.py",
        'return None if not trusted else "fetch"',
        'return "fetch"',
        _OF_TRUST,
    ),
    Gate(
        "a server that is not trusted does not say that its results are",
        "adapters/mcp_client/_values.py",
        "    is_own = trusted and",
        "    is_own = True and",
        _OF_TRUST,
    ),
    Gate(
        "a result that its server warns of is untrusted",
        "provenance/_reading.py",
        '"untrusted" if untrusted else labels',
        "labels",
        _OF_TRUST,
    ),
    Gate(
        "a result that its server calls private has no readers",
        "provenance/_reading.py",
        "() if private else readers",
        "readers",
        _OF_TRUST,
    ),
    # --- how a server may answer
    Gate(
        "a call without an answer",
        _REMOTE,
        "        if self._timeout is None:\n            yield None",
        "        if True:\n            yield None",
        _OF_TIMEOUTS,
    ),
    Gate(
        "an answer that cannot be read",
        "adapters/mcp_client/_messages.py",
        "    if number is None or not is_answer(text):\n",
        "    if True:\n",
        _OF_MESSAGES,
    ),
    Gate(
        "what takes the place of an answer",
        "adapters/mcp_client/_messages.py",
        '    return not is_an_answer or str(message.id) == str(getattr(asked, "id", None))\n',
        "    return True\n",
        _OF_MESSAGES,
    ),
    Gate(
        "progress that ends a connection",
        "adapters/mcp_client/_pace.py",
        'if method == _PROGRESS and not _is_finite(params.get("progress")):',
        "if False:",
        _OF_MESSAGES,
    ),
    Gate(
        "a storm of what nobody asked for",
        "adapters/mcp_client/_pace.py",
        "        has_room = self._paces[kind].has_room()\n",
        "        has_room = True\n",
        (f"{_HERE}/test_pace.py",),
    ),
    Gate(
        "a stream that is opened again without a pause",
        "adapters/mcp_client/_messages.py",
        "min(max(milliseconds, _SHORTEST), _LONGEST)",
        "milliseconds",
        _OF_MESSAGES,
    ),
    Gate(
        "a refusal of a call that is gone on with",
        "adapters/mcp_client/_messages.py",
        " and _IS_CONTINUED.search(request.content) is None",
        "",
        (f"{_HERE}/test_unknown_sessions.py",),
    ),
    Gate(
        "statuses by which nothing ran",
        "adapters/mcp_client/_messages.py",
        "response.status_code in _NOTHING_RAN",
        "response.status_code >= 400",
        (f"{_HERE}/test_unknown_sessions.py",),
    ),
    Gate(
        "a call whose error speaks of a session",
        _REMOTE,
        "if error.message == UNKNOWN_SESSION:",
        'if "session" in error.message:',
        (f"{_HERE}/test_unknown_sessions.py",),
    ),
    Gate(
        "a task whose id comes after its call was cancelled",
        "adapters/mcp_client/_task_calls.py",
        "        return self._everything if is_newer else self.begins_in(session)\n",
        "        return False\n",
        (f"{_HERE}/test_tasks.py",),
    ),
)
