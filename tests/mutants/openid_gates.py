"""Gates of the login with OpenID Connect, with the tests that hold each."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["OPENID_GATES"]

_FLOW, _LOGIN, _GUARD = "serving/oauth/_openid.py", "console/openid.py", "console/_guard.py"
_OF_LOGIN, _OF_TOKENS = ("tests/console/test_openid.py",), ("tests/serving/oauth/test_openid.py",)
_OF_ONE_PERSON = ("tests/serving/oauth/test_same_person.py",)

OPENID_GATES: tuple[Gate, ...] = (
    Gate(
        "openid: the state of a login",
        _FLOW,
        'if not hmac.compare_digest(answer.get("state", "").encode(), departure.state.encode()):',
        "if False:",
        _OF_LOGIN,
    ),
    Gate(
        "openid: the issuer of an answer",
        _FLOW,
        'if answer.get("iss", None if needs_issuer else self.provider.issuer) != self.provider.issuer:',
        "if False:",
        _OF_LOGIN,
    ),
    Gate(
        "openid: an email that is not verified",
        "serving/oauth/_authorization_server.py",
        'if claim == "email" and claims.get("email_verified") is not True:',
        "if False:",
        _OF_LOGIN,
    ),
    Gate(
        "openid: a person who could be two, at a provider of pairwise subjects",
        _FLOW,
        'if is_alone and (await self._metadata()).get("subject_types_supported") == ["pairwise"]:',
        "if False:",
        _OF_TOKENS,
    ),
    Gate(
        "openid: other ids of a person",
        _FLOW,
        "known for known in known_ids(claims, self.provider.issuer) if known != id",
        "known for known in ()",
        _OF_ONE_PERSON,
    ),
    Gate(
        "openid: other ids of the one who asks",
        "approvers/_rule.py",
        "() if access is None else access.ids",
        "()",
        _OF_ONE_PERSON,
    ),
    Gate(
        "openid: other ids of one who approves",
        "approvals/_required.py",
        "for known in (identity.id, *identity.aliases) for id",
        "for known in (identity.id,) for id",
        _OF_ONE_PERSON,
    ),
    Gate(
        "openid: a login is taken once",
        _LOGIN,
        "self._away.pop(ticket, (0.0, None))",
        "self._away.get(ticket, (0.0, None))",
        _OF_LOGIN,
    ),
    Gate(
        "openid: a login that takes too long",
        _LOGIN,
        "if departure is None or until <= self._clock():",
        "if departure is None:",
        _OF_LOGIN,
    ),
    Gate("openid: who is in no group", _LOGIN, "        if role is None:\n", "        if False:\n", _OF_LOGIN),
    Gate(
        "openid: a session that is over",
        _LOGIN,
        "if found is not None and found.ends <= self._clock():",
        "if False:",
        _OF_LOGIN,
    ),
    Gate("openid: a session that was ended", _LOGIN, "self._sessions.pop(cookie, None)", "pass", _OF_LOGIN),
    Gate("openid: the nonce of a login", _FLOW, "if nonce is not None and not (", "if False and not (", _OF_TOKENS),
    Gate(
        "openid: a token for several applications",
        _FLOW,
        'if audience not in (client, [client]) and claims.get("azp") != client:',
        "if False:",
        _OF_TOKENS,
    ),
    Gate(
        "openid: a token of another application",
        _FLOW,
        'if claims.get("azp", client) != client:',
        "if False:",
        _OF_TOKENS,
    ),
    Gate(
        "openid: an access token is no login",
        _FLOW,
        '"ID token", ("jwt", None)',
        '"ID token", ("jwt", "at+jwt", None)',
        _OF_TOKENS,
    ),
)
