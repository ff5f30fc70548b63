"""The table of formats: detection goes by its rows, and no other module knows a format by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolcrib
from tests.formats.replies import NAMES, Asked, pieces, sdk_chunk, sdk_reply, whole
from toolcrib.formats import PROVIDERS, ProviderFormat, WireFormat, detected

ROOT = Path(toolcrib.__file__).parent
# They write replies in every format, and speak one format alone:
SPEAKERS = {  # what speaks one format with others: test doubles, agents whose framework has it
    "testing/_replies.py",
    "testing/_rounds.py",
    *(f"adapters/{name}.py" for name in ("pydantic_ai/_chat_model", "openai_agents/_tools")),
    *(f"adapters/{name}/_calls.py" for name in ("langchain", "google_adk")),
}
TWO = (Asked("abcdefgh1"), Asked("abcdefgh2"))
each_format = pytest.mark.parametrize("format", NAMES)


@each_format
def test_the_format_of_a_reply_is_detected_by_its_sdk_or_its_shape(format: WireFormat) -> None:
    reply = whole(format, "Let me look.", TWO)
    named = {**reply, "model": "mistral-large"} if format == "mistral" else reply

    assert (detected(sdk_reply(format, reply)), detected(named)) == (format, format)


@each_format
def test_the_format_of_a_stream_is_detected_from_its_first_chunk(format: WireFormat) -> None:
    first = pieces(format, "Let me look.", TWO)[0]

    assert detected(sdk_chunk(format, first)) == format


@pytest.mark.parametrize(("reply", "error"), [({"answer": 42}, ValueError), ({}, ValueError), ("hi", TypeError)])
def test_what_is_in_no_format_is_an_error(reply: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        detected(reply)


def test_a_new_format_is_one_class_and_one_row() -> None:
    made = _made_up()

    assert detected({"utterance": "hi"}, {**PROVIDERS, "made_up": made}) == "made_up"
    assert detected(whole("openai", "hi", ()), {**PROVIDERS, "made_up": made}) == "openai"


@pytest.mark.processes  # a read of the whole source
def test_no_other_module_knows_a_format_by_name() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if path.parent.name != "formats" and any(name in PROVIDERS for name in _texts(ast.parse(path.read_text())))
    }

    assert found == SPEAKERS


def _made_up() -> ProviderFormat:
    class MadeUp(type(PROVIDERS["openai"])):
        title = "made_up"

        def recognises(self, shape: Any) -> bool:
            return "utterance" in shape

    return MadeUp()


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts in a module, but for the types and defaults of parameters."""
    signatures = [node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    aside = {id(node) for given in signatures for part in ast.iter_child_nodes(given) for node in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in aside:
            yield node.value
