"""Names of parameters that a provider refuses: sent under others, and read back."""

from typing import Any

import pytest

from toolcrib.formats import PROVIDERS, WireFormat, definition, own_arguments

ODD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "größe": {"type": "integer", "description": "In cm."},
        "user id": {"type": "string"},
        "user_id": {"type": "string"},
        "名前": {},
        "2nd": {"type": "string"},
        "x" * 80: {"type": "string"},
    },
    "required": ["größe", "2nd"],
}


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_a_name_that_is_refused_is_sent_under_another(provider: WireFormat) -> None:
    made = definition("look", "", ODD, provider)
    schema = made.get("input_schema") or made["parametersJsonSchema"]

    assert {"gro_e", "user_id_2", "user_id", "__", "x" * 56} <= set(schema["properties"])
    assert schema["properties"]["gro_e"] == {"type": "integer", "description": "In cm. (`größe`)"}
    assert schema["required"][0] == "gro_e"
    assert len(schema["properties"]) == len(ODD["properties"])


@pytest.mark.parametrize("provider", ["openai", "openai_responses", "mistral"])
def test_names_are_kept_where_any_is_taken(provider: WireFormat) -> None:
    made = definition("look", "", ODD, provider)

    assert made.get("function", made)["parameters"] == ODD


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
def test_arguments_come_back_under_their_own_names(provider: WireFormat) -> None:
    names = PROVIDERS[provider].sent_names(ODD)
    sent = {names.get(name, name): number for number, name in enumerate(ODD["properties"])}

    assert own_arguments(sent, names) == {name: number for number, name in enumerate(ODD["properties"])}


def test_many_names_that_become_one_are_told_apart() -> None:
    properties = {f"{character}ö": {} for character in "ßøłþ"} | {"__": {}}

    names = PROVIDERS["gemini"].sent_names({"properties": {**properties, "x ": {}, "x.": {}, "x_": {}}})

    assert len({*names.values()} | {"x_"}) == len(names) + 1
