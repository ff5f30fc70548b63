"""Credentials in a file of servers, and the commands for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.adapters.mcp_client.servers import outcome_of
from tests.credentials.authority import Browser, guarded, held_in
from tests.networks import free_port
from toolcrib.approvals import MemoryApprovalStore
from toolcrib.calls import Completed, Suspended
from toolcrib.cli._app import app
from toolcrib.credentials import SqliteCredentialStore, new_key
from toolcrib.errors import TargetError
from toolcrib.gateway import read_gateway, toolset_of_file
from toolcrib.pipeline import Pipeline, Run
from toolcrib.serving.http.consent import consent_server

URL = "https://tools.example/mcp"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_CREDENTIALS_KEY", new_key())


def written(folder: Path, credentials: Any, url: str = URL, **gateway: Any) -> Path:
    path = folder / "mcp.json"
    entry = {"url": url, "toolcrib": {"credentials": credentials}}
    path.write_text(json.dumps({"mcpServers": {"tools": entry}, "toolcrib": {"credentials": gateway}}))
    return path


async def test_file_has_a_server_for_each_principals_own_account(tmp_path: Path) -> None:
    pages, approvals = f"http://127.0.0.1:{free_port()}/consent", MemoryApprovalStore()
    async with guarded() as server:
        path = written(tmp_path, {"oauth": True}, server.url, pages=pages)
        kept = read_gateway(path).credentials
        assert kept is not None
        store, run = SqliteCredentialStore(kept.database), Run(principal="ann", approvals=approvals)
        async with consent_server(kept.pages, store, approvals), toolset_of_file(path).open() as tools:
            first = await outcome_of(tools, "get_access", run=run)
            assert isinstance(first, Suspended)
            assert first.request.consent is not None
            async with Browser(server.authority, "ann@there") as browser:
                await browser.gives_access(first.request.consent.url)
            await Pipeline(tools).run(first, run)
            who = await outcome_of(tools, "whoami", run=run)

    assert isinstance(who, Completed), who
    assert who.value == "ann@there"
    assert Path(kept.database) == tmp_path / "credentials.db"
    assert not [token for token in server.authority.tokens if token.encode() in held_in(tmp_path)]


@pytest.mark.parametrize(
    ("credentials", "problem"),
    [
        ({}, "it must have one of oauth, api_key, exchange and api_key_env, and has none"),
        ({"oauth": True, "api_key": True}, "and has oauth and api_key"),
        ({"oauth": True, "header": "X"}, "header goes with api_key_env"),
        ({"oauth": {"client_id": "we"}}, "client_id needs issuer"),
        ({"oauth": {"client_id": "we", "issuer": URL, "client_secret_env": "NOT_SET"}}, "NOT_SET is not set"),
        ({"api_key_env": "NOT_SET"}, "NOT_SET is not set"),
        ({"oath": True}, "there is no such option"),
    ],
)
def test_mistake_names_the_server_and_the_field(tmp_path: Path, credentials: Any, problem: str) -> None:
    with pytest.raises(TargetError) as error:
        toolset_of_file(written(tmp_path, credentials))

    assert problem in str(error.value)
    assert "`tools`: `toolcrib.credentials" in str(error.value)


def test_missing_key_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_CREDENTIALS_KEY", "short")

    with pytest.raises(TargetError, match="32 random bytes"):
        toolset_of_file(written(tmp_path, {"api_key": True}))


def test_one_key_for_all_needs_no_store(tmp_path: Path) -> None:
    path = written(tmp_path, {"api_key_env": "KEY", "header": "X-Key"})

    assert toolset_of_file(path, {"KEY": "secret"}).toolset_id == "mcp"
    assert read_gateway(path).credentials is None
    assert not (tmp_path / "credentials.db").exists()


# --- commands


def ran(*words: str, stdin: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["credentials", *words], input=stdin, catch_exceptions=False)
    return result.exit_code, result.output


def test_key_is_read_from_stdin_listed_without_it_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = [
        ran("add", f"{URL}/", "--principal", "ann", stdin="key-of-ann\n"),
        ran("list", "--json"),
        ran("list"),
        ran("forget", URL, "--principal", "ann"),
        ran("forget", URL, "--principal", "ann"),
        ran("add", URL, stdin="\n"),
    ]

    assert [code for code, _ in told] == [0, 0, 0, 0, 1, 2]
    assert json.loads(told[1][1])[0]["principal"] == "ann"
    assert json.loads(told[1][1])[0]["server"] == URL
    assert "key-of-ann" not in str(told)


def test_key_file_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "key"
    file.write_text(new_key())
    file.chmod(0o600)
    monkeypatch.delenv("TOOLCRIB_CREDENTIALS_KEY")
    monkeypatch.setenv("TOOLCRIB_CREDENTIALS_KEY_FILE", str(file))
    ran("add", URL, "--principal", "ann", stdin="key-of-ann\n")
    before = file.read_text()

    code, said = ran("rotate-key")

    assert (code, "1 row" in said) == (0, True)
    assert before.strip() not in file.read_text()
    assert ran("list")[0] == 0
    assert ran("forget", URL, "--principal", "ann")[0] == 0


def test_file_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert ran("list")[0] == 2
    assert "there is no file" in ran("list")[1]
