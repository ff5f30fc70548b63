from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, Secret, SecretBytes, SecretStr
from typing_extensions import TypedDict

from toolcrib.schema import Redacted, ToolSpec


class Login(BaseModel):
    user: str
    password: SecretStr
    pin: Annotated[int, Redacted] = 0


class Env(TypedDict):
    values: dict[str, Annotated[str, Redacted]]


class Chain(BaseModel):
    login: Login | None = None
    next: Chain | None = None


def spec_of(fn: Any) -> ToolSpec:
    return ToolSpec.from_function(fn, name="tool")


def connect(host: str, logins: list[Login], day: date = date(2025, 1, 31), env: Env | None = None) -> None: ...


CONNECT = spec_of(connect)
RAW = '{"host": "h", "logins": [{"user": "Ada", "password": "hunter2", "pin": 4711}], "env": {"values": {"A": "sk-1"}}}'


def test_secrets_are_hidden_for_a_record() -> None:
    shown = CONNECT.dump(CONNECT.validate_json(RAW), redact=True)

    assert shown == {
        "host": "h",
        "logins": [{"user": "Ada", "password": "**********", "pin": "[redacted]"}],
        "day": "2025-01-31",
        "env": {"values": {"A": "[redacted]"}},
    }


def test_secrets_are_real_for_safe_keeping_and_validate_again() -> None:
    model = CONNECT.validate_json(RAW)

    kept = CONNECT.dump(model, redact=False)

    assert kept["logins"] == [{"user": "Ada", "password": "hunter2", "pin": 4711}]
    assert CONNECT.validate_json(json.dumps(kept)) == model


def test_arguments_dump_as_the_input_does() -> None:
    model = CONNECT.validate_json(RAW)

    for redact in (True, False):
        assert CONNECT.dump(CONNECT.arguments(model), redact) == CONNECT.dump(model, redact)


@pytest.mark.parametrize(
    "given",
    [
        {"host": "h", "logins": "hunter2"},
        {"host": 3, "logins": [{"user": "Ada", "password": "hunter2"}], "passwort": "hunter2"},
        {"logins": [{"password": ["hunter2"]}]},
    ],
)
def test_arguments_that_do_not_fit_hide_what_may_be_secret(given: dict[str, Any]) -> None:
    shown = CONNECT.dump(given, redact=True)

    assert "hunter2" not in json.dumps(shown)
    assert shown["logins"] == "[redacted]"
    assert shown.get("host", "h") == given.get("host", "h")


def test_a_plain_text_in_place_of_a_secret_is_hidden() -> None:
    def tool(password: SecretStr = "hunter2") -> None: ...  # type: ignore  # pyright: ignore

    spec = spec_of(tool)

    assert "hunter2" not in json.dumps(spec.dump(spec.validate_json("{}"), redact=True))
    assert spec.dump({"password": SecretStr("hunter2")}, redact=False) == {"password": "hunter2"}


@pytest.mark.parametrize(
    ("annotation", "secret"),
    [
        (SecretStr, True),
        (SecretBytes, True),
        (Secret[date], True),
        (Annotated[int, Redacted], True),
        (dict[str, list[SecretStr]], True),
        (Login | None, True),
        (Env, True),
        (Chain, True),
        (str, False),
        (list[dict[str, Any]], False),
    ],
)
def test_secrets_are_found_at_any_depth(annotation: Any, secret: bool) -> None:
    def tool(x: Any) -> None: ...

    tool.__annotations__["x"] = annotation

    assert spec_of(tool).has_secrets is secret


def test_secrets_are_found_in_fields_of_any_name() -> None:
    class Odd(BaseModel):
        default: Annotated[str, Redacted]
        metadata: SecretStr
        type: Annotated[str, Redacted]

    def tool(config: Odd, serialization: set[str] = set()) -> None: ...  # noqa: B006

    spec = spec_of(tool)
    odd = {"default": "s1", "metadata": "s2", "type": "s3"}

    shown = spec.dump(spec.validate_python({"config": odd, "serialization": ["b", "a"]}), redact=True)

    assert shown["config"] == {"default": "[redacted]", "metadata": "**********", "type": "[redacted]"}
    assert shown["serialization"] == ["a", "b"]


