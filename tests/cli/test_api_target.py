"""OpenAPI documents as targets of the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.openapi.standin import document, operation, parameter
from tests.openapi.test_document import served

PETS = {
    "/pets/{id}": {
        "get": operation("show_pet", [parameter("id", "path", {"type": "integer"})], security=[{"key": []}]),
        "delete": operation("drop_pet", [parameter("id", "path", {"type": "integer"})]),
    }
}
SCHEMES = {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}}


def written(address: str, name: str = "pets.json") -> str:
    """Write a document of a server at this address."""
    found = document(PETS, components=SCHEMES) | {"servers": [{"url": address}]}
    Path(name).write_text(json.dumps(found), "utf-8")
    return name


@pytest.mark.parametrize("name", ["pets.json", "pets.yaml", "pets.yml"])
def test_a_document_is_a_target_as_any_other(toolcrib: Command, name: str) -> None:
    target = written("http://127.0.0.1:1", name)

    listed = json.loads(toolcrib("list", target, "--json").stdout)
    inspected = toolcrib("inspect", target).stdout

    marks = {tool["name"]: tool["marks"] for tool in listed}
    assert marks == {"show_pet": ["#openapi", "#read_only"], "drop_pet": ["approval", "#openapi"]}
    assert "from:  DELETE /pets/{id} of the OpenAPI document `Stand-in`" in inspected


def test_a_document_from_the_web_is_a_target_that_is_called(toolcrib: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    files: dict[str, Any] = {"/v1/pets/7?key=s3cret": {"name": "Rex"}}
    monkeypatch.setenv("TOOLCRIB_API_CREDENTIALS", "key=s3cret")
    with served(files, asked) as address:
        files["/api.json"] = document(PETS, components=SCHEMES) | {"servers": [{"url": "/v1"}]}
        files["/api"] = files["/api.json"]
        called = toolcrib("call", f"{address}/api.json", "show_pet", '{"id": 7}')
        also = toolcrib("call", f"openapi:{address}/api", "show_pet", '{"id": 7}', "--json")

    assert json.loads(called.stdout) == {"name": "Rex"}
    assert json.loads(also.stdout)["value"] == {"name": "Rex"}
    assert asked == ["/api.json", "/v1/pets/7?key=s3cret", "/api", "/v1/pets/7?key=s3cret"]


def test_what_writes_needs_approval(toolcrib: Command) -> None:
    done = toolcrib("call", written("http://127.0.0.1:1"), "drop_pet", '{"id": 7}', "--suspend")

    assert done.exit_code == 3
    assert "DELETE http://127.0.0.1:1/pets/7" in done.stderr


def test_a_program_calls_the_operations(toolcrib: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_API_CREDENTIALS", "key=k")
    with served({"/pets/7?key=k": {"name": "Rex"}}, []) as address:
        monkeypatch.setenv("TOOLCRIB_API_SERVER", address)
        done = toolcrib("exec", written("http://127.0.0.1:1"), "-", stdin="print(show_pet(id=7)['name'])")

    assert done.exit_code == 0
    assert "Rex" in done.stdout


def test_a_document_of_swagger_2_is_an_error_that_names_the_mend(toolcrib: Command) -> None:
    Path("old.json").write_text(json.dumps({"swagger": "2.0", "paths": {}}), "utf-8")

    done = toolcrib("list", "old.json")

    assert done.exit_code == 2
    assert "npx swagger2openapi" in done.stderr


@pytest.mark.parametrize("given", ["key", "=x", "key="])
def test_credentials_that_cannot_be_read_are_an_error(
    toolcrib: Command, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("TOOLCRIB_API_CREDENTIALS", given)

    done = toolcrib("list", written("http://127.0.0.1:1"))

    assert done.exit_code == 2
    assert "TOOLCRIB_API_CREDENTIALS is NAME=SECRET" in done.stderr
