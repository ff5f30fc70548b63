"""The gates of a server: whose request it is, what may answer a question, what a client may hand back."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["MCP_GATES"]

_SERVED = "adapters/mcp_server/_tool_server.py"
_SERVER = "adapters/mcp_server/_server.py"
_ASKING = "adapters/mcp_server/_elicitation.py"
_PRINCIPALS = "serving/_principals.py"
_ENTRIES = "serving/_entries.py"
_PENDING = "serving/_principals.py"
_ALIKE = "serving/_open_calls.py"
_TOOLS = "adapters/mcp_server/_tools.py"
_LISTING = "adapters/mcp_server/_replies.py"

_WAITING = "approvals/_suspended_calls.py"

_HERE = "tests/adapters/mcp_server"
_OF_GATES = (f"{_HERE}/test_gates.py",)
_OF_PENDING = (f"{_HERE}/test_pending.py",)
_OF_CALLS = ("tests/serving/test_suspended_calls.py",)
_OF_OPEN_CALLS = ("tests/serving/test_open_calls.py",)
_OF_STORE = (f"{_HERE}/test_store.py",)
_OF_ELICIT = (f"{_HERE}/test_elicit.py",)
_OF_ALWAYS = (f"{_HERE}/test_elicit_always.py",)
_OF_TOOLS = (f"{_HERE}/test_tools.py",)
_OF_PASSING_ON = (f"{_HERE}/test_passing_on.py",)
_OF_ASKING = (f"{_HERE}/test_asking.py",)
_OF_RESOURCES = (f"{_HERE}/test_resources.py",)
_OF_SEARCH = (f"{_HERE}/test_search.py",)

MCP_GATES: tuple[Gate, ...] = (
    # --- whose it is
    Gate(
        "principal of a call over MCP",
        _PRINCIPALS,
        "name, access = _acting.get() or self._caller()",
        "name, access = self._caller()",
        _OF_STORE,
    ),
    Gate(
        "what the token of a request allows",
        _PRINCIPALS,
        "return known if access is None else",
        "return known if True else",
        (f"{_HERE}/test_scopes.py",),
    ),
    Gate("principal in the run of a call over MCP", _PRINCIPALS, "principal=name,", "principal=None,", _OF_STORE),
    Gate(
        "principal in the key of a call over MCP that waits",
        _SERVED,
        '{"principal": principal.name, "arguments"',
        '{"arguments"',
        _OF_STORE,
    ),
    Gate(
        "arguments in the key of a call over MCP that waits",
        _SERVED,
        '"arguments": params.arguments or {}}',
        '"arguments": {}}',
        _OF_STORE,
    ),
    Gate(
        "owner of a request named over MCP",
        _WAITING,
        "(call for call in self._calls.values() if call.principal == principal)",
        "(call for call in self._calls.values())",
        _OF_STORE,
    ),
    Gate("one store for a server over MCP", _PRINCIPALS, "            approvals=pending,\n", "", _OF_STORE),
    Gate(
        "run of a principal",
        _PRINCIPALS,
        "self._known[name] = self._open(name)\n",
        "self._open(name)\n",
        _OF_SEARCH,
    ),
    Gate(
        "tool of a request named over MCP",
        _SERVED,
        "if found is None or found.tool != tool:",
        "if found is None:",
        _OF_GATES,
    ),
    Gate(
        "owner of a request in a file named over MCP",
        _WAITING,
        'where = "principal = ? AND',
        'where = "principal IN (principal, ?) AND',
        _OF_CALLS,
    ),
    Gate(
        "call that waits again when another ends",
        _WAITING,
        "set(stored.requests) != set(requests):\n                return False\n            del self",
        "False:\n                return False\n            del self",
        _OF_STORE,
    ),
    Gate(
        "call in a file that waits again when another ends",
        _WAITING,
        "if stored is None or set(stored.requests) != set(requests):\n                return False\n            delete",
        "if stored is None:\n                return False\n            delete",
        _OF_CALLS,
    ),
    # --- what answers
    Gate(
        "form that may answer only where forms do",
        _SERVED,
        'may_answer = self._options.approve_by == "elicit"',
        "may_answer = True",
        _OF_ELICIT,
    ),
    Gate("plain yes in a form", _ASKING, 'content.get("decision") == "approve"', "True", _OF_ELICIT),
    Gate("form that was closed", _ASKING, 'if result.action == "cancel":', "if False:", _OF_ELICIT),
    Gate(
        "client that can be asked",
        _ASKING,
        'can_fill_in = declares(ctx.session.client_capabilities, "elicit")',
        "can_fill_in = True",
        _OF_ELICIT,
    ),
    Gate("who answered a form", _ASKING, "request.grant(UNVERIFIED, message=reason)", "request.grant()", _OF_ELICIT),
    Gate("yes for further calls of a client", _ASKING, "if longest is None:", "if False:", _OF_ALWAYS),
    Gate(
        "words of a standing grant shown before it counts",
        _ASKING,
        'return (result.content or {}).get("decision") == "allow"',
        "return True",
        _OF_ALWAYS,
    ),
    # --- what a client hands back
    Gate(
        "seal of a state",
        _SERVER,
        "_explain_state, state, self._add_instructions",
        "_explain_state, self._add_instructions",
        _OF_ELICIT,
    ),
    Gate(
        "principal of a state",
        _SERVER,
        "bind_principal=lambda ctx: self.principals.name(),",
        "bind_principal=None,",
        _OF_ELICIT,
    ),
    Gate("expiry of a state", _SERVER, "ttl=self.options.state_seconds", "ttl=600", _OF_ELICIT),
    Gate("service of a state", _SERVER, "default_audience=options.name", "default_audience=None", _OF_ELICIT),
    Gate("time that a call is kept", _SERVED, "found.since + self._options.kept_for <= now()", "False", _OF_STORE),
    Gate(
        "tools that asked at another server",
        _TOOLS,
        "            self._suspending |= await self._suspended.tools()\n",
        "",
        _OF_STORE,
    ),
    Gate(
        "calls beside the questions on a database server",
        _WAITING,
        "return approvals.suspended_calls() if isinstance(approvals, KeepsSuspendedCalls) else",
        "return",
        _OF_STORE,
    ),
    # --- how much is asked
    Gate(
        "questions of one principal",
        _PENDING,
        "if request.id not in pending and len(pending) >= self._limit:",
        "if False:",
        _OF_PENDING,
    ),
    Gate("whose questions are counted", _PENDING, "if other.principal == self._principal and", "if", _OF_PENDING),
    Gate("age of questions that are counted", _PENDING, " and other.created_at > since}", "}", _OF_PENDING),
    Gate("forms among the questions", _PENDING, "            self._forms.add(request.id)\n", "", _OF_PENDING),
    Gate(
        "a store that cannot be counted", _PENDING, "if not isinstance(store, ListsRequests):", "if False:", _OF_PENDING
    ),
    Gate(
        "equal calls",
        _ALIKE,
        "lock = self._locks.setdefault(key, asyncio.Lock())",
        "lock = asyncio.Lock()",
        _OF_PENDING,
    ),
    Gate(
        "equal calls that need no answer",
        _ALIKE,
        "            self.land()\n\n    def",
        "            pass\n\n    def",
        _OF_PENDING,
    ),
    # --- the rest
    Gate("hook errors over MCP", _PRINCIPALS, 'hook_errors="fail",', "", _OF_TOOLS),
    Gate("tools that are listed", _ENTRIES, "if name in allowed]", "]", _OF_TOOLS),
    Gate(
        "availability of what is listed",
        _ENTRIES,
        "return await is_available(entry, ctx) or not entry.skip_unavailable",
        "return True",
        _OF_TOOLS,
    ),
    Gate(
        "promise of an output schema",
        _LISTING,
        "        if self._checker is None:\n",
        "        if True:\n",
        _OF_TOOLS,
    ),
    Gate(
        "hooks that have not seen all of a server's result",
        "adapters/mcp_server/_replies.py",
        "    if entry.post or entry.runners or is_others:\n",
        "    if is_others:\n",
        _OF_PASSING_ON,
    ),
    Gate(
        "provenance that has not seen all of a server's result",
        "adapters/mcp_server/_tools.py",
        "sees_all = not run.features and not self.pipeline",
        "sees_all = not self.pipeline",
        _OF_PASSING_ON,
    ),
    Gate(
        "time that a schema takes to be checked",
        "jsonschema/_bounded.py",
        '    "pattern": _check_pattern,\n',
        "",
        (f"{_HERE}/test_tools.py",),
    ),
    # --- what a tool asks its client, and what is read
    Gate(
        "what the host lets a tool ask its client",
        "adapters/mcp_server/_client_link.py",
        "        if not lets_through(self._policy, feature):\n",
        "        if False:\n",
        _OF_ASKING,
    ),
    Gate(
        "calls of one principal that wait for their client",
        "serving/_open_calls.py",
        "self._counts[principal, kind] >= limit.per_principal or ",
        "",
        _OF_ASKING,
    ),
    Gate(
        "open calls of all principals",
        "serving/_open_calls.py",
        " or self._counts[None, kind] >= limit.total",
        "",
        _OF_OPEN_CALLS,
    ),
    Gate(
        "principal of an open call",
        "serving/_open_calls.py",
        "return self._calls.get(principal, {}).get(id)",
        "return next((calls[id] for calls in self._calls.values() if id in calls), None)",
        _OF_OPEN_CALLS,
    ),
    Gate(
        "end of an open call whose time is over",
        "serving/_open_calls.py",
        "call_later(max(0.0, seconds), self.forget, call)",
        "call_later(max(0.0, seconds), self.take, call)",
        _OF_OPEN_CALLS,
    ),
    Gate(
        "open calls of another owner",
        "serving/_open_calls.py",
        " for call in calls.values() if call.owner is owner]",
        " for call in calls.values()]",
        _OF_OPEN_CALLS,
    ),
    Gate(
        "state of a call that asks, used once",
        "adapters/mcp_server/_client_link.py",
        "        self._calls.take(call)  # the state was used\n",
        "",
        _OF_ASKING,
    ),
    Gate(
        "kind of an answer to what a tool asks",
        "serving/_open_calls.py",
        " or not isinstance(response, question.accepts)",
        "",
        _OF_ASKING,
    ),
    Gate(
        "trust in what a client answers",
        "tools/_call_client.py",
        "        self._give_to_features([*sampled.content])\n",
        "",
        ("tests/pipeline/test_call_client.py",),
    ),
    Gate(
        "resources that a principal may not read",
        "adapters/mcp_server/_offers.py",
        "    if run.available is not None and entry.name not in run.available:\n",
        "    if False:\n",
        _OF_RESOURCES,
    ),
    Gate(
        "subscriptions of one session",
        "adapters/mcp_server/_tool_changes.py",
        "        if len(known.uris) >= MOST_EACH:\n",
        "        if False:\n",
        _OF_RESOURCES,
    ),
    # --- messages
    Gate(
        "arguments with half a character",
        "adapters/mcp_server/_incoming.py",
        "arguments=_odd_arguments(text) if is_altered else None",
        "arguments=None",
        (f"{_HERE}/test_incoming.py",),
    ),
)
