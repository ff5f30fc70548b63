"""Recordings in each shape that VCR writes, of replies of our own making: what the replay counts in them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.recordings import GitError, Recorded, asked, fetch, recorded, replayed, table
from tests.formats.replies import NAMES, Asked, pieces, whole
from toolcrib.formats import WireFormat

PLACES: dict[WireFormat, str] = {
    "openai": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "gemini": "https://google/v1beta/models/gemini:generateContent",
    "mistral": "https://api.mistral.ai/v1/chat/completions",
    "bedrock": "https://bedrock/model/claude/converse",
    "gemini_interactions": "https://generativelanguage.googleapis.com/v1beta/interactions",
    "cohere": "https://api.cohere.com/v2/chat",
    "ollama": "http://127.0.0.1:11434/api/chat",
}
TWO = (Asked("abcdefgh1"), Asked("abcdefgh2"))


def events(chunks: Sequence[Any]) -> str:
    return "".join(f"event: x\ndata: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def lines(chunks: Sequence[Any]) -> str:
    return "".join(f"{json.dumps(chunk)}\n" for chunk in chunks)


def cassette(format: WireFormat, response: dict[str, Any], key: str = "interactions") -> str:
    request = {"uri": PLACES[format], "body": json.dumps({"messages": []}), "method": "POST"}
    return yaml.safe_dump({key: [{"request": request, "response": response}]})


@pytest.mark.parametrize("format", NAMES)
@pytest.mark.parametrize("shape", ["python", "parsed", "ruby", "bytes"])
def test_the_calls_of_a_recorded_reply_are_counted_twice(format: WireFormat, shape: str) -> None:
    reply = whole(format, "Let me look.", TWO)
    text = json.dumps(reply)
    made = {
        "python": cassette(format, {"body": {"string": text}, "status": {"code": 200}}),
        "parsed": cassette(format, {"parsed_body": reply, "status": {"code": 200}}),
        "ruby": cassette(format, {"body": {"encoding": "UTF-8", "string": text}}, "http_interactions"),
        "bytes": cassette(format, {"body": {"string": text.encode()}}),
    }[shape]

    [one] = recorded(made)

    counted = replayed(one)
    assert (asked(one), counted["calls"], counted["missed"], counted["errors"]) == (2, 2, 0, 0)
    assert (counted["replies"], counted["streams"], counted["uncommitted"]) == (1, 0, 0)


@pytest.mark.parametrize("format", [name for name in NAMES if name != "bedrock"])
def test_no_call_of_a_cut_stream_runs(format: WireFormat) -> None:
    chunks = pieces(format, "Let me look.", TWO)
    body = lines(chunks) if format == "ollama" else events(chunks)

    [one] = recorded(cassette(format, {"body": {"string": body}, "status": {"code": 200}}))

    counted = replayed(one)
    assert (one.is_stream, counted["calls"], counted["ran early"], counted["errors"]) == (True, 2, 0, 0)
    assert counted["prefixes"] > 0


@pytest.mark.parametrize(
    "response",
    [{"status": {"code": 400}, "body": {"string": "{}"}}, {"body": {"string": "<html>"}}, {"body": {"string": ""}}, {}],
)
def test_what_is_no_reply_is_left_out(response: dict[str, Any]) -> None:
    assert [*recorded(cassette("openai", response))] == []


def test_a_request_that_a_provider_took_is_checked() -> None:
    history = [{"role": "tool", "tool_call_id": "c1", "content": "1"}]
    one = Recorded("openai", [whole("openai", "Hi.", ())], False, history)

    counted = replayed(one)

    assert (counted["histories"], counted["refused"], counted["uncommitted"]) == (1, 1, 0)


def test_a_call_that_the_format_does_not_read_is_missed() -> None:
    reply = whole("gemini", "", TWO)
    reply["candidates"][0]["content"]["parts"] = [
        {"toolCall": {"functionCall": {"name": "look"}}},
        {"text": "Well."},
    ]

    assert replayed(Recorded("gemini", [reply], False, []))["missed"] == 1


def test_the_table_has_a_row_for_each_format_and_one_for_all() -> None:
    counts = {name: replayed(Recorded(name, [whole(name, "Hi.", ())], False, [])) for name in NAMES}

    rows = table(counts).splitlines()

    assert len(rows) == 2 + len(NAMES) + 1
    assert rows[-1].startswith(f"| all | {len(NAMES)} |")


def git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    command = ["git", "-C", str(folder), *author, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    git(folder, "init", "--quiet")
    folder.joinpath("a.yaml").write_text("interactions: []\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Record")
    return folder


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_commit_is_fetched_where_it_is_missing(source: Path, tmp_path: Path, is_begun: bool) -> None:
    commit, copy = git(source, "rev-parse", "HEAD"), tmp_path / "copies" / "a+b"
    if is_begun:  # what a fetch that broke off has left
        copy.mkdir(parents=True)
        git(copy, "init", "--quiet", "--bare")

    fetch(source.as_uri(), commit, copy)
    fetch("file:///nowhere", commit, copy)  # it is there

    assert git(copy, "show", f"{commit}:a.yaml") == "interactions: []"


def test_a_fetch_that_fails_says_why_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    missing, copies = "0" * 40, tmp_path / "copies"

    with pytest.raises(GitError, match=r"`git fetch` failed: fatal: .*"):
        fetch(source.as_uri(), missing, copies / "a+b")

    assert [*copies.iterdir()] == []
