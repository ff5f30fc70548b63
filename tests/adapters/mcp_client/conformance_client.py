"""The client of the official conformance suite: `connect`, and each tool of a server called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
import mcp_types as types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from tests.adapters.mcp_client.test_oauth import Browser
from tests.adapters.tokens import MemoryTokens
from toolcrib import Pipeline, ToolCall, Toolset
from toolcrib.adapters.mcp_client import Elicitation, connect

_BACK = "http://localhost:3000/callback"
_DOCUMENT = "https://conformance-test.local/client-metadata.json"  # the address that the suite expects
_SAMPLES: Mapping[str, Any] = {"string": "word", "integer": 3, "number": 3, "boolean": True, "array": [], "object": {}}


async def play(scenario: str, url: str, revision: str, context: Mapping[str, Any]) -> None:
    """Connect to the suite's server, and call each of its tools."""
    auth = await _signing(scenario, url, context) if scenario.startswith("auth/") else None
    mode = "auto" if revision == "2026-07-28" else "legacy"
    toolset = connect(
        url,
        name="suite",
        mode=mode,
        auth=auth,
        elicit=_fill_in,
        sampling=_sample,
        roots=["file:///work"],
        required=True,
    )
    async with toolset.open() as tools:
        pipeline, calls = Pipeline(tools), _calls(tools, context)
        if scenario == "sep-2322-client-request-state":  # it wants another call in the middle of one
            await asyncio.gather(*(pipeline.run(call) for call in calls))
            return
        for call in calls:
            await pipeline.run(call)


def _calls(tools: Toolset, context: Mapping[str, Any]) -> list[ToolCall]:
    wanted: list[dict[str, Any]] = context.get("toolCalls") or []
    if wanted:
        return [ToolCall(call["name"], call["arguments"]) for call in wanted]
    entries = tools.entries
    if "json_schema_echo" in entries:
        source = entries["json_schema_2020_12_tool"].tool.source
        listing = None if source is None else source.get_listing()  # what a gateway serves of it
        return [ToolCall("json_schema_echo", {"schema": (listing or {})["inputSchema"]})]
    return [ToolCall(name, _arguments(entry.parameters)) for name, entry in entries.items()]


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    parts: Mapping[str, Any] = schema.get("properties", {})
    return {name: _SAMPLES.get(parts[name].get("type"), "word") for name in schema.get("required", ())}


async def _fill_in(question: Elicitation) -> dict[str, Any]:
    parts: Mapping[str, Any] = question.schema.get("properties", {})
    wanted = question.schema.get("required", ())
    return {name: _SAMPLES.get(parts[name].get("type"), "word") for name in wanted if "default" not in parts[name]}


async def _sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="word"), model="none")


async def _signing(scenario: str, url: str, context: Mapping[str, Any]) -> httpx2.Auth:
    kept, browser = MemoryTokens(), Browser()
    match scenario:
        case "auth/client-credentials-basic":
            own = context["client_id"], context["client_secret"]
            return ClientCredentialsOAuthProvider(url, kept, *own, issuer=await _issuer(url))
        case "auth/client-credentials-jwt":
            signed = SignedJWTParameters(
                issuer=context["client_id"],
                subject=context["client_id"],
                signing_key=context["private_key_pem"],
                signing_algorithm=context["signing_algorithm"],
            )
            own, assertion = context["client_id"], signed.create_assertion_provider()
            return PrivateKeyJWTOAuthProvider(url, kept, own, assertion, issuer=await _issuer(url))
        case "auth/enterprise-managed-authorization":
            return IdentityAssertionOAuthProvider(
                url,
                kept,
                context["client_id"],
                context["client_secret"],
                await _issuer(url),
                lambda audience, resource: _exchanged(context, audience, resource),
                token_endpoint_auth_method="client_secret_basic",
            )
        case "auth/pre-registration":
            kept.client = OAuthClientInformationFull(
                client_id=context["client_id"],
                client_secret=context["client_secret"],
                redirect_uris=[AnyUrl(_BACK)],
                token_endpoint_auth_method="client_secret_basic",
            )
        case _:
            pass
    about = OAuthClientMetadata(client_name="toolcrib", redirect_uris=[AnyUrl(_BACK)])
    return OAuthClientProvider(url, about, kept, browser.go, browser.came_back, client_metadata_url=_DOCUMENT)


async def _issuer(url: str) -> str:
    """Return the authorization server of a server, which a host would have been told."""
    parts = urlsplit(url)
    async with httpx2.AsyncClient(timeout=60) as http:
        found = await http.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    return str(found.json()["authorization_servers"][0])


async def _exchanged(context: Mapping[str, Any], audience: str, resource: str) -> str:
    """Return what the identity provider gives for its own token."""
    kind = "urn:ietf:params:oauth:token-type:"
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": f"{kind}id-jag",
        "subject_token": context["idp_id_token"],
        "subject_token_type": f"{kind}id_token",
        "audience": audience,
        "resource": resource,
        "client_id": context["idp_client_id"],
    }
    async with httpx2.AsyncClient(timeout=60) as http:
        given = await http.post(context["idp_token_endpoint"], data=form)
    return str(given.json()["access_token"])
