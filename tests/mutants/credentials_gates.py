"""The gates around credentials: who consents, which server and browser an answer is for, and what a file gives away."""

from __future__ import annotations

from tests.mutants.gate import Gate

__all__ = ["CREDENTIALS_GATES"]

_HERE = "tests/credentials"
_OF_CONSENT = (f"{_HERE}/test_consent.py",)
_OF_DISCOVERY = (f"{_HERE}/test_discovery.py",)
_OF_DOCUMENTS = (f"{_HERE}/test_client_documents.py",)
_OF_KEYS = (f"{_HERE}/test_keys.py", f"{_HERE}/test_stores.py")
_OF_REFRESH = (f"{_HERE}/test_refresh.py",)
_OF_STORES = (f"{_HERE}/test_stores.py",)
_OF_PRINCIPALS = (f"{_HERE}/test_principals.py",)
_OF_PIPELINE = ("tests/pipeline/test_consent.py",)

_FLOW = "credentials/_consent.py"
_DISCOVERY = "credentials/_token_requests.py"
_GUARD = "credentials/_guarded_http.py"
_OAUTH = "credentials/_oauth.py"
_PAGES = "serving/http/consent.py"
_STEP = "toolsets/_consent.py"

CREDENTIALS_GATES: tuple[Gate, ...] = (
    # --- the pipeline
    Gate(
        "consent before a call",
        "toolsets/_gates.py",
        "    return (*consent, *scopes,",
        "    return (*scopes,",
        _OF_PIPELINE,
    ),
    Gate(
        "consent again when a call is resumed",
        _STEP,
        "            if isinstance(lacking, calls.Consent):\n                if answer is None:",
        "            if isinstance(lacking, calls.Consent) and answer is None:\n                if answer is None:",
        _OF_PIPELINE,
    ),
    Gate(
        "consent after an approver's yes",
        _STEP,
        "                if await self._lacking(call) is None:\n                    return None\n",
        "                return None\n",
        _OF_PIPELINE,
    ),
    Gate(
        "one of all copies of a call that waited for consent goes on",
        _STEP,
        "        if earlier is not None:\n",
        "        if False:\n",
        _OF_PIPELINE,
    ),
    Gate(
        "a consent answers no question about approval",
        _STEP,
        '    digest = schema.digest("consent", {"call": call.digest, "reason": lacking.reason})\n',
        "    digest = call.digest\n",
        _OF_PIPELINE,
    ),
    Gate(
        "no standing grant for consents",
        "approvals/_fit.py",
        "if request.consent is not None and (grant.standing or grant.override_args is not None):",
        "if False:",
        _OF_PIPELINE,
    ),
    Gate(
        "no link in a record",
        "record/_call_trace.py",
        '{"request": request.to_record()}',
        '{"request": request.to_dict()}',
        _OF_PIPELINE,
    ),
    # --- the way of a browser
    Gate(
        "browser of an answer",
        _FLOW,
        'if not hmac.compare_digest(state_data["browser"], name_of(browser)):',
        "if False:",
        _OF_CONSENT,
    ),
    Gate(
        "an answer counts once",
        _FLOW,
        'row = await self._store.take(STATE, "", state)',
        'row = await self._store.read(STATE, "", state)',
        _OF_CONSENT,
    ),
    Gate(
        "issuer that sends a person back", _FLOW, "    if issuer != endpoints.issuer:\n", "    if False:\n", _OF_CONSENT
    ),
    Gate(
        "a link counts once",
        _FLOW,
        '        await drop_link(self._store, about.principal, about.server, state_data["ticket"])\n',
        "",
        _OF_CONSENT,
    ),
    Gate(
        "a form comes from our page",
        _PAGES,
        'if not browser or not hmac.compare_digest(form.get("proof", ""), _proof(browser, ticket)):',
        "if not browser:",
        _OF_CONSENT,
    ),
    Gate(
        "origin of a form",
        _PAGES,
        "HttpGuard(Starlette(routes=routes), Site(host))",
        "HttpGuard(Starlette(routes=routes), Site(host, (), ('https://evil.example',)))",
        _OF_CONSENT,
    ),
    Gate("person at a browser", _PAGES, "        if who != about.principal:\n", "        if False:\n", _OF_CONSENT),
    # --- what others write
    Gate(
        "metadata is about the server",
        _DISCOVERY,
        '        if not _is_of(str(about.get("resource", "")), server):\n',
        "        if False:\n",
        _OF_DISCOVERY,
    ),
    Gate(
        "metadata is of the authorization server",
        _DISCOVERY,
        '        if str(found.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):\n',
        "        if False:\n",
        _OF_DISCOVERY,
    ),
    Gate(
        "a client is shown to its issuer",
        _DISCOVERY,
        '    if settings.issuer and issuer.rstrip("/") != settings.issuer.rstrip("/"):\n',
        "    if False:\n",
        _OF_DISCOVERY,
    ),
    Gate("PKCE", _DISCOVERY, '    if "S256" not in methods:\n', "    if False:\n", _OF_DISCOVERY),
    Gate("private places", _GUARD, "    if not ranges <= allowed:\n", "    if False:\n", _OF_DISCOVERY),
    Gate(
        "http on the network",
        _GUARD,
        '    if scheme != "https" and ranges != {"loopback"}:\n',
        "    if False:\n",
        _OF_DISCOVERY,
    ),
    Gate(
        "addresses inside addresses",
        "_networks.py",
        "    return inner or address\n",
        "    return address\n",
        _OF_DISCOVERY,
    ),
    Gate("redirects of metadata", _GUARD, "follow_redirects=False", "follow_redirects=True", _OF_DISCOVERY),
    Gate(
        "length of metadata",
        _GUARD,
        "                if len(body) > _MOST_BYTES:\n",
        "                if False:\n",
        _OF_DISCOVERY,
    ),
    # --- tokens
    Gate(
        "one process refreshes",
        _OAUTH,
        "        if not await store.claim(TOKEN, principal, server, row.version, _CLAIM):\n",
        "        if False:\n",
        _OF_REFRESH,
    ),
    Gate(
        "a refresh outlives its caller",
        _OAUTH,
        "return await asyncio.shield(task)",
        "return await task",
        _OF_REFRESH,
    ),
    Gate(
        "revocation",
        _OAUTH,
        "            await revoke_at_issuer(server, Token.from_dict(row.value))\n        return row is not None\n",
        "            pass\n        return row is not None\n",
        _OF_CONSENT,
    ),
    # --- principals
    Gate(
        "session of a principal",
        "adapters/mcp_client/_source.py",
        "        principal = _principal_of(ctx)\n        lacking",
        "        principal = next(iter(self._seats), _principal_of(ctx))\n        lacking",
        _OF_PRINCIPALS,
    ),
    Gate(
        "signature goes to the server alone",
        "credentials/_auth.py",
        "(request.url.scheme, request.url.host, request.url.port) != self._origin",
        "False",
        _OF_PRINCIPALS,
    ),
    # --- at rest
    Gate(
        "place of a sealed text",
        "credentials/_keys.py",
        ".decrypt(nonce, rest, place)",
        ".decrypt(nonce, rest, b'')",
        _OF_KEYS,
    ),
    Gate(
        "mode of a key file",
        "credentials/_keys.py",
        '    if os.name == "posix" and mode & 0o077:\n',
        "    if False:\n",
        _OF_KEYS,
    ),
    Gate(
        "mode of the database",
        "credentials/_store.py",
        '        if os.name == "posix" and self.path.stat().st_mode & 0o077:\n',
        "        if False:\n",
        _OF_STORES,
    ),
    Gate(
        "a key in an address is not logged",
        "credentials/_api_keys.py",
        "            request.extensions[QUERY] = (self._query, key)\n",
        "            request.url = request.url.copy_set_param(self._query, key)\n",
        _OF_CONSENT,
    ),
    # --- the client's metadata
    Gate(
        "client metadata document: where it is the client's id",
        _FLOW,
        "if settings.document and endpoints.takes_documents:",
        "if False:",
        _OF_DOCUMENTS,
    ),
    Gate(
        "client metadata document: only where a server takes it",
        _FLOW,
        "if settings.document and endpoints.takes_documents:",
        "if settings.document:",
        _OF_DOCUMENTS,
    ),
    Gate(
        "client metadata document: what a server says of it",
        _DISCOVERY,
        'found.get("client_id_metadata_document_supported") is True',
        'bool(found.get("client_id_metadata_document_supported"))',
        _OF_DOCUMENTS,
    ),
    Gate(
        "client metadata document: a client that the host names comes first",
        _FLOW,
        "        if settings.client is not None:\n            return settings.client\n",
        "        if settings.client is not None and not settings.document:\n            return settings.client\n",
        _OF_DOCUMENTS,
    ),
    Gate(
        "client metadata document: an https address",
        _OAUTH,
        'if client_document and not client_document.startswith("https://"):',
        "if False:",
        _OF_DOCUMENTS,
    ),
)
