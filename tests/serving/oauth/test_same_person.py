"""One person at a gateway and at two consoles, each by another claim of their logins: the same one to every rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.server.auth.provider import AccessToken

from tests.adapters.mcp_server.clients import text_of
from tests.serving.oauth.test_openid import ISSUER, Answers, signed
from toolcrib.adapters.mcp_server import ServerOptions, acting_as, build_server
from toolcrib.adapters.mcp_server._bearer import access_of, principal_of
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Groups, Identity
from toolcrib.calls import ApprovalRequest, RequiredApprovers
from toolcrib.console.openid import OpenIDLogin
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Access
from toolcrib.serving.oauth import AuthorizationServer, OpenIDClient, OpenIDProvider
from toolcrib.serving.oauth._authorization_server import checked_token
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

CLAIMS = ("sub", "email", "preferred_username")
ANN = {"sub": "u-1", "email": "o'ann@example.org", "email_verified": True, "preferred_username": "ann"}
BOB = {"sub": "u-2", "email": "bob@example.org", "email_verified": True, "preferred_username": "bob"}
RULES = ApproverRules([ApproverRule(name="refunds", of="*")], Groups())
BY_LIBRARY = AccessToken(token="", client_id="app", scopes=[], subject="u-1", claims={"iss": ISSUER})


@ez_tool
async def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


async def logged_in(claims: dict[str, Any], id_claim: str = "sub") -> Identity:
    """Return who has logged in at a console."""
    provider = OpenIDProvider(ISSUER, "console", id_claim=id_claim)
    client = OpenIDClient(provider, fetch=Answers())
    login = OpenIDLogin(provider, "https://c.example.org", approvers=["*"], lasts=timedelta(hours=1), client=client)
    visitor = await login.of_token(signed(**claims))
    assert visitor is not None
    assert visitor.identity is not None
    return visitor.identity


async def asked(store: MemoryApprovalStore, principal: str, access: Access) -> ApprovalRequest:
    """Return the request of a call that a principal makes at a gateway."""
    server = build_server(Toolset([refund]).with_gates(RULES), ServerOptions(approvals=store))
    with acting_as(principal, access):
        async with Client(server) as client:
            waiting = await client.call_tool("refund", {"order": 7})
    (entry,) = await store.list(pending=True)
    assert entry.request.id in text_of(waiting)
    return entry.request


def at_gateway(claims: dict[str, Any], principal_claim: str | None) -> tuple[str, Access]:
    server = AuthorizationServer(ISSUER, principal_claim=principal_claim)
    token = checked_token({"iss": ISSUER, "exp": 2e9, "client_id": "app", **claims}, server)
    return token.principal, token.access


@pytest.mark.parametrize("id_claim", CLAIMS)
@pytest.mark.parametrize("principal_claim", [None, *CLAIMS])
async def test_who_asks_at_a_gateway_does_not_approve_in_the_console_by_another_claim(
    principal_claim: str | None, id_claim: str
) -> None:
    store, token = MemoryApprovalStore(), {name: ANN[name] for name in ("sub", principal_claim) if name in ANN}
    verified = {"email_verified": True} if principal_claim == "email" else {}
    request = await asked(store, *at_gateway({**token, **verified}, principal_claim))

    with pytest.raises(ApprovalError, match="who asked"):
        await store.answer(request.grant(await logged_in(ANN, id_claim)))
    await store.answer(request.grant(await logged_in(BOB, id_claim)))

    assert (await store.show(request.id)).state == "answered"


@pytest.mark.parametrize("id_claim", CLAIMS)
async def test_who_asks_by_a_token_that_the_host_checks_does_not_approve_in_the_console(id_claim: str) -> None:
    store = MemoryApprovalStore()
    request = await asked(store, principal_of(BY_LIBRARY), access_of(BY_LIBRARY))

    with pytest.raises(ApprovalError, match="who asked"):
        await store.answer(request.grant(await logged_in(ANN, id_claim)))


async def test_a_verified_address_tells_who_is_known_by_another_subject_in_each_application() -> None:
    store = MemoryApprovalStore()
    request = await asked(store, *at_gateway({**ANN, "sub": "pair-1"}, None))

    with pytest.raises(ApprovalError, match="who asked"):
        await store.answer(request.grant(await logged_in(ANN)))
    await store.answer(request.grant(await logged_in({**ANN, "email_verified": False})))

    assert (await store.show(request.id)).state == "answered"


@pytest.mark.parametrize("required", [(), (RequiredApprovers("refunds", {"*": 2}),)], ids=["number", "rule"])
@pytest.mark.parametrize("claims", [("sub", "email"), ("preferred_username", "email")], ids=str)
async def test_one_person_at_two_consoles_is_not_two_approvers(claims: Any, required: Any) -> None:
    store = MemoryApprovalStore()
    request = ApprovalRequest("ask_1", "call_1", "refund", {}, "d", approvals_needed=2, required=required)
    await store.put(request)
    first, again = [await logged_in(ANN, claim) for claim in claims]
    await store.answer(request.grant(first))

    with pytest.raises(ApprovalError, match=r"counts as one person|does not meet"):
        await store.answer((await store.show("ask_1")).request.grant(again))
    await store.answer((await store.show("ask_1")).request.grant(await logged_in(BOB)))

    assert (await store.show("ask_1")).state == "answered"


async def test_an_alias_puts_nobody_into_a_group() -> None:
    store = MemoryApprovalStore()
    rule = RequiredApprovers("refunds", {"finance": 1}, {"finance": [["o'ann@example.org"]]})
    request = ApprovalRequest("ask_1", "call_1", "refund", {}, "d", required=(rule,))
    await store.put(request)

    with pytest.raises(ApprovalError, match="does not meet the rule"):
        await store.answer(request.grant(await logged_in(ANN)))
    await store.answer(request.grant(await logged_in(ANN, "email")))

    assert (await store.show("ask_1")).state == "answered"


@pytest.mark.parametrize("text", ["ann", "Jürgen Ø", "a;iss=x", "50%", "o'ann@x.org"])
async def test_a_claim_that_the_gateway_escapes_is_of_the_same_person(text: str) -> None:
    store, claims = MemoryApprovalStore(), {**ANN, "preferred_username": text, "email": None}
    request = await asked(store, *at_gateway({**claims, "sub": "pair-1"}, "preferred_username"))

    with pytest.raises(ApprovalError, match="who asked"):
        await store.answer(request.grant(await logged_in(claims, "preferred_username")))


@pytest.mark.parametrize("text", ["a\nb", "a\u202eb", "\ud800"])
async def test_an_address_or_a_subject_that_does_not_show_is_escaped_or_left_out(text: str) -> None:
    claims = {**ANN, "sub": text, "email": text}

    person = await logged_in(claims, "preferred_username")
    principal, access = at_gateway(claims, None)

    assert person.aliases == access.ids == (principal,)
    assert principal.isprintable()
