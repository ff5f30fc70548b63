"""A result as each provider takes it: text, errors, images and files."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.formats.replies import NAMES, sdk_accepts
from toolcrib.calls import Media, render_value
from toolcrib.formats import PROVIDERS, WireCall, WireFormat, WireResult

each_provider = pytest.mark.parametrize("provider", NAMES)
CALL = WireCall("abcdefgh1", "look", "{}")
PNG = Media("image/png", b"\x89PNG", name="map.png")
PDF = Media("application/pdf", b"%PDF", name="map.pdf")
ZIP = Media("application/zip", b"PK", name="map.zip")
LINK = Media("image/png", url="https://example.org/map.png")
ELSEWHERE = Media("image/png", url="s3://maps/map.png")
DATA = base64.b64encode(b"\x89PNG").decode()


def answer(provider: WireFormat, *media: Media, text: str = "fine", is_error: bool = False) -> dict[str, Any]:
    shown = render_value([text, *media] if media else text)
    [made] = PROVIDERS[provider].answer([WireResult(CALL, shown.text, is_error, shown.parts)])
    return made


@each_provider
@pytest.mark.parametrize("media", [(), (PNG,), (PDF,), (ZIP,), (LINK,), (ELSEWHERE,), (PNG, PDF, ZIP, LINK)])
@pytest.mark.parametrize("text", ["fine", ""])
def test_the_sdk_accepts_every_result(provider: WireFormat, media: tuple[Media, ...], text: str) -> None:
    sdk_accepts(provider, [answer(provider, *media, text=text)])


@each_provider
def test_results_keep_their_order(provider: WireFormat) -> None:
    other = WireCall("abcdefgh2", "see", "{}")

    made = PROVIDERS[provider].answer([WireResult(other, "second"), WireResult(CALL, "first")])

    read = [result for item in made for result in PROVIDERS[provider].results_of(item)]
    assert [(result.call.id, result.content) for result in read] == [("abcdefgh2", "second"), ("abcdefgh1", "first")]


@each_provider
def test_no_results_are_no_items(provider: WireFormat) -> None:
    assert PROVIDERS[provider].answer([]) == []


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "bedrock"])
def test_an_error_is_said_and_read_back_where_there_is_a_way(provider: WireFormat) -> None:
    made = answer(provider, text="no such city", is_error=True)

    [read] = PROVIDERS[provider].results_of(made)
    assert (read.is_error, read.content) == (True, "no such city")


def test_an_error_is_said_in_the_providers_way() -> None:
    assert answer("anthropic", is_error=True)["content"][0]["is_error"] is True
    assert answer("gemini", is_error=True)["parts"][0]["functionResponse"]["response"] == {"error": "fine"}


def test_openais_tool_messages_take_text_alone() -> None:
    made = answer("openai", PNG, LINK)

    shown = "fine\n[image/png: map.png, 4 bytes]\n[image/png, https://example.org/map.png]"
    assert made == {"role": "tool", "tool_call_id": "abcdefgh1", "content": shown}


def test_responses_take_images_and_files() -> None:
    made = answer("openai_responses", PNG, PDF, LINK)

    pdf = f"data:application/pdf;base64,{PDF.base64}"
    assert made["output"] == [
        {"type": "input_text", "text": "fine"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"},
        {"type": "input_file", "filename": "map.pdf", "file_data": pdf},
        {"type": "input_image", "image_url": "https://example.org/map.png", "detail": "auto"},
    ]


def test_anthropic_takes_images_and_pdfs() -> None:
    [made] = answer("anthropic", PNG, PDF, ZIP, LINK)["content"]

    assert made["content"] == [
        {"type": "text", "text": "fine"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF.base64}},
        {"type": "text", "text": "[application/zip: map.zip, 2 bytes]"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/map.png"}},
    ]


def test_gemini_takes_bytes_in_a_response() -> None:
    made = answer("gemini", PNG, ZIP)["parts"][0]["functionResponse"]

    assert made["response"] == {"output": "fine\n[application/zip: map.zip, 2 bytes]"}
    assert made["parts"] == [{"inlineData": {"mimeType": "image/png", "data": DATA, "displayName": "map.png"}}]


def test_mistral_takes_images() -> None:
    made = answer("mistral", LINK, PDF)

    assert made["content"] == [
        {"type": "text", "text": "fine"},
        {"type": "image_url", "image_url": "https://example.org/map.png"},
        {"type": "text", "text": "[application/pdf: map.pdf, 4 bytes]"},
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"output": {"a": 1}}, ('{"a": 1}', False)),
        ({"temperature": 3}, ('{"temperature": 3}', False)),
        ({"error": "no"}, ("no", True)),
        ({}, ("{}", False)),
    ],
)
def test_what_others_answered_gemini_with_is_read(response: dict[str, Any], expected: tuple[str, bool]) -> None:
    item = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": response}}]}

    [read] = PROVIDERS["gemini"].results_of(item)

    assert (read.content, read.is_error) == expected


@each_provider
def test_an_address_that_no_provider_can_reach_is_a_placeholder(provider: WireFormat) -> None:
    made = answer(provider, ELSEWHERE)

    [read] = PROVIDERS[provider].results_of(made)
    assert read.content == "fine\n[image/png, s3://maps/map.png]"
