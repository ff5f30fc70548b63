"""Two servers that people use: files in a folder, and a memory in a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.adapters.mcp_client.servers import FILESYSTEM, MEMORY, called, failed, outcome_of
from tests.npm import programs
from tests.npm.programs import NotInstalledError, command, script
from toolcrib.adapters.mcp_client import connect
from toolcrib.calls import Media, Suspended
from toolcrib.toolsets import Toolset

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "a.txt").write_text("one\ntwo\n")
    (made / "dot.png").write_bytes(b"\x89PNG")
    return made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def files(folder: Path) -> AsyncIterator[Toolset]:
    tools = connect(command(FILESYSTEM, str(folder)), prefix="fs_", approval=lambda tool: not tool.read_only)
    async with tools.open() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def memory(folder: Path) -> AsyncIterator[Toolset]:
    async with connect(command(MEMORY), env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}).open() as opened:
        yield opened


async def test_files_are_read_and_listed(files: Toolset, folder: Path) -> None:
    text = await called(files, "fs_read_text_file", path=str(folder / "a.txt"), head=1)
    listed = await called(files, "fs_list_directory", path=str(folder))

    assert text == {"content": "one"}
    assert "[FILE] a.txt" in listed["content"]


async def test_an_image_is_media_or_what_the_server_s_schema_says(files: Toolset, folder: Path) -> None:
    value = await called(files, "fs_read_media_file", path=str(folder / "dot.png"))

    if isinstance(value, dict):
        assert value["content"][0]["mimeType"] == "image/png"
    else:
        assert isinstance(value, Media)


async def test_what_writes_asks(files: Toolset, folder: Path) -> None:
    asked = await outcome_of(files, "fs_write_file", path=str(folder / "b.txt"), content="new")

    assert isinstance(asked, Suspended)
    assert not (folder / "b.txt").exists()
    assert files["fs_write_file"].tool.tags >= {"destructive"}


async def test_what_is_outside_is_refused_in_the_server_s_words(files: Toolset) -> None:
    outcome = await failed(files, "fs_read_text_file", path="/etc/hostname")

    assert outcome.error_type == "RemoteToolError"
    assert "Access denied" in outcome.message


async def test_what_is_remembered_is_found(memory: Toolset, folder: Path) -> None:
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes maps"]}

    await called(memory, "create_entities", entities=[entity])
    found = await called(memory, "search_nodes", query="maps")

    assert found["entities"] == [entity]
    assert json.loads((folder / "memory.jsonl").read_text())["name"] == "Ann"


async def test_nested_arguments_that_do_not_fit_are_named(memory: Toolset) -> None:
    outcome = await failed(memory, "create_entities", entities=[{"name": "Ann", "entityType": "person"}])

    assert outcome.problems[0].field.startswith("entities")
    assert "observations" in outcome.message


async def test_where_npm_s_packages_are_missing_a_sentence_says_what_installs_them() -> None:
    with pytest.raises(NotInstalledError, match="`make npm` installs it"):
        script("@modelcontextprotocol/server-nowhere")

    assert programs.MODULES.is_dir()
