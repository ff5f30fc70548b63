"""The gates of the console: who is let in, from where, and that a request is answered once."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["CONSOLE_GATES"]

_GUARD = ("tests/console/test_guard.py",)
_API = ("tests/console/test_api.py",)

CONSOLE_GATES: tuple[Gate, ...] = (
    Gate(
        "console: what says nothing any more",
        "record/_event_log.py",
        "if last is None:",
        "if True:",
        _API,
    ),
    Gate(
        "console: tries of an address that a header says",
        "serving/http/_checks.py",
        "while entries and any(found in network for network in self._networks):",
        "while entries:",
        _GUARD,
    ),
    Gate(
        "console: an address that the client wrote",
        "serving/http/_checks.py",
        "entries.pop().strip()",
        "entries.pop(0).strip()",
        ("tests/serving/test_http.py",),
    ),
    Gate(
        "console: a header of proxies that the server takes",
        "serving/http/_server.py",
        "proxy_headers=False,",
        "proxy_headers=True,",
        _GUARD,
    ),
    Gate(
        "console: a token beyond loopback",
        "console/_options.py",
        "if self.is_open and not",
        "if False and not",
        _GUARD,
    ),
    Gate(
        "console: the token of a request",
        "console/_guard.py",
        'if visitor is None and path != "/api/login":',
        "if False:",
        _GUARD,
    ),
    Gate(
        "console: which login it is",
        "console/_guard.py",
        'if hmac.compare_digest(signature.encode("utf-8", "replace"), self._signature(holder, signed).encode()):',
        "if True:",
        _GUARD,
    ),
    Gate(
        "console: a login that is over",
        "console/_guard.py",
        "if found is None or int(until) <= time.time() or",
        "if found is None or",
        _GUARD,
    ),
    Gate("console: all logins of a holder, ended", "console/_guard.py", "self._rounds[holder] += 1", "pass", _GUARD),
    Gate(
        "console: who ends the sessions of others",
        "console/_app.py",
        'if visitor.role != "administrator":',
        "if False:",
        _GUARD,
    ),
    Gate(
        "console: a stream that ends with its token",
        "console/_guard.py",
        "return until is None or until > now()",
        "return True",
        _GUARD,
    ),
    Gate(
        "openid: all sessions of a person, ended",
        "console/openid.py",
        "if session.visitor.is_of(person)]",
        "if False]",
        ("tests/console/test_openid.py",),
    ),
    Gate("console: a login that was ended", "console/_guard.py", " or name in self._ended:", ":", _GUARD),
    Gate(
        "console: a cookie out of reach of scripts",
        "console/_app.py",
        'httponly=True, samesite="strict", secure=secure)\n        return response',
        "secure=secure)\n        return response",
        _GUARD,
    ),
    Gate(
        "console: what a browser says of the page",
        "console/_guard.py",
        'if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):',
        "if False:",
        _GUARD,
    ),
    Gate(
        "console: what only the page knows",
        "console/_guard.py",
        "if not known and not hmac",
        "if False and not hmac",
        _GUARD,
    ),
    Gate(
        "console: a cookie is no header",
        "console/_guard.py",
        "(visitor is not None and visitor.by_header)",
        "visitor is not None",
        _GUARD,
    ),
    Gate(
        "console: length of a request",
        "console/_guard.py",
        'if not headers.get("content-length", "").isdecimal() or',
        'if headers.get("content-length", "").isdecimal() and',
        _GUARD,
    ),
    Gate(
        "console: what a plain form can send",
        "console/_guard.py",
        'if headers.get("content-type", "").partition(";")[0].strip() != "application/json":',
        "if False:",
        _GUARD,
    ),
    Gate(
        "console: what every reply says",
        "console/_guard.py",
        "MutableHeaders(scope=message).update(_SECURITY)",
        "pass",
        _GUARD,
    ),
    Gate(
        "console: values as text",
        "console/_app.py",
        ', media_type="text/plain")',
        ")",
        _API,
    ),
    Gate(
        "console: a request is answered once",
        "approvals/_ledger_rules.py",
        '    if entry.state != "pending":\n        raise _answered(entry)\n',
        "",
        _API,
    ),
    Gate(
        "console: edited arguments fit",
        "approvals/_answer_problems.py",
        "return [] if fields is None else [",
        "return [] if fields is None or request.asked_by is None else [",
        _API,
    ),
    Gate(
        "console: hidden values in edited arguments",
        "approvals/_answer_problems.py",
        "if hidden := hidden_paths(changed):",
        "if hidden := list[str]():",
        _API,
    ),
    Gate(
        "console: who answers", "console/_answer_form.py", "if not name or not name.isprintable():", "if False:", _API
    ),
    Gate("console: the name that is recorded", "console/_answer_form.py", "if visitor.name:", "if False:", _GUARD),
)
