"""ID tokens of a login: those that are of this login, for this application, and others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import jwt
import pytest

from tests.serving.oauth.login import OTHER_RSA, RSA, public
from toolcrib.serving.oauth import AuthorizationServerUnavailable, LoggedIn, OpenIDClient, OpenIDProvider, TokenRefused
from toolcrib.serving.oauth._fetch import Fetch

ISSUER = "https://login.example.org"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize?tenant=1",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}


class Answers(Fetch):
    """A provider whose answers are the test's."""

    def __init__(self, token: Any = None, metadata: Mapping[str, Any] = METADATA) -> None:
        super().__init__()
        self.token, self.metadata, self.forms = token, metadata, list[Mapping[str, str]]()

    async def json(
        self, url: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        if form is not None:
            self.forms.append({**form, **(headers or {})})
            return {"id_token": self.token}
        if url == f"{ISSUER}/keys":
            return {"keys": [public(RSA, "one")]}
        return dict(self.metadata)


def signed(key: Any = RSA, algorithm: str = "RS256", typ: str | None = "JWT", **claims: Any) -> str:
    given = {"iss": ISSUER, "aud": "console", "sub": "bob", "exp": time.time() + 60, "iat": time.time(), **claims}
    kept = {name: value for name, value in given.items() if value is not None}
    key = OTHER_RSA if key == "other" else key
    return jwt.encode(kept, key, algorithm, headers={"kid": "one", "typ": typ})


async def logged_in(answers: Answers, secret: str | None = "secret", **claims: Any) -> LoggedIn:
    client = OpenIDClient(OpenIDProvider(ISSUER, "console", secret), fetch=answers)
    departure = await client.depart("https://console.example.org/login/back")
    if answers.token is None:
        answers.token = signed(**{"nonce": departure.nonce, **claims})
    return await client.come_back(departure, {"state": departure.state, "code": "c", "iss": ISSUER})


async def test_the_token_of_this_login_says_who_has_logged_in() -> None:
    answers = Answers()

    person = await logged_in(answers, groups=["finance"])

    assert (person.id, person.groups) == ("bob", ("finance",))
    assert answers.forms[0]["authorization"].startswith("Basic ")
    assert (answers.forms[0]["grant_type"], answers.forms[0]["code"]) == ("authorization_code", "c")


async def test_an_application_without_a_secret_names_itself() -> None:
    answers = Answers()

    await logged_in(answers, secret=None)

    assert answers.forms[0]["client_id"] == "console"
    assert not {"authorization", "client_secret"} & answers.forms[0].keys()


@pytest.mark.parametrize(
    "claims",
    [
        *[{"nonce": "guess"}, {"nonce": None}, {"nonce": 3}],
        *[{"aud": "other"}, {"aud": ["console", "other"]}, {"aud": ["other"], "azp": "console"}, {"azp": "other"}],
        *[{"aud": ["console", "other"], "azp": "other"}, {"iss": "https://evil.example"}, {"exp": 1}, {"exp": None}],
        *[{"sub": None}, {"sub": ""}, {"sub": 3}, {"sub": "b\nob"}],
        *[{"typ": "at+jwt"}, {"key": "other"}, {"key": "console" * 8, "algorithm": "HS256"}],
    ],
    ids=str,
)
async def test_a_token_that_is_of_another_login_application_or_provider_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        await logged_in(Answers(), **claims)


@pytest.mark.parametrize("token", ["", 3, "x.y.z", "x" * 20_000])
async def test_what_is_no_token_is_refused(token: Any) -> None:
    with pytest.raises(TokenRefused):
        await logged_in(Answers(token))


@pytest.mark.parametrize(
    "metadata",
    [
        {**METADATA, "issuer": "https://evil.example"},
        {**METADATA, "token_endpoint": "http://evil.example/token"},
        {**METADATA, "authorization_endpoint": "javascript:alert(1)"},
        {name: METADATA[name] for name in ("issuer", "jwks_uri", "authorization_endpoint")},
    ],
)
async def test_a_provider_whose_metadata_is_of_another_or_leads_elsewhere_is_not_used(metadata: Any) -> None:
    client = OpenIDClient(OpenIDProvider(ISSUER, "console"), fetch=Answers(metadata=metadata))

    with pytest.raises(AuthorizationServerUnavailable):
        await client.depart("https://console.example.org/login/back")


async def test_the_page_is_asked_with_pkce_and_keeps_its_own_query() -> None:
    client = OpenIDClient(OpenIDProvider(ISSUER, "console"), fetch=Answers())

    one, other = [await client.depart("https://console.example.org/login/back") for _ in range(2)]

    assert one.url.startswith(f"{ISSUER}/authorize?tenant=1&response_type=code&client_id=console&")
    assert "code_challenge_method=S256" in one.url
    assert one.verifier not in one.url
    assert len({one.state, one.nonce, one.verifier, other.state, other.nonce, other.verifier}) == 6


@pytest.mark.parametrize(
    ("subjects", "claims", "id_claim", "is_refused"),
    [
        (["pairwise"], {}, "sub", True),
        (["pairwise"], {"email": "bob@example.org", "email_verified": False}, "sub", True),
        (["pairwise"], {"email": "bob@example.org", "email_verified": True}, "sub", False),
        (["pairwise"], {"oid": "b-1"}, "oid", False),
        (["public", "pairwise"], {}, "sub", False),
        (None, {}, "sub", False),
    ],
    ids=["pairwise", "not verified", "verified", "another claim", "perhaps", "not said"],
)
async def test_a_person_who_could_be_two_does_not_log_in(
    subjects: Any, claims: dict[str, Any], id_claim: str, is_refused: bool
) -> None:
    answers = Answers(metadata={**METADATA, "subject_types_supported": subjects})
    client = OpenIDClient(OpenIDProvider(ISSUER, "console", "secret", id_claim=id_claim), fetch=answers)
    refused = False

    try:
        await client.of_token(signed(**claims))
    except TokenRefused as error:
        refused = "one person could count as two: request the scope `email`" in str(error)

    assert refused == is_refused
