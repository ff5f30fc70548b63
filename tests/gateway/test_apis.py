"""Section `openapi` of a file of servers: the gates of a server's tools, for the operations of an API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Pipeline, Run, Suspended, ToolCall, Toolset
from toolcrib.cli._find_toolset import is_file_of_servers
from toolcrib.credentials import new_key
from toolcrib.errors import TargetError
from toolcrib.gateway import read_gateway, toolset_of_file

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.test"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {
        "/pets": {
            "get": {"operationId": "list-pets", "responses": {"200": {"description": "fine"}}},
            "post": {
                "operationId": "add-pet",
                "security": [{"key": []}],
                "responses": {"201": {"description": "fine"}},
            },
        }
    },
}


def file_of(folder: Path, section: dict[str, Any] | None = None, **more: Any) -> Path:
    (folder / "pets.json").write_text(json.dumps(DOCUMENT))
    path = folder / "mcp.json"
    entry = {"document": "pets.json", "toolcrib": section or {}}
    path.write_text(json.dumps({"openapi": {"pets": entry}, **more}))
    return path


def tools_of(folder: Path, section: dict[str, Any] | None = None, **more: Any) -> Toolset:
    return toolset_of_file(file_of(folder, section, **more), {"KEY": "s3cret"})


def test_a_file_may_have_apis_alone(tmp_path: Path) -> None:
    assert tools_of(tmp_path).names() == ["list_pets", "add_pet"]
    assert is_file_of_servers(str(tmp_path / "mcp.json"))


async def test_beside_a_server_the_names_have_a_prefix(tmp_path: Path) -> None:
    servers = {"other": {"command": "nothing", "disabled": True}}

    assert tools_of(tmp_path, mcpServers=servers).names() == ["pets_list_pets", "pets_add_pet"]


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ({"prefix": "p_"}, ["p_list_pets", "p_add_pet"]),
        ({"tools": ["GET /pets"]}, ["list_pets"]),
        ({"exclude": ["add_*"]}, ["list_pets"]),
    ],
)
def test_a_section_says_which_tools(tmp_path: Path, section: dict[str, Any], names: list[str]) -> None:
    assert tools_of(tmp_path, section).names() == names


@pytest.mark.parametrize(
    "section", [{"approval": approval} for approval in (True, ["add_pet"], "unless_read_only")] + [{}]
)
async def test_approval_holds_also_when_nothing_is_said(tmp_path: Path, section: dict[str, Any]) -> None:
    outcome = await Pipeline(tools_of(tmp_path, section)).run(ToolCall("add_pet", {}))

    assert isinstance(outcome, Suspended)


async def test_approval_of_the_defaults_holds(tmp_path: Path) -> None:
    tools = tools_of(tmp_path, toolcrib={"defaults": {"approval": True, "limits": {"max_result_chars": 9, "x": 1}}})

    outcome = await Pipeline(tools).run(ToolCall("list_pets", {}))

    assert isinstance(outcome, Suspended)
    assert tools["list_pets"].tool.options.max_result_chars == 9


async def test_credentials_of_each_principal_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_CREDENTIALS_KEY", new_key())
    tools = tools_of(tmp_path, {"credentials": {"key": {"api_key": True}}})

    outcome = await Pipeline(tools).run(ToolCall("add_pet", {}), Run(principal="ann"))

    assert isinstance(outcome, Suspended)
    assert outcome.request.consent is not None
    assert (outcome.request.consent.principal, outcome.request.consent.server) == ("ann", "https://pets.test")
    assert read_gateway(tmp_path / "mcp.json").credentials is not None


def test_labels_are_those_of_the_tools(tmp_path: Path) -> None:
    tools = tools_of(tmp_path, {"labels": {"add_pet": {"effect": "send"}, "*": {"source": "trusted"}}})

    assert tools["add_pet"].tool.options.effect == "send"
    assert tools["list_pets"].tool.options.source == "trusted"


def test_an_option_beside_its_section_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"openapi": {"pets": {"document": "x", "needs_approval": true}}}', "utf-8")

    with pytest.raises(TargetError, match=r'`pets`: `needs_approval`: .* write "toolcrib": {"approval": true}'):
        toolset_of_file(tmp_path / "mcp.json")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"aproval": True}, r"the API `pets`: `toolcrib.aproval`: there is no such option. Did you mean `approval`"),
        ({"approval": ["add_pets"]}, r"the API `pets`: `toolcrib`: .*add_pets.*no such operation"),
        (
            {"approval": ["drop*"]},
            r"the API `pets`: `toolcrib`: `drop\*`: `approval` names it, and .*no such operation",
        ),
        ({"approval": ["always"]}, "no such operation; True is not a name: write it without the list"),
        ({"approval": ["unless_read_only"]}, 'names of tools; write "unless_read_only" without the list'),
        ({"credentials": {"kee": {"api_key_env": "KEY"}}}, "no such security scheme"),
        ({"credentials": {"key": {"api_key_env": "NONE"}}}, "the environment variable NONE is not set"),
        ({"credentials": {"key": {}}}, "it must have one of oauth, api_key, exchange and api_key_env"),
        ({"credentials": {"key": {"api_key_env": "KEY", "header": "X"}}}, "the document says where the key goes"),
    ],
)
def test_a_mistake_names_the_api_and_the_field(tmp_path: Path, section: dict[str, Any], problem: str) -> None:
    with pytest.raises(TargetError, match=problem):
        tools_of(tmp_path, section)


def test_a_document_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    (tmp_path / "pets.json").unlink()

    with pytest.raises(TargetError, match=r"the API `pets`: `document`: .*pets.json.*cannot be read"):
        toolset_of_file(path)


def test_a_name_of_a_server_and_an_api_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="a server has the same name"):
        tools_of(tmp_path, mcpServers={"pets": {"command": "x"}})
