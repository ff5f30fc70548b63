"""The gates of the resource server of OAuth: which tokens are good, and what is never done because of one."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["OAUTH_GATES"]

_CHECK = "serving/oauth/_token_check.py"
_TOKEN = "serving/oauth/_authorization_server.py"
_KEYS = "serving/oauth/_token_check.py"
_METADATA = "serving/oauth/_fetch.py"
_FETCH = "serving/oauth/_fetch.py"
_SERVER = "serving/oauth/_authorization_server.py"
_SCOPES = "adapters/mcp_server/_server.py"
_BEARER = "adapters/mcp_server/_bearer.py"

_TESTS = ("tests/serving/oauth/test_token_check.py",)
_OF_SCOPES = ("tests/adapters/mcp_server/test_scopes.py",)
_OVER_HTTP = ("tests/adapters/mcp_server/test_oauth.py",)

_AUDIENCE = """        if not is_for(claims, self._audiences):
            raise TokenRefused("the token is for another audience")
"""

OAUTH_GATES: tuple[Gate, ...] = (
    # --- a token
    Gate("audience of a JWT", _CHECK, f"{_AUDIENCE}        return claims", "        return claims", _TESTS),
    Gate("audience of an answer", _CHECK, f"{_AUDIENCE}        since", "        since", _TESTS),
    Gate(
        "audience that is the whole of it",
        _TOKEN,
        'resource_name.removesuffix("/") in wanted',
        "resource_name.startswith(tuple(wanted))",
        _TESTS,
    ),
    Gate("issuer of a JWT", _CHECK, "                issuer=self._server.issuer,\n", "", _TESTS),
    Gate(
        "issuer of a token that is asked about",
        _CHECK,
        'if claims.get("iss", self._server.issuer) != self._server.issuer:',
        "if False:",
        _TESTS,
    ),
    Gate("claims that a JWT has to have", _CHECK, '"require": ["exp", "iss", "aud"], ', "", _TESTS),
    Gate("algorithm of a JWT", _CHECK, "if algorithm not in self._server.algorithms:", "if False:", _TESTS),
    Gate(
        "algorithms that share no secret",
        _SERVER,
        "wrong = [name for name in self.algorithms if name not in ALGORITHMS]",
        "wrong = []",
        _TESTS,
    ),
    Gate(
        "kind of a JWT",
        _CHECK,
        "if (kind.lower() if isinstance(kind, str) else kind) not in self.types:",
        "if False:",
        _TESTS,
    ),
    Gate("length of a JWT", _CHECK, "if len(token) > _LONGEST:", "if False:", _TESTS),
    Gate("token that is bound to a key", _TOKEN, 'if "cnf" in claims:', "if False:", _TESTS),
    Gate("token that is not valid any more", _CHECK, 'if claims.get("active") is not True:', "if False:", _TESTS),
    Gate("token that is not valid yet", _CHECK, "if since > time.time() + LEEWAY:", "if False:", _TESTS),
    Gate(
        "how long an answer holds", _CHECK, "return answer if self._clock() < until else None", "return answer", _TESTS
    ),
    Gate(
        "parts of a principal's name",
        _TOKEN,
        '{_escaped(subject)};iss={_escaped(server.issuer)}"',
        '{subject};iss={_escaped(server.issuer)}"',
        _TESTS,
    ),
    Gate(
        "scopes of the claims",
        _TOKEN,
        "access=Access(_scopes(claims), ",
        'access=Access({"trips:write", "mcp"}, ',
        _OVER_HTTP,
    ),
    # --- keys, and what is asked
    Gate("use of a key", _KEYS, 'if key.get("use", "sig") != "sig" or ', "if ", _TESTS),
    Gate("size of a key", _KEYS, 'if key["kty"] == "RSA" and bits < _RSA_BITS:', "if False:", _TESTS),
    Gate("how often keys are read", _KEYS, "if self._clock() - self._tried_at < pause:", "if False:", _TESTS),
    Gate(
        "age of keys",
        _KEYS,
        "return self._keys if self._clock() - self._read_at < _STALE else None",
        "return self._keys",
        _TESTS,
    ),
    Gate(
        "issuer of the metadata", _METADATA, 'if (issuer_found := found.get("issuer")) != issuer:', "if False:", _TESTS
    ),
    Gate("address of the keys", _METADATA, "checked_url(name, address)", "pass", _TESTS),
    Gate("length of an answer", _FETCH, "if len(body) > _BYTES:", "if False:", _TESTS),
    Gate(
        "http to other machines",
        _SERVER,
        'parts.scheme == "http" and is_loopback(host)',
        'parts.scheme == "http"',
        _TESTS,
    ),
    # --- over HTTP
    Gate("token for tools", _BEARER, 'found.model_copy(update={"token": ""})', "found", _OVER_HTTP),
    Gate(
        "scopes that a call is told of",
        _BEARER,
        "needed = frozenset[str]() if body is None else await _scopes(body, of_request)",
        "needed = frozenset()",
        _OVER_HTTP,
    ),
    Gate("scopes of what is no tool", _SCOPES, "            if missing:\n", "            if False:\n", _OF_SCOPES),
    Gate(
        "scopes of every reader of a URI",
        "adapters/mcp_server/_offers.py",
        "[offered.entry for offered in self._named(uri)]",
        "[offered.entry for offered in self._named(uri)][:1]",
        _OF_SCOPES,
    ),
    Gate(
        "scopes of a task",
        _SCOPES,
        "        return served.scopes_of_tool(task.params.name)",
        "        return {}",
        _OF_SCOPES,
    ),
    Gate(
        "tokens that cannot be checked",
        _BEARER,
        'refused = JSONResponse(why, 503, {"retry-after": str(_RETRY_SECONDS)})',
        "found = AccessToken(token='', client_id='x', scopes=[])",
        _OVER_HTTP,
    ),
)
