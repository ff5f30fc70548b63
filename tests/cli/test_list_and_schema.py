"""`list` and `schema`."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from tests.cli.conftest import Command


def test_list_shows_every_tool_with_what_is_special(toolcrib: Command, tools: str) -> None:
    result = toolcrib("list", tools)

    assert result.exit_code == 0
    assert "add(a: int, b: int = 1) -> int" in result.stdout
    assert [line.split()[-1] for line in result.stdout.splitlines() if line.startswith(("buy", "count"))] == [
        "approval",
        "approval",
        "streams",
    ]


def test_list_as_json(toolcrib: Command, tools: str) -> None:
    result = toolcrib("list", tools + ":count", "--json")

    assert json.loads(result.stdout) == [
        {"name": "count", "description": "Count.", "signature": "count(to: int)", "marks": ["streams"]}
    ]


def test_the_version_is_that_of_the_package(toolcrib: Command) -> None:
    result = toolcrib("--version")

    assert (result.exit_code, result.stdout) == (0, f"toolcrib {version('toolcrib')}\n")


def test_schema_is_raw_without_a_format(toolcrib: Command, tools: str) -> None:
    result = toolcrib("schema", tools + ":add")

    [shown] = json.loads(result.stdout)
    assert list(shown) == ["name", "description", "parameters", "returns"]
    assert shown["returns"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("format", "path"),
    [
        ("openai", [0, "function", "parameters"]),
        ("mistral", [0, "function", "parameters"]),
        ("anthropic", [0, "input_schema"]),
        ("gemini", [0, "functionDeclarations", 0, "parametersJsonSchema"]),
        ("bedrock", [0, "toolSpec", "inputSchema", "json"]),
        ("ollama", [0, "function", "parameters"]),
    ],
)
def test_schema_in_the_format_of_a_provider(toolcrib: Command, tools: str, format: str, path: list[str | int]) -> None:
    result = toolcrib("schema", tools + ":add", "--format", format)

    shown = json.loads(result.stdout)
    for step in path:
        shown = shown[step]
    assert list(shown["properties"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["schema", "tools.py", "--format", "xml"], "'xml' is not one of openai, openai_responses, anthropic"),
        (["schema", "nowhere.py"], "cannot load tools from `nowhere.py`: there is no file"),
        (["list", "tools.py:nope"], "`tools` has nothing named `nope`"),
        (["schema", "opaque.py"], "`f` has no schema: parameter `x`"),
        (["schema", "long.py", "--format", "openai"], "cannot be offered to openai: a name takes up to 64"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(toolcrib: Command, tools: str, args: list[str], said: str) -> None:
    header = "from toolcrib.tools import ez_tool\n\n\n"
    with open("opaque.py", "w") as opaque, open("long.py", "w") as long:
        opaque.write(f"{header}class X: ...\n\n\n@ez_tool\ndef f(x: X) -> None: ...\n")
        long.write(f"{header}@ez_tool(name='x' * 80)\ndef f() -> None: ...\n")

    result = toolcrib(*args)

    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", "").split())
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
