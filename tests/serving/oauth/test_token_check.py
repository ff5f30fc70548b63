"""Whose tokens are accepted, and whose are not, with a real authorization server on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.serving.oauth.login import EC, ED, OTHER_RSA, RSA, WEAK_RSA, Login, login, public
from toolcrib.serving.oauth import (
    ALGORITHMS,
    AuthorizationServer,
    AuthorizationServerUnavailable,
    CheckedToken,
    TokenCheck,
    TokenRefused,
    token_check,
)

HERE = "https://tools.example.org/mcp"


@pytest.fixture
def server() -> Iterator[Login]:
    with login() as made:
        yield made


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def checking(server: Login, clock: Clock | None = None, **options: Any) -> AsyncIterator[TokenCheck]:
    check = token_check(AuthorizationServer(server.issuer, **options), HERE, clock=clock or time.monotonic)
    try:
        yield check
    finally:
        await check.close()


async def refusal(check: TokenCheck, token: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        await check.check(token)
    assert token not in str(caught.value)
    return str(caught.value)


# --- tokens that are signed


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256"), (ED, "EdDSA")])
async def test_a_token_of_the_issuer_is_accepted(server: Login, key: Any, algorithm: str) -> None:
    async with checking(server) as check:
        checked = await check.check(server.token(HERE, key, algorithm, scope="mcp trips:write", groups=["a"]))

    assert checked.principal == f"ann;iss={server.issuer}"
    assert (checked.client_id, checked.subject, checked.issuer) == ("app", "ann", server.issuer)
    assert checked.access.scopes == {"mcp", "trips:write"}
    assert checked.access.claims["groups"] == ("a",)


@pytest.mark.parametrize("kind", [None, "JWT", "at+jwt", "application/at+jwt", "AT+JWT"])
@pytest.mark.parametrize("audience", [HERE, f"{HERE}/", ["https://other.example", HERE]])
async def test_kinds_and_audiences_that_are_accepted(server: Login, kind: Any, audience: Any) -> None:
    async with checking(server) as check:
        assert (await check.check(server.token(audience, header={"typ": kind}))).subject == "ann"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "audience": ({"audience": "https://other.example/mcp"}, "another audience"),
    "audience beginning alike": ({"audience": f"{HERE}.evil.example"}, "another audience"),
    "audience of the client": ({"audience": "app"}, "another audience"),
    "no audience": ({"audience": None}, "no claim aud"),
    "audience of no text": ({"audience": 3}, "not a valid JWT|another audience"),
    "empty audience": ({"audience": []}, "another audience"),
    "issuer": ({"audience": HERE, "iss": "https://login.evil.example"}, "another issuer"),
    "issuer with a slash": ({"audience": HERE, "iss": "SLASH"}, "another issuer"),
    "no issuer": ({"audience": HERE, "iss": None}, "no claim iss"),
    "expired": ({"audience": HERE, "exp": time.time() - 60}, "has expired"),
    "no end": ({"audience": HERE, "exp": None}, "no claim exp"),
    "not yet": ({"audience": HERE, "nbf": time.time() + 36_000}, "not valid yet"),
    "issued in the future": ({"audience": HERE, "iat": time.time() + 36_000}, "not valid yet"),
    "id token": ({"audience": HERE, "header": {"typ": "logout+jwt"}}, "not an access token"),
    "critical": ({"audience": HERE, "header": {"crit": ["b65"], "b65": 1}}, "not a JWT"),
    "nobody's": ({"audience": HERE, "sub": None, "client_id": None}, "neither a subject nor a client"),
    "bound to a key": ({"audience": HERE, "cnf": {"jkt": "x"}}, "bound to a key"),
    "long name": ({"audience": HERE, "sub": "x" * 600}, "too long a name"),
    "another key": ({"audience": HERE, "key": OTHER_RSA}, "not signed with a key"),
    "another key with a known id": ({"audience": HERE, "key": OTHER_RSA, "header": {"kid": "rsa"}}, "not signed"),
    "without an id, another key": ({"audience": HERE, "key": OTHER_RSA, "header": {"kid": None}}, "not signed"),
    "id of a key of another kind": ({"audience": HERE, "header": {"kid": "ec"}}, "not signed"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_token_that_is_not_good_is_refused(server: Login, name: str) -> None:
    given, said = BAD[name]
    given = {**given, **({"iss": f"{server.issuer}/"} if given.get("iss") == "SLASH" else {})}

    async with checking(server) as check:
        why = await refusal(check, server.token(**given))

    assert any(part in why for part in said.split("|"))


def unsigned(server: Login, algorithm: str) -> str:
    parts = server.token(HERE).split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "kid": "rsa"}).encode()).decode().rstrip("=")
    return f"{head}.{parts[1]}."


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "RS256", "RS1"])
async def test_a_token_without_a_signature_is_refused(server: Login, algorithm: str) -> None:
    async with checking(server) as check:
        await refusal(check, unsigned(server, algorithm))


async def test_a_public_key_is_no_shared_secret(server: Login) -> None:
    pem = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(server.token(HERE), options={"verify_signature": False})
    head, body = {"alg": "HS256", "kid": "rsa"}, json.dumps(claims).encode()
    signing = b".".join(base64.urlsafe_b64encode(p).rstrip(b"=") for p in (json.dumps(head).encode(), body))
    made = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    forged = b".".join([signing, base64.urlsafe_b64encode(made.sign(signing, pem)).rstrip(b"=")]).decode()
    shared = {"kty": "oct", "kid": "rsa", "k": base64.urlsafe_b64encode(pem).decode()}

    async with checking(server) as check:
        assert "not accepted" in await refusal(check, forged)
    server.keys = [shared]
    async with checking(server) as check:
        assert "not accepted" in await refusal(check, forged)
    with pytest.raises(ValueError, match="HS256 is not: no secret is shared"):
        AuthorizationServer("https://login.example.org", algorithms=["HS256"])


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "...", "e30.e30.e30", "\x00.\x00.\x00", "é.é.é", f"{'x' * 17_000}", "W1tbW1tb" * 900]
)
async def test_what_is_no_token_is_refused_before_anybody_is_asked(server: Login, token: str) -> None:
    async with checking(server) as check:
        await refusal(check, token)

    assert not server.asked


async def test_a_long_token_is_refused_before_anybody_is_asked(server: Login) -> None:
    async with checking(server) as check:
        assert "longer than 16384 characters" in await refusal(check, server.token(HERE, groups="x" * 16_000))

    assert not server.asked


@pytest.mark.parametrize("field", ["jku", "x5u", "jwk", "x5c"])
async def test_nothing_that_a_token_names_is_followed(server: Login, field: str) -> None:
    own = public(OTHER_RSA, "own")
    with login() as evil:
        evil.keys = [own]
        value = {"jku": f"{evil.url}/jwks", "x5u": f"{evil.url}/jwks", "jwk": own, "x5c": ["x"]}[field]
        token = server.token(HERE, OTHER_RSA, header={field: value, "kid": "own"})
        other_issuer = server.token(HERE, OTHER_RSA, iss=evil.issuer, header={"kid": "own"})
        async with checking(server) as check:
            for one in (token, other_issuer):
                await refusal(check, one)

        assert not evil.asked


# --- its keys


async def test_a_new_key_is_read_once_and_unknown_ids_are_not_followed(server: Login) -> None:
    clock = Clock()
    async with checking(server, clock) as check:
        await check.check(server.token(HERE))
        server.keys = [public(OTHER_RSA, "new")]
        clock.now += 31
        rotated = await check.check(server.token(HERE, OTHER_RSA, header={"kid": "new"}))
        read = server.asked["/jwks"]
        for number in range(200):
            await refusal(check, server.token(HERE, OTHER_RSA, header={"kid": f"{number}"}))
        flooded = server.asked["/jwks"]
        clock.now += 31
        await asyncio.gather(
            *(refusal(check, server.token(HERE, OTHER_RSA, header={"kid": f"{number}"})) for number in range(50))
        )

    assert rotated.subject == "ann"
    assert (read, flooded, server.asked["/jwks"]) == (2, 2, 3)


async def test_a_key_that_is_gone_signs_nothing_any_more(server: Login) -> None:
    clock = Clock()
    async with checking(server, clock) as check:
        await check.check(server.token(HERE))
        server.keys = [public(OTHER_RSA, "new")]
        clock.now += 601

        assert "not signed with a key" in await refusal(check, server.token(HERE))


async def test_keys_that_cannot_be_read_again_hold_for_an_hour(server: Login) -> None:
    clock, token = Clock(), server.token(HERE)
    async with checking(server, clock) as check:
        await check.check(token)
        server.broken = {"/jwks"}
        clock.now += 3000
        assert (await check.check(token)).subject == "ann"
        assert await check.is_ready()
        clock.now += 700
        assert not await check.is_ready()
        with pytest.raises(AuthorizationServerUnavailable):
            await check.check(token)
        server.broken = set()
        clock.now += 6
        assert (await check.check(token)).subject == "ann"


async def test_without_keys_nobody_is_let_in_and_few_requests_are_made(server: Login) -> None:
    clock = Clock()
    server.broken = {"/jwks"}
    async with checking(server, clock) as check:
        for _ in range(20):
            with pytest.raises(AuthorizationServerUnavailable):
                await check.check(server.token(HERE))

    assert server.asked["/jwks"] == 1


@pytest.mark.parametrize(
    "raw", [b"[]", b"{", b'{"keys": 3}', b'{"keys": [3, {}, {"kty": "RSA"}]}', b" " * 600_000, b"[" * 100_000]
)
async def test_odd_keys_let_nobody_in(server: Login, raw: bytes) -> None:
    server.raw = {"/jwks": raw}
    async with checking(server) as check:
        with pytest.raises((AuthorizationServerUnavailable, TokenRefused)):
            await check.check(server.token(HERE))


async def test_keys_that_are_too_many_bytes_are_not_read(server: Login) -> None:
    server.raw = {"/jwks": json.dumps({"keys": server.keys}).encode() + b" " * 600_000}
    async with checking(server) as check:
        with pytest.raises(AuthorizationServerUnavailable):
            await check.check(server.token(HERE))


@pytest.mark.parametrize(
    "key",
    [
        public(RSA, "rsa", use="enc"),
        public(RSA, "rsa", alg="RS512"),
        public(RSA, "rsa", key_ops=["sign"]),
        public(EC, "rsa"),
        {**public(RSA, "rsa"), "kty": "oct"},
    ],
)
async def test_a_key_for_something_else_is_not_used(server: Login, key: dict[str, Any]) -> None:
    server.keys = [key]
    async with checking(server) as check:
        assert "not signed with a key" in await refusal(check, server.token(HERE))


async def test_a_weak_key_is_not_used(server: Login) -> None:
    server.keys = [public(WEAK_RSA, "rsa")]
    async with checking(server) as check:
        with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
            token = server.token(HERE, WEAK_RSA)
        assert "not signed with a key" in await refusal(check, token)


# --- where they are found


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/realms/x", "/.well-known/oauth-authorization-server/realms/x"),
        ("/realms/x", "/.well-known/openid-configuration/realms/x"),
        ("/realms/x", "/realms/x/.well-known/openid-configuration"),
    ],
)
async def test_the_keys_are_found_by_the_metadata(path: str, place: str) -> None:
    with login(path) as server:
        server.places = {place}
        async with checking(server) as check:
            assert (await check.check(server.token(HERE))).subject == "ann"


async def test_the_address_of_the_keys_may_be_given(server: Login) -> None:
    server.places = set()
    async with checking(server, jwks=f"{server.url}/jwks") as check:
        assert (await check.check(server.token(HERE))).subject == "ann"


@pytest.mark.parametrize(
    "metadata",
    [{"issuer": "https://login.evil.example"}, {"jwks_uri": "http://evil.example/jwks"}, {"jwks_uri": None}],
)
async def test_metadata_that_is_not_the_issuer_s_is_not_followed(server: Login, metadata: dict[str, Any]) -> None:
    server.metadata = metadata
    async with checking(server) as check:
        with pytest.raises(AuthorizationServerUnavailable):
            await check.check(server.token(HERE))


async def test_keys_are_not_read_over_plain_http_from_another_machine(server: Login) -> None:
    server.metadata = {"jwks_uri": f"{server.url}/jwks".replace("127.0.0.1", "0.0.0.0")}  # leads here, and says not so
    async with checking(server) as check:
        with pytest.raises(AuthorizationServerUnavailable):
            await check.check(server.token(HERE))

    assert "/jwks" not in server.asked


# --- tokens that the authorization server is asked about

ASKED = {"client_id": "gateway", "client_secret": "s3cret/:+"}


def opaque(server: Login, **claims: Any) -> str:
    token = f"opaque-{len(server.active)}"
    made = {"sub": "ann", "client_id": "app", "aud": HERE, "scope": "mcp", "exp": time.time() + 600, **claims}
    server.active[token] = {name: value for name, value in made.items() if value is not None}
    return token


async def asked(server: Login, token: str, clock: Clock | None = None, **options: Any) -> CheckedToken:
    async with checking(server, clock, introspect=f"{server.url}/introspect", **{**ASKED, **options}) as check:
        return await check.check(token)


@pytest.mark.parametrize(
    ("options", "header", "in_form"),
    [
        ({}, "Basic Z2F0ZXdheTpzM2NyZXQlMkYlM0ElMkI=", {}),
        ({"client_auth": "post"}, None, {"client_id": "gateway", "client_secret": "s3cret/:+"}),
        ({"client_id": None}, "Bearer s3cret/:+", {}),
    ],
)
async def test_the_authorization_server_is_asked(
    server: Login, options: Any, header: str | None, in_form: dict[str, str]
) -> None:
    token = opaque(server)

    checked = await asked(server, token, **options)

    assert (checked.principal, checked.access.scopes) == (f"ann;iss={server.issuer}", {"mcp"})
    assert server.forms == [(header, {"token": token, "token_type_hint": "access_token", **in_form})]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "https://other.example"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"iss": "https://login.evil.example"}, "another issuer"),
        ({"exp": time.time() - 60}, "has expired"),
        ({"nbf": time.time() + 36_000}, "not valid yet"),
        ({"exp": "soon"}, "times are not numbers"),
        ({"active": "true"}, "not valid, or is no longer valid"),
        ({"cnf": {}}, "bound to a key"),
        ({"sub": None, "client_id": None}, "neither a subject nor a client"),
    ],
)
async def test_an_answer_is_not_believed_further_than_it_says(server: Login, claims: dict[str, Any], said: str) -> None:
    with pytest.raises(TokenRefused, match=said):
        await asked(server, opaque(server, **claims))


async def test_an_answer_holds_for_a_short_time(server: Login) -> None:
    clock, token = Clock(), opaque(server)
    async with checking(server, clock, introspect=f"{server.url}/introspect", **ASKED) as check:
        await asyncio.gather(*(check.check(token) for _ in range(20)))
        once = server.asked["/introspect"]
        for _ in range(20):
            await refusal(check, "unknown")
        server.active.clear()
        assert (await check.check(token)).subject == "ann"
        clock.now += 31
        assert "no longer valid" in await refusal(check, token)

    assert (once, server.asked["/introspect"]) == (1, 3)


async def test_nobody_is_let_in_while_the_authorization_server_does_not_answer(server: Login) -> None:
    token = opaque(server)
    server.broken = {"/introspect"}
    with pytest.raises(AuthorizationServerUnavailable):
        await asked(server, token)


# --- the name of the principal


@pytest.mark.parametrize(
    ("claims", "options", "name"),
    [
        ({"sub": "a;iss=x"}, {}, "a%3Biss%3Dx;iss={issuer}"),
        ({"sub": "client=app"}, {}, "client%3Dapp;iss={issuer}"),
        ({"sub": None}, {}, "client=app;iss={issuer}"),
        ({"sub": None, "client_id": None, "azp": "other"}, {}, "client=other;iss={issuer}"),
        ({"email": "ann@example.org", "email_verified": True}, {"principal_claim": "email"}, "ann@example.org"),
        ({"sub": "a\nb"}, {}, "a%0Ab;iss={issuer}"),
    ],
)
async def test_no_two_principals_have_one_name(server: Login, claims: Any, options: Any, name: str) -> None:
    async with checking(server, **options) as check:
        assert (await check.check(server.token(HERE, **claims))).principal == name.format(issuer=server.issuer)


@pytest.mark.parametrize("value", [None, "", " ", 3, ["a"]])
async def test_a_claim_that_names_the_principal_has_to_be_there(server: Login, value: Any) -> None:
    async with checking(server, principal_claim="email") as check:
        assert await refusal(check, server.token(HERE, email=value)) == "the token has no claim email that is a text"


@pytest.mark.parametrize("verified", [None, False, "true", 1])
async def test_an_address_that_is_not_verified_names_no_principal(server: Login, verified: Any) -> None:
    async with checking(server, principal_claim="email") as check:
        token = server.token(HERE, email="ann@example.org", email_verified=verified)
        why = await refusal(check, token)

    assert "email_verified" in why
    assert "principal_claim" in why


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "a b  a"}, {"a", "b"}),
        ({"scope": ["a", 3]}, {"a"}),
        ({"scope": None, "scp": "a b"}, {"a", "b"}),
        ({"scope": "a", "scp": ["b"]}, {"a", "b"}),
        ({"scope": None}, set()),
        ({"scope": {"a": 1}}, set()),
    ],
)
async def test_scopes_are_a_text_or_a_list(server: Login, claims: dict[str, Any], scopes: set[str]) -> None:
    async with checking(server) as check:
        assert (await check.check(server.token(HERE, **claims))).access.scopes == scopes


# --- options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"issuer": "login.example.org"}, "issuer must be an address such as"),
        ({"issuer": "http://login.example.org"}, "issuer must begin with https://"),
        ({"issuer": "https://login.example.org?x=1"}, "no query and no fragment"),
        ({"issuer": "https://user@login.example.org"}, "issuer must be an address such as"),
        ({"jwks": "http://10.0.0.1/jwks"}, "jwks must begin with https://"),
        ({"introspect": "file:///etc/passwd", "client_secret": "x"}, "introspect must be an address"),
        ({"jwks": "https://a.example", "introspect": "https://a.example", "client_secret": "x"}, "leave one of them"),
        ({"introspect": "https://a.example"}, "introspect needs the client_secret"),
        ({"client_id": "x"}, "are for introspect"),
        ({"algorithms": ["none"]}, "none is not"),
        ({"algorithms": []}, "none is given"),
        ({"remember_seconds": 3600}, "0 to 300 seconds"),
    ],
)
def test_options_that_are_no_good_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AuthorizationServer(**{"issuer": "https://login.example.org", **options})


def test_the_secret_is_not_shown() -> None:
    made = AuthorizationServer("https://a.example", introspect="https://a.example/i", client_secret="hidden")

    assert "hidden" not in repr(made)
    assert "none" not in ALGORITHMS
