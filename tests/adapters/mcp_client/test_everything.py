"""Everything that the protocol's own demonstration server has, over both of its transports, with one session each."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.adapters.mcp_client.servers import EVERYTHING, Told, called, failed, outcome_of, served_over_http
from tests.npm.programs import command
from toolcrib.adapters.mcp_client import Elicitation, ServerToolset, connect
from toolcrib.calls import Failed, Media, Suspended
from toolcrib.pipeline import Run
from toolcrib.record import ListSink
from toolcrib.toolsets import Toolset

pytestmark = pytest.mark.asyncio(loop_scope="module")
RESOURCES = {"read_architecture_md", "read_features_md", "query_dynamic_text_resource", "query_dynamic_blob_resource"}
TOOLS = {"echo", "get-sum", "get-structured-content", "get-roots-list", "trigger-elicitation-request"}


class Everything:
    """The server, opened once for all tests of the module."""

    def __init__(self, toolset: ServerToolset, tools: Toolset, asked: list[Elicitation]) -> None:
        self.toolset, self.tools, self.asked = toolset, tools, asked


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["stdio", "http"])
async def everything(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    asked: list[Elicitation] = []

    async def answer(question: Elicitation) -> dict[str, Any] | bool:
        asked.append(question)
        return question.url is not None or {"name": "Ann", "check": True}

    options: Any = {"elicit": answer, "sampling": sampled, "roots": [tmp_path_factory.mktemp("root")]}
    if request.param == "stdio":
        toolset = connect(command(EVERYTHING), name="everything", **options)
        async with toolset.open() as tools:
            yield Everything(toolset, tools, asked)
    else:
        with served_over_http(EVERYTHING) as url:
            toolset = connect(url, name="everything", headers={"x-who": "ann"}, **options)
            async with toolset.open() as tools:
                yield Everything(toolset, tools, asked)


async def sampled(context: Any, params: Any) -> Any:
    import mcp_types as types  # noqa: PLC0415

    said = params.messages[0].content
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(text=f"a model's answer to {said.text}"), model="scripted"
    )


async def test_tools_resources_and_templates_are_tools(everything: Everything) -> None:
    names = set(everything.tools.names())

    assert names >= TOOLS | RESOURCES
    assert everything.tools["echo"].parameters["properties"]["message"]["type"] == "string"
    assert everything.tools["get-structured-content"].return_schema is not None
    assert everything.tools["echo"].description == "Echoes back the input string"


async def test_text_is_a_value(everything: Everything) -> None:
    assert await called(everything.tools, "echo", message="hi") == "Echo: hi"
    assert await called(everything.tools, "get-sum", a=1, b=2) == "The sum of 1 and 2 is 3."


async def test_a_structured_result_is_a_value(everything: Everything) -> None:
    assert await called(everything.tools, "get-structured-content", location="New York") == {
        "temperature": 33,
        "conditions": "Cloudy",
        "humidity": 82,
    }


async def test_arguments_that_do_not_fit_never_reach_the_server(everything: Everything) -> None:
    wrong = await failed(everything.tools, "get-sum", a="x", b=2)
    missing = await failed(everything.tools, "get-sum", a=1)

    assert (wrong.code, wrong.retryable, wrong.problems[0].field) == ("invalid_arguments", True, "a")
    assert missing.problems[0].field == "b"


async def test_images_are_media(everything: Everything) -> None:
    outcome = await outcome_of(everything.tools, "get-tiny-image")

    words, image, _ = outcome.value
    assert isinstance(image, Media)
    assert (image.mime_type, image.data[:4], words) == ("image/png", b"\x89PNG", "Here's the image you requested:")
    assert f"[image/png, {len(image.data):,} bytes]" in outcome.text()


async def test_resources_in_results_say_where_they_are_from(everything: Everything) -> None:
    links = await called(everything.tools, "get-resource-links", count=2)
    text = (await called(everything.tools, "get-resource-reference", resourceType="Text", resourceId=1))[1]
    blob = (await called(everything.tools, "get-resource-reference", resourceType="Blob", resourceId=1))[1]

    assert [link["uri"].rpartition("/")[2] for link in links[1:]] == ["1", "2"]
    assert text["uri"] == "demo://resource/dynamic/text/1"
    assert text["text"].startswith("Resource 1")
    assert (blob.url, blob.data[:10]) == ("demo://resource/dynamic/blob/1", b"Resource 1")


async def test_a_static_resource_is_read_and_a_template_is_filled_in(everything: Everything) -> None:
    features = await called(everything.tools, "read_features_md")
    text = await called(everything.tools, "query_dynamic_text_resource", resourceId="7")
    blob = await called(everything.tools, "query_dynamic_blob_resource", resourceId="7")

    assert features.startswith("# Everything Server")
    assert text.startswith("Resource 7")
    assert blob.data.startswith(b"Resource 7")
    assert everything.tools["query_dynamic_text_resource"].parameters["required"] == ["resourceId"]


async def test_a_file_that_a_tool_makes_is_read_where_it_says(everything: Everything) -> None:
    made = await called(
        everything.tools, "gzip-file-as-resource", name="a.gz", data="data:text/plain,hello", outputType="resourceLink"
    )
    held = await everything.toolset.read_resource(made["uri"])

    assert gzip.decompress(held.data) == b"hello"


async def test_a_new_resource_is_a_new_tool_of_the_open_toolset(everything: Everything) -> None:
    told = Told()
    everything.tools.listen_for_renewal(told)

    await called(everything.tools, "gzip-file-as-resource", name="new.gz", data="data:text/plain,hello")
    while "read_new_gz" not in everything.tools:
        await told.wait()

    assert gzip.decompress((await called(everything.tools, "read_new_gz")).data) == b"hello"


async def test_what_the_server_refuses_is_a_failure_in_its_words(everything: Everything) -> None:
    outcome = await failed(everything.tools, "query_dynamic_text_resource", resourceId="none")

    assert (outcome.code, outcome.error_type) == ("remote_tool_error", "RemoteToolError")
    assert "none" in outcome.message


async def test_progress_is_told_as_it_comes(everything: Everything) -> None:
    sink = ListSink()

    outcome = await outcome_of(everything.tools, "trigger-long-running-operation", sink, duration=0.06, steps=3)

    told = [event.data["progress"] for event in sink.events if event.kind == "progressed"]
    assert told in ([1, 3], [1, 2, 3])  # what comes fast is not all told, but for the last
    assert outcome.text().startswith("Long running operation completed")


async def test_a_timeout_ends_the_call_and_the_session_goes_on(everything: Everything) -> None:
    hurried = everything.tools.with_timeout(0.05)

    outcome = await failed(hurried, "trigger-long-running-operation", duration=30, steps=1)

    assert outcome.code == "tool_timeout"
    assert await called(everything.tools, "echo", message="still here") == "Echo: still here"


async def test_a_question_of_the_server_is_answered(everything: Everything) -> None:
    everything.asked.clear()

    answered = await called(everything.tools, "trigger-elicitation-request")
    visited = await called(everything.tools, "trigger-url-elicitation", url="https://example.com/sign-in")

    question, link = everything.asked
    assert "- Name: Ann" in answered[1]
    assert (question.server, question.tool, question.schema["required"]) == (
        "everything",
        "trigger-elicitation-request",
        ["name"],
    )
    assert link.url == "https://example.com/sign-in"
    assert "completed" in visited[0]


async def test_a_model_is_asked_by_the_callback(everything: Everything) -> None:
    said = await called(everything.tools, "trigger-sampling-request", prompt="2+2?", maxTokens=5)

    assert "a model's answer to" in str(said)


async def test_the_server_is_told_its_roots(everything: Everything) -> None:
    assert "file:///" in await called(everything.tools, "get-roots-list")


async def test_prompts_are_listed_and_filled_in(everything: Everything) -> None:
    prompts = {prompt.name: prompt for prompt in await everything.toolset.list_prompts()}
    filled = await everything.toolset.get_prompt("args-prompt", {"city": "Oslo"})

    assert prompts["args-prompt"].required == ("city",)
    assert filled.messages[0].content == "What's weather in Oslo?"


async def test_a_prompt_may_hold_a_resource(everything: Everything) -> None:
    filled = await everything.toolset.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "1"})

    assert filled.messages[1].content["uri"] == "demo://resource/dynamic/text/1"


async def test_log_lines_of_the_server_are_in_our_log(everything: Everything, caplog: pytest.LogCaptureFixture) -> None:
    told, logger = Told(), logging.getLogger("toolcrib.mcp")
    logger.addHandler(told)

    with caplog.at_level(logging.DEBUG, "toolcrib.mcp"):
        await called(everything.tools, "toggle-simulated-logging")
        await told.wait()
    await called(everything.tools, "toggle-simulated-logging")
    logger.removeHandler(told)

    assert any(line.startswith("everything: ") for line in caplog.messages)


async def test_hints_are_tags_and_no_gate(everything: Everything) -> None:
    entry = everything.tools["trigger-long-running-operation"]

    assert entry.tool.tags >= {"mcp", "read_only", "idempotent", "closed_world"}
    assert not entry.tool.options.idempotent
    assert isinstance(await outcome_of(everything.tools.with_approval(), "echo", message="hi"), Suspended)


async def test_calls_run_side_by_side_on_one_session(everything: Everything) -> None:
    calls = [called(everything.tools, "echo", message=str(number)) for number in range(20)]

    assert await asyncio.gather(*calls) == [f"Echo: {number}" for number in range(20)]


async def test_a_cancelled_call_is_over(everything: Everything) -> None:
    call = asyncio.create_task(outcome_of(everything.tools, "trigger-long-running-operation", duration=30, steps=1))
    await asyncio.sleep(0)

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert isinstance(await outcome_of(everything.tools, "gone", run=Run()), Failed)
