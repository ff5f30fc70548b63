"""Media: what may be one, its JSON forms, and its place in other values."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from toolcrib._numbers import count_text
from toolcrib.calls import Media, jsonable, lenient, revived

PNG = Media("image/png", b"\x89PNG\xff", name="chart.png")
FACTS = {"kind": "media", "mime_type": "image/png", "size": 5, "name": "chart.png"}

texts = st.text(max_size=10)
media = st.builds(
    Media,
    st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain; charset=utf-8", "image/svg+xml"]),
    st.binary(max_size=30),
    st.none() | st.sampled_from(["https://example.org/a.png", "demo://resource/1"]),
    name=texts,
    title=texts,
    description=texts,
)


class Chart(BaseModel):
    title: str
    image: Media
    either: str | Media = ""
    anything: Any = None


@dataclass
class Pair:
    one: Media
    other: object


@given(media)
def test_media_survive_json_and_pickling(one: Media) -> None:
    assert Media.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert pickle.loads(pickle.dumps(one)) == one


@given(media)
def test_its_placeholder_is_one_line_and_its_repr_has_no_bytes(one: Media) -> None:
    assert "\n" not in str(one)
    assert f"<{count_text(len(one.data or b''), 'byte')}>" in repr(one)
    assert "data" not in one.facts()


@pytest.mark.parametrize(
    ("one", "placeholder"),
    [
        (PNG, "[image/png: chart.png, 5 bytes]"),
        (Media("image/png", b""), "[image/png, 0 bytes]"),
        (Media("audio/wav", url="https://example.org/a.wav"), "[audio/wav, https://example.org/a.wav]"),
        (Media("text/plain", b"x", name="a\nb] ok"), "[text/plain: a b] ok, 1 byte]"),
    ],
)
def test_a_placeholder_says_what_it_is(one: Media, placeholder: str) -> None:
    assert str(one) == placeholder


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((b"a/b", "image/png"), TypeError, "mime_type is b'a/b'; give a text"),
        (("png", b"x"), ValueError, "'png'"),
        (("image/png",), ValueError, "data or a url"),
        (("image/png", None, "charts/a.png"), ValueError, "begins with its scheme"),
        (("image/png", "iVBORw0K"), TypeError, "decode base64 text first"),
        (("image/png", [1, 2]), TypeError, "these are a list"),
    ],
)
def test_what_is_no_media_is_refused(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Media(*arguments)


def test_buffers_are_bytes() -> None:
    assert Media("image/png", bytearray(b"x")) == Media("image/png", memoryview(b"x")) == Media("image/png", b"x")


def test_the_link_of_bytes_holds_them() -> None:
    assert PNG.link == "data:image/png;base64,iVBOR/8="
    assert Media("image/png", url="https://example.org/a").link == "https://example.org/a"


@pytest.mark.parametrize("data", [{}, {"kind": "media"}, FACTS, {**FACTS, "data": "no base64!"}])
def test_a_dict_that_describes_no_media_is_refused(data: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- base64's own, too
        Media.from_dict(data)


# --- in other values


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (PNG, FACTS),
        ([PNG, "text"], [FACTS, "text"]),
        ((1, {"a": PNG}), [1, {"a": FACTS}]),
        (Pair(PNG, {"b": PNG}), {"one": FACTS, "other": {"b": FACTS}}),
        (
            Chart(title="t", image=PNG, either=PNG, anything=[PNG]),
            {"title": "t", "image": FACTS, "either": FACTS, "anything": [FACTS]},
        ),
    ],
    ids=["alone", "list", "tuple", "dataclass", "model"],
)
def test_models_and_records_have_the_facts_and_other_processes_the_bytes(value: Any, shape: Any) -> None:
    kept = lenient(value, media=True)

    assert jsonable(value) == lenient(value) == shape
    assert jsonable(value, media=True) == kept == to_jsonable_python(value)
    assert jsonable(revived(json.loads(json.dumps(kept)))) == shape
    assert PNG.base64 in json.dumps(kept)


def test_a_model_reads_its_own_json() -> None:
    chart = Chart(title="t", image=PNG, either=PNG)

    assert Chart.model_validate_json(chart.model_dump_json()) == chart
    assert Chart.model_validate(chart.model_dump()) == chart
    assert chart.model_dump()["image"] is PNG


def test_its_schema_fits_the_facts() -> None:
    schema = TypeAdapter(Media).json_schema(mode="serialization")

    assert set(schema["required"]) <= set(FACTS) <= set(schema["properties"])


@pytest.mark.parametrize("value", [{"kind": "media", "data": "x"}, {"kind": "media", "url": "a"}, {"kind": "memo"}])
def test_what_only_looks_like_media_stays_as_it_is(value: Any) -> None:
    assert revived([value]) == [value]
