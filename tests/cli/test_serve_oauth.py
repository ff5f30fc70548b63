"""`serve` with the tokens of an authorization server: by flags, and by the file of servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.adapters.mcp_client import small_server as module
from tests.adapters.mcp_server.http import command_over_http
from tests.adapters.mcp_server.test_http import ACCEPT, OPENING
from tests.adapters.mcp_server.test_oauth import call, post, result_of
from tests.cli.conftest import Command
from tests.serving.oauth.login import Login, login

TOOLS = '''
from toolcrib import tool


@tool
async def look(place: str) -> str:
    """Look at a place."""
    return f"saw {place}"


@tool
async def book(place: str) -> str:
    """Book a place."""
    return f"booked {place}"
'''
SMALL = {"command": sys.executable, "args": [str(module.__file__), "notes"]}


@pytest.fixture
def server() -> Iterator[Login]:
    with login() as made:
        yield made


async def answers(url: str, token: str, *bodies: Any) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=60) as client:
        return [await post(client, token, body) for body in bodies]


async def test_flags_say_whose_tokens_are_accepted(tmp_path: Path, server: Login) -> None:
    (tmp_path / "trips.py").write_text(TOOLS, "utf-8")
    flags = ["--issuer", server.issuer, "--scope", "mcp", "--tool-scope", "bo*=trips:write,trips:read"]
    with command_over_http(tmp_path, "trips.py", *flags) as url:
        looked, booked = await answers(url, server.token(url), call("look", place="a"), call("book", place="a"))
        more = server.token(url, scope="mcp trips:write trips:read")
        (done,) = await answers(url, more, call("book", place="a"))
        (other,) = await answers(url, server.token("https://other.example/mcp"), OPENING)

    assert [one.status_code for one in (looked, booked, done, other)] == [200, 403, 200, 401]
    assert 'scope="mcp trips:read trips:write"' in booked.headers["www-authenticate"]
    assert result_of(done)["content"][0]["text"] == "booked a"


async def test_flags_say_who_is_asked_about_tokens(tmp_path: Path, server: Login) -> None:
    (tmp_path / "trips.py").write_text(TOOLS, "utf-8")
    server.active["opaque"] = {"aud": "trips", "email": "ann@example.org", "email_verified": True, "scope": "mcp"}
    flags = ["--issuer", server.issuer, "--introspect", f"{server.url}/introspect", "--client-id", "crib"]
    more = ["--audience", "trips", "--principal-claim", "email"]
    with command_over_http(tmp_path, "trips.py", *flags, *more, TOOLCRIB_CLIENT_SECRET="s3cret") as url:
        good, bad = [(await answers(url, token, OPENING))[0].status_code for token in ("opaque", "unknown")]

    assert (good, bad) == (200, 401)


async def test_the_file_of_servers_says_it_all(tmp_path: Path, server: Login) -> None:
    section = {
        "http": {"public_url": "https://tools.example.org/gw/mcp", "path": "/gw/mcp"},
        "auth": {"issuer": "${ISSUER}", "scopes": ["mcp"]},
        "scopes": {"add": "sums"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"toolcrib": section, "mcpServers": {"small": SMALL}}), "utf-8")
    audience = "https://tools.example.org/gw/mcp"
    less, more = server.token(audience), server.token(audience, scope="mcp sums")
    with command_over_http(tmp_path, "mcp.json", ISSUER=server.issuer) as url:
        async with httpx.AsyncClient(base_url=url.removesuffix("/mcp"), timeout=60) as client:
            refused = await post(client, less, call("add", a=1, b=2))
            done = await post(client, more, call("add", a=1, b=2))
            nobody = await client.post("/mcp", json=OPENING, headers=ACCEPT)
            place = "/.well-known/oauth-protected-resource/gw/mcp"
            metadata = await client.get(url.replace("/gw/mcp", place))

    assert [one.status_code for one in (refused, done, nobody)] == [403, 200, 401]
    assert f'resource_metadata="https://tools.example.org{place}"' in nobody.headers["www-authenticate"]
    assert metadata.json()["resource"] == audience
    assert result_of(done)["structuredContent"] == {"result": 3}


def test_tokens_of_the_file_are_in_the_environment(tmp_path: Path) -> None:
    section = {"tokens_env": {"ann": "ANN_TOKEN"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"toolcrib": section, "mcpServers": {"small": SMALL}}), "utf-8")
    with command_over_http(tmp_path, "mcp.json", ANN_TOKEN="a-secret-of-ann-1") as url, httpx.Client() as client:
        sent = {"authorization": "Bearer a-secret-of-ann-1"}
        good = client.post(url, json=OPENING, headers={**ACCEPT, **sent}, timeout=60)
        bad = client.post(url, json=OPENING, headers=ACCEPT, timeout=60)

    assert (good.status_code, bad.status_code) == (200, 401)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--audience", "x"], "audience: of which authorization server? Give its address with --issuer URL"),
        (["--issuer", "http://login.example.org"], "issuer must begin with https://"),
        (
            ["--issuer", "https://a.example", "--introspect", "https://a.example/i"],
            "introspect needs the client_secret",
        ),
        (
            ["--issuer", "https://a.example", "--token", "ann=0123456789abcdef"],
            "give one of tokens, authorization_server",
        ),
        (["--issuer", "https://a.example", "--host", "0.0.0.0"], "give the public_url of the endpoint"),
        (["--tool-scope", "look=a"], "give its address with --issuer URL"),
        (["--issuer", "https://a.example", "--tool-scope", "lok=a"], "--tool-scope: there is no tool `lok`"),
        (["--issuer", "https://a.example", "--tool-scope", "look=a b"], "the scopes of `look` are words"),
        (["--host", "0.0.0.0"], "Give tokens with --token NAME=SECRET, or --issuer URL"),
        (["--tool-scope", "look"], "write TOOL=SCOPE"),
        (["--client-secret", "@/nonexistent"], "cannot read /nonexistent"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(toolcrib: Command, flags: list[str], said: str) -> None:
    Path("trips.py").write_text(TOOLS, "utf-8")

    done = toolcrib("serve", "trips.py", "--http", "--port", "0", *flags)

    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("flags", [["--issuer", "https://a.example"], ["--path", "/x"], ["--tool-scope", "look=a"]])
def test_flags_of_http_are_refused_over_stdio(toolcrib: Command, flags: list[str]) -> None:
    Path("trips.py").write_text(TOOLS, "utf-8")

    done = toolcrib("serve", "trips.py", *flags)

    assert done.exit_code == 2
    assert "add --http" in done.output


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"auth": {"isuer": "https://a.example"}}, "`toolcrib.auth.isuer`: there is no such option. Did you mean"),
        ({"auth": {"audience": "x"}}, "`toolcrib.auth.issuer`: field required"),
        ({"auth": {"issuer": "https://a.example", "audiense": "x"}}, "Did you mean `audience`?"),
        ({"http": {"port": "80"}}, "`toolcrib.http.port`: input should be a valid integer"),
        (
            {"auth": {"issuer": "https://a.example"}, "scopes": {"add": "a b"}},
            "`toolcrib.scopes`: the scopes of `add` are words",
        ),
        ({"tokens_env": {"ann": "NOT_SET"}}, "the environment variable NOT_SET is not set"),
        (
            {"auth": {"issuer": "https://a.example", "client_secret_env": "NOT_SET"}},
            "the environment variable NOT_SET is not set",
        ),
        ({"scopes": {"add": "a"}}, "give its address with --issuer URL"),
        ({"groups": {"add": "finance"}}, "give its address with --issuer URL"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_field(toolcrib: Command, section: Any, said: str) -> None:
    Path("mcp.json").write_text(json.dumps({"toolcrib": section, "mcpServers": {"small": SMALL}}), "utf-8")

    done = toolcrib("serve", "mcp.json", "--http", "--port", "0")

    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
