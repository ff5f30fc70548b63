"""The gates of a server over HTTP: who may come, by which name, and how much at a time."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["HTTP_GATES"]

_CHECKS = "serving/http/_checks.py"
_TOKENS = "serving/http/_checks.py"
_APP = "adapters/mcp_server/_http.py"
_CALLERS = "adapters/mcp_server/_http.py"
_SESSIONS = "adapters/mcp_server/_session_limit.py"
_OPTIONS = "adapters/mcp_server/_http_options.py"
_TESTS = ("tests/adapters/mcp_server/test_http.py",)

_OF_SESSIONS = ("tests/adapters/mcp_server/test_sessions.py",)

HTTP_GATES: tuple[Gate, ...] = (
    Gate(
        "audience of a token",
        _CALLERS,
        "auth.validate_token_resource is not False",
        "auth.validate_token_resource",
        ("tests/adapters/mcp_server/test_http.py",),
    ),
    Gate(
        "token over HTTP",
        _APP,
        "endpoint = BearerAuth(endpoint, callers.check, callers.challenge)",
        "pass",
        _TESTS,
    ),
    Gate(
        "whose token it is",
        _TOKENS,
        "if hmac.compare_digest(digest, known):",
        "if True:",
        _TESTS,
    ),
    Gate(
        "scopes of a token",
        "adapters/mcp_server/_bearer.py",
        "if found is not None and not {*self._challenge.scopes}.issubset(found.scopes):",
        "if False:",
        _TESTS,
    ),
    Gate(
        "no listening beyond this machine without tokens",
        _OPTIONS,
        "if reachable and not self.known_callers:",
        "if False:",
        _TESTS,
    ),
    Gate("length of a token", _TOKENS, "len(token) < _SHORTEST", "False", _TESTS),
    Gate("Host of a request", _CHECKS, "if len(hosts) != 1 or not self._site.has_name(hosts[0]):", "if False:", _TESTS),
    Gate(
        "addresses of other machines in Host",
        _CHECKS,
        "(_is_address(name) and (not self.is_local or is_loopback(name)))",
        "_is_address(name)",
        _TESTS,
    ),
    Gate(
        "Origin of a request",
        _CHECKS,
        'if not all(self._site.allows(origin, hosts[0]) for origin in headers.getlist("origin")):',
        "if False:",
        _TESTS,
    ),
    Gate(
        "scheme of an Origin",
        _CHECKS,
        'if page.scheme not in ("http", "https") or page.path or page.query:',
        "if False:",
        _TESTS,
    ),
    Gate(
        "pages of this machine on a server for others",
        _CHECKS,
        "local_pages and self.is_local",
        "local_pages",
        ("tests/serving/test_http.py",),
    ),
    Gate(
        "length of a request that is said twice",
        _CHECKS,
        'if "content-length" in headers and "transfer-encoding" in headers:',
        "if False:",
        _TESTS,
    ),
    Gate("one token for each", _TOKENS, "if len(set(tokens.values())) < len(tokens):", "if False:", _TESTS),
    Gate("number of headers", _CHECKS, "if len(headers.raw) > self._max_headers:", "if False:", _TESTS),
    Gate("size of a body", _APP, "max_request_body_size=options.max_body,", "", _TESTS),
    Gate(
        "number of sessions",
        _SESSIONS,
        "elif open_now.total() >= self._total:",
        "elif False:",
        _OF_SESSIONS,
    ),
    Gate("time of a body", _CHECKS, "async with asyncio.timeout_at(deadline):", "if True:", _TESTS),
    Gate("end of open streams", _CHECKS, "            stream.cancel()\n", "            pass\n", _TESTS),
    Gate(
        "sessions of one principal",
        _SESSIONS,
        "if open_now[principal] >= self._limit:",
        "if False:",
        _OF_SESSIONS,
    ),
    Gate(
        "sessions with an open request",
        _SESSIONS,
        "return not self.requests and not self.calls",
        "return not self.calls",
        _OF_SESSIONS,
    ),
    Gate(
        "sessions with a running call",
        _SESSIONS,
        "return not self.requests and not self.calls",
        "return not self.requests",
        _OF_SESSIONS,
    ),
    Gate(
        "whose sessions give way to a principal's",
        _SESSIONS,
        "[key for key in idle if self._sessions[key].principal == principal]",
        "idle",
        _OF_SESSIONS,
    ),
    Gate(
        "whose sessions give way where all are too many",
        _SESSIONS,
        "self._longest_idle(self._of_most(idle))",
        "self._longest_idle(idle)",
        _OF_SESSIONS,
    ),
    Gate(
        "clients that do not read on",
        "serving/http/_server.py",
        "        super().pause_writing()\n        self._watch_reader()\n",
        "        super().pause_writing()\n",
        _TESTS,
    ),
)
