"""What a host gives by mistake: an address in another spelling, arguments in another order, a key in two places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.credentials import ApiKeys, CredentialKeys, MemoryCredentialStore, OAuth, SqliteCredentialStore, new_key

PAGES = "https://gateway.example/consent"
SERVER = "https://tickets.example/mcp"


@pytest.mark.parametrize("spelling", [f"{SERVER}/", "https://TICKETS.example/mcp", "https://tickets.example:443/mcp"])
async def test_key_is_found_however_the_address_of_its_server_was_written(spelling: str) -> None:
    keys = ApiKeys(MemoryCredentialStore())

    await keys.add("ann", spelling, "a-key-of-ann")

    assert await keys.consent_for("ann", SERVER) is None
    assert await keys.forget("ann", spelling)
    assert await keys.consent_for("ann", SERVER) is not None


@pytest.mark.parametrize(
    ("principal", "server", "problem"),
    [
        (SERVER, "ann", "the server is 'ann'; give its address, as in 'https://tickets"),
        ("ann", "tickets.example/mcp", "the server is 'tickets.example/mcp'; give its address"),
        (None, SERVER, "the principal is None; give the name that runs have it by"),
        ("", SERVER, "the principal is ''"),
    ],
)
async def test_credential_of_nobody_or_for_no_server_is_refused(principal: Any, server: str, problem: str) -> None:
    store = MemoryCredentialStore()

    with pytest.raises(ValueError, match=problem):
        await ApiKeys(store).add(principal, server, "a-key-of-ann")
    with pytest.raises(ValueError, match=problem):
        await ApiKeys(store).forget(principal, server)
    with pytest.raises(ValueError, match=problem):
        await OAuth(store, pages=PAGES).forget(principal, server)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda store: ApiKeys(store, header="X-Key", query="key"), "leave out `header`, or `query`"),
        (lambda store: ApiKeys(store, header="X Key"), "header is 'X Key'; give the name of a header"),
        (lambda store: ApiKeys(store, pages="/consent"), "ApiKeys: pages is '/consent'; give its address"),
        (lambda store: OAuth(store, pages="/consent"), "OAuth: pages is '/consent'; give its address"),
        (lambda store: OAuth(store, pages=PAGES, client_secret="s3cret"), "client_secret needs client_id"),
        (lambda store: ApiKeys("credentials.db"), r"store is 'credentials.db'; give .* SqliteCredentialStore\("),
        (lambda store: OAuth("credentials.db", pages=PAGES), r"give a store, as in SqliteCredentialStore\("),
        (
            lambda store: CredentialKeys(new_key()),
            r"keys must be a list of texts, as in CredentialKeys\(\[new_key\(\)\]",
        ),
        (lambda store: CredentialKeys([b"x"]), "keys must be a list of texts"),
        (lambda store: SqliteCredentialStore("credentials.db", new_key()), r"give CredentialKeys\(\[...\]\)"),
    ],
)
def test_options_without_an_effect_or_of_another_kind_are_refused(
    make: Callable[[Any], object], problem: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match=problem) as raised:
        make(MemoryCredentialStore())
    assert "s3cret" not in str(raised.value)
