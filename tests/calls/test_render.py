"""Rendered: what a model is shown of a result, with media, cut where it is long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.test_media import FACTS, PNG, Chart
from toolcrib.calls import Completed, Failed, Media, Rejected, carried, render, render_value

WAV = Media("audio/wav", b"x")
LINE = "[image/png: chart.png, 5 bytes]"
CHART = json.dumps({"title": "t", "image": FACTS, "either": "", "anything": None})


@pytest.mark.parametrize("value", ["x" * 1000, ["x" * 10] * 100, {"a": "x" * 1000}])
@pytest.mark.parametrize("structured", [False, True])
def test_a_long_result_is_cut_for_the_model_and_whole_for_the_host(value: Any, structured: bool) -> None:
    outcome = Completed("find", "c1", value, max_result_chars=90)

    shown = render(outcome, structured=structured)

    assert len(shown.text) < 200
    assert "characters cut" in shown.text
    assert shown.value == (shown.text if structured else None)
    assert outcome.value == value


@pytest.mark.parametrize("value", ["a", 1, None, {"a": [1]}, (1, 2)])
def test_a_short_result_keeps_its_shape(value: Any) -> None:
    shown = render(Completed("find", "c1", value, max_result_chars=90), structured=True)

    assert shown.value == (list(value) if isinstance(value, tuple) else value)
    assert shown.text == (value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("outcome", [Rejected("pay", "c1", "no"), Failed("pay", "c1", "tool_error", "no", "OSError")])
def test_what_is_no_result_is_an_error(outcome: Any) -> None:
    assert render(outcome).is_error
    assert render(outcome).text == outcome.text()


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (PNG, (PNG,)),
        (["a", PNG, {"b": 1}, WAV], ("a", PNG, '{"b": 1}', WAV)),
        (("", PNG), (PNG,)),
        ([PNG, PNG], (PNG, PNG)),
        (Chart(title="t", image=PNG), (CHART, PNG)),
        ([{"a": PNG}, PNG], (json.dumps({"a": FACTS}), PNG, PNG)),
        ({"a": PNG, "b": [PNG]}, (json.dumps({"a": FACTS, "b": [FACTS]}), PNG, PNG)),
    ],
    ids=["alone", "in a list", "beside nothing", "twice", "in a model", "inside and beside", "the same twice inside"],
)
def test_text_and_media_come_in_their_order(value: Any, parts: Any) -> None:
    shown = render_value(value, structured=True)

    assert shown.parts == parts
    assert shown.text == "\n".join(str(part) for part in parts)


def test_the_text_beside_media_is_cut_as_a_whole() -> None:
    shown = render(Completed("look", "c1", ["a" * 80, PNG, "b" * 80], max_result_chars=30), structured=True)

    cut, image = shown.parts
    assert image is PNG
    assert cut == shown.value
    assert str(cut).startswith("a" * 20 + "\n[... 131 of 161 characters cut ...]\n")
    assert shown.text == f"{cut}\n{LINE}"


def test_media_that_are_not_taken_are_placeholders_in_the_text() -> None:
    parts = carried(("a", WAV, PNG, "b", WAV), lambda media: media.is_image)

    assert parts == ["a\n[audio/wav, 1 byte]", PNG, "b\n[audio/wav, 1 byte]"]


@given(st.lists(st.text(max_size=20) | st.just(PNG), max_size=6), st.integers(1, 40))
def test_no_media_are_lost_and_no_more_text_is_shown_than_may_be(value: list[Any], limit: int) -> None:
    shown = render_value(value, "look", limit)

    kept = [part for part in shown.parts if isinstance(part, Media)]
    words = "\n".join(part for part in shown.parts if isinstance(part, str)) if kept else shown.text
    assert kept == [part for part in value if part is PNG]
    assert len(words) <= limit + len("\n[... 1000 of 1000 characters cut ...]\n")


def test_bytes_that_are_no_text_say_what_to_return() -> None:
    shown = render(Completed("draw", "c1", b"\x89PNG"))

    assert shown.is_error
    assert "Media('image/png', data)" in shown.text


@pytest.mark.parametrize(
    "outcome", [Failed("find", "c1", "tool_error", "a \ud800"), Rejected("find", "c1", "a \ud800")]
)
def test_the_words_of_an_error_are_shown_without_half_characters(outcome: Failed | Rejected) -> None:
    text = render(outcome).text

    assert text.endswith("a \ufffd")