def test_secrets_are_found_in_variadic_arguments() -> None:
    def tool(*codes: SecretStr, **keys: Annotated[str, Redacted]) -> None: ...

    spec = spec_of(tool)
    model = spec.validate_json('{"codes": ["c1"], "a": "k1"}')

    assert spec.has_secrets
    assert spec.dump(model, redact=True) == {"codes": ["**********"], "a": "[redacted]"}
    assert spec.dump(model, redact=False) == {"codes": ["c1"], "a": "k1"}


def test_every_kind_of_secret_is_real_without_redaction() -> None:
    def tool(raw: SecretBytes, day: Secret[date], inside: dict[str, tuple[SecretStr, int]]) -> None: ...

    spec = spec_of(tool)
    given = {"raw": "b", "day": "2025-01-31", "inside": {"x": ["s", 1]}}

    assert spec.dump(spec.validate_python(given), redact=False) == given


def test_values_that_are_not_valid_are_shown_as_they_are() -> None:
    def tool(count: int, when: date | None = None) -> None: ...

    spec = spec_of(tool)

    assert spec.dump({"count": "many", "other": [1]}, redact=True) == {"count": "many", "other": [1]}
    assert spec.dump({"when": date(2025, 1, 31)}, redact=True) == {"when": "2025-01-31"}


def test_what_has_no_json_form_is_shown_by_its_type() -> None:
    def tool(thing: Any, blob: bytes = b"") -> None: ...

    spec = spec_of(tool)

    assert spec.dump({"thing": object()}, redact=True) == {"thing": "<builtins.object>"}
    assert spec.dump({"thing": 1, "blob": b"\xff"}, redact=True) == {"thing": 1, "blob": "_w=="}
    assert spec.dump({"thing": float("nan")}, redact=True) == {"thing": "NaN"}


def test_dumping_does_not_run_the_model_s_own_code() -> None:
    class Loud(BaseModel):
        x: int

        def model_post_init(self, context: Any) -> None:
            raise RuntimeError("made")

    spec = ToolSpec.from_model(Loud, name="loud")

    assert spec.dump({"x": 1}, redact=True) == {"x": 1}


def test_a_model_made_without_validation_dumps() -> None:
    model = CONNECT.input_model.model_construct(host="h", logins=["hunter2"])

    assert "hunter2" not in json.dumps(CONNECT.dump(model, redact=True))


def test_numbers_that_json_does_not_have_survive() -> None:
    def tool(x: float, y: list[float]) -> None: ...

    spec = spec_of(tool)
    values = {"x": float("inf"), "y": [float("-inf"), 1.5]}

    dumped = spec.dump(values, redact=False)

    assert dumped == {"x": "Infinity", "y": ["-Infinity", 1.5]}
    assert spec.arguments(spec.validate_json(json.dumps(dumped))) == values


class Tag(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str


def test_sets_are_dumped_in_one_order_in_every_process() -> None:
    def tool(words: set[str], tags: frozenset[Tag], deep: dict[str, list[set[int]]]) -> None: ...

    spec = spec_of(tool)
    values = {"words": {"b", "a", "c"}, "tags": {Tag(name="y"), Tag(name="x")}, "deep": {"k": [{8, 0, -1}]}}

    for redact in (True, False):
        assert spec.dump(values, redact) == {
            "words": ["a", "b", "c"],
            "tags": [{"name": "x"}, {"name": "y"}],
            "deep": {"k": [[-1, 0, 8]]},
        }


def test_defaults_that_are_sets_are_shown_in_one_order() -> None:
    def tool(words: frozenset[str] = frozenset({"b", "a"}), more: set[str] = set()) -> None: ...  # noqa: B006

    spec = spec_of(tool)

    assert spec.parameters["properties"]["words"]["default"] == ["a", "b"]
    assert "words: frozenset[str] = frozenset({'a', 'b'}), more: set[str] = set()" in spec.signature


def test_secrets_behind_aliases_and_in_sets_and_dataclasses_are_real_without_redaction() -> None:
    class Key(BaseModel):
        value: SecretStr = Field(alias="keyValue")

    @dataclass
    class Box:
        inside: SecretStr

    def tool(key: Key, boxes: list[Box], all: set[SecretStr], root: RootModel[list[SecretStr]]) -> None: ...

    spec = spec_of(tool)
    given = {"key": {"keyValue": "s1"}, "boxes": [{"inside": "s2"}], "all": ["s3", "s4"], "root": ["s5"]}

    assert spec.dump(spec.validate_python(given), redact=False) == given
