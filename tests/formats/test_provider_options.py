"""What a provider is asked for beside a tool's schema, in the types of its own SDK."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from tests.formats.replies import NAMES, declarations, sdk_accepts_tools
from toolcrib.errors import FormatError, SchemaError
from toolcrib.formats import FormatName, Grammar, ProviderOptions, WireFormat, definition, definitions
from toolcrib.tools import Tool, ez_tool
from toolcrib.toolsets import Toolset

TEXT: dict[str, Any] = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
EVERY = ProviderOptions(
    defer_loading=True,
    allowed_callers=("direct", "programmatic", "code_execution_20260120"),
    input_examples=({"sql": "SELECT 1"},),
    cache_control="1h",
    eager_input_streaming=True,
    output_schema=True,
)
each_provider = pytest.mark.parametrize("provider", NAMES)


def running(options: ProviderOptions) -> Tool[..., Any]:
    @ez_tool(provider=options)
    def run_sql(sql: str) -> list[dict[str, int]]:
        """Run a query."""
        return []

    return run_sql


@each_provider
def test_the_sdk_accepts_every_option(provider: WireFormat) -> None:
    sdk_accepts_tools(provider, definitions([running(EVERY)], provider))


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("openai", {}),
        ("mistral", {}),
        ("bedrock", {}),
        ("ollama", {}),
        (
            "openai_responses",
            {
                "defer_loading": True,
                "allowed_callers": ["direct", "programmatic"],
                "output_schema": running(EVERY).return_schema,
            },
        ),
        (
            "anthropic",
            {
                "defer_loading": True,
                "allowed_callers": ["direct", "code_execution_20260120"],
                "input_examples": [{"sql": "SELECT 1"}],
                "cache_control": {"type": "ephemeral", "ttl": "1h"},
                "eager_input_streaming": True,
            },
        ),
    ],
)
def test_a_provider_is_sent_the_options_that_it_has(provider: WireFormat, sent: dict[str, Any]) -> None:
    [plain] = definitions([running(ProviderOptions())], provider)
    [made, *_] = definitions([running(EVERY)], provider)

    assert made == {**plain, **sent}


@pytest.mark.parametrize("provider", ["openai", "openai_responses"])
@pytest.mark.parametrize("text", [True, Grammar("lark", 'start: "SELECT" /.+/')])
def test_a_free_text_tool_is_what_the_sdk_calls_custom(provider: WireFormat, text: Any) -> None:
    [made] = definitions([running(ProviderOptions(free_text=text))], provider)

    assert made["type"] == "custom"
    assert made.get("custom", made)["format"]["type"] == ("text" if text is True else "grammar")
    sdk_accepts_tools(provider, [made])


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "mistral", "bedrock", "ollama"])
def test_a_free_text_tool_is_a_function_elsewhere(provider: WireFormat) -> None:
    assert definition("run", "", TEXT, provider, options=ProviderOptions(free_text=True)) == definition(
        "run", "", TEXT, provider
    )


def test_a_free_text_tool_has_one_argument() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}

    with pytest.raises(FormatError, match="takes one argument, a text"):
        definition("run", "", schema, "openai", options=ProviderOptions(free_text=True))


@each_provider
def test_a_tool_for_programs_alone_is_not_offered_to_the_model_itself(provider: WireFormat) -> None:
    options = ProviderOptions(allowed_callers=("programmatic",))

    if provider == "openai_responses":
        assert definition("run", "", TEXT, provider, options=options)["allowed_callers"] == ["programmatic"]
    else:
        with pytest.raises(FormatError, match="only be called by programmatic"):
            definition("run", "", TEXT, provider, options=options)


def test_options_of_a_request_stand_over_those_of_the_tool() -> None:
    tools = Toolset([running(ProviderOptions(defer_loading=True, cache_control="5m"))])

    [made] = tools.definitions(format="anthropic", options={"run_sql": ProviderOptions(defer_loading=False)})

    assert (made["defer_loading"], made["cache_control"]["ttl"]) == (False, "5m")


# --- one odd tool


def odd_ones() -> Toolset:
    @ez_tool(name="a/b")
    def named() -> None: ...

    @ez_tool
    def untyped(view: memoryview) -> None: ...

    return Toolset([named, running(ProviderOptions()), untyped])


@pytest.mark.parametrize("format", NAMES)
def test_one_odd_tool_is_left_out_with_an_error_that_names_it(
    format: FormatName, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "toolcrib.formats"):
        made = odd_ones().definitions(format=format)

    assert [one["name"] for one in declarations(format, made)] == ["run_sql"]
    assert ["`a/b`" in caplog.text, "`untyped`" in caplog.text, len(caplog.records)] == [True, True, 2]
    assert all(re.search(r"[^.]\. It is left out of", record.getMessage()) for record in caplog.records)


def test_one_odd_tool_is_an_error_by_choice() -> None:
    with pytest.raises((FormatError, SchemaError), match="`a/b`"):
        odd_ones().definitions(format="openai", refused="raise")
