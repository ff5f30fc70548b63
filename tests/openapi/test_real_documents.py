"""Documents of real APIs from npm: all of their operations become tools, as `make apis` shows of thousands more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.npm.programs import MODULES, NotInstalledError
from tests.openapi.directory import faults_of
from toolcrib.errors import DocumentError
from toolcrib.openapi import toolset

DOCUMENTS = {
    "@blockfrost/openapi": ("openapi.yaml", 120),
    "@directus/specs": ("dist/openapi.json", 136),
}


def found(package: str) -> Path:
    path = MODULES / package / DOCUMENTS[package][0]
    if not path.exists():
        raise NotInstalledError(package)
    return path


@pytest.mark.parametrize("package", DOCUMENTS)
def test_all_operations_become_tools_for_every_provider(package: str) -> None:
    count, faults = faults_of(found(package))

    assert count >= DOCUMENTS[package][1]
    assert faults == []


def test_what_is_shown_to_a_model_is_bounded() -> None:
    tools = toolset(found("@directus/specs"), server="https://api.test", max_schema_chars=4_000)

    assert max(len(str(entry.parameters)) for entry in tools) <= 5_000
    assert max(len(entry.description) for entry in tools) <= 240


def test_a_document_that_names_no_server_is_refused_in_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DocumentError, match=r"can be used: each names no server on the web .* server='https"):
        toolset(found("@directus/specs"))

    assert caplog.messages == []


def test_a_problem_of_several_operations_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    elsewhere = {"servers": [{"url": "/"}], "responses": {}}
    paths = {f"/{name}": {"get": {"operationId": name, **elsewhere}} for name in ("one", "two", "three")}
    paths["/four"] = {"get": {"operationId": "four", "responses": {}}}
    described = {"openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "paths": paths}
    (tmp_path / "api.json").write_text(json.dumps(described | {"servers": [{"url": "https://api.test"}]}))

    assert toolset(tmp_path / "api.json").names() == ["four"]
    [said] = caplog.messages
    assert "its operation `one` (and 2 others)" in said
