from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError

from toolcrib.schema import Injected, Redacted, RunContext

HIDE = {"redact": True}


class Card(BaseModel):
    holder: str
    number: Annotated[str, Redacted]


class Wallet(BaseModel):
    cards: list[Card]
    codes: dict[str, Annotated[list[int], Redacted]] = {}
    main: Annotated[Card, Redacted] | None = None


def test_redacted_is_hidden_at_any_depth() -> None:
    card = Card(holder="Ada", number="4111")
    wallet = Wallet(cards=[card], codes={"a": [1, 2]}, main=card)

    shown = wallet.model_dump(mode="json", context=HIDE)

    assert shown == {
        "cards": [{"holder": "Ada", "number": "[redacted]"}],
        "codes": {"a": "[redacted]"},
        "main": "[redacted]",
    }


def test_redacted_is_hidden_in_json_text_too() -> None:
    card = Card(holder="Ada", number="4111")

    assert card.model_dump_json(context=HIDE) == '{"holder":"Ada","number":"[redacted]"}'


@pytest.mark.parametrize("context", [None, {}, {"redact": False}, "redact"])
def test_redacted_shows_the_value_unless_the_context_asks(context: object) -> None:
    card = Card(holder="Ada", number="4111")

    assert card.model_dump(context=context)["number"] == "4111"


def test_redacted_leaves_validation_and_constraints_alone() -> None:
    class Login(BaseModel):
        before: Annotated[str, Redacted, Field(min_length=3, pattern="^k")]
        after: Annotated[str, Field(min_length=3), Redacted]

    assert Login(before="key", after="key").before == "key"
    assert Login.model_json_schema()["properties"]["before"]["minLength"] == 3
    with pytest.raises(ValidationError, match="at least 3 characters"):
        Login(before="k", after="key")


def test_redacted_keeps_the_serialiser_of_its_type() -> None:
    class Login(BaseModel):
        password: Annotated[SecretStr, Redacted]

    login = Login(password=SecretStr("hunter2"))

    assert login.model_dump(mode="json") == {"password": "**********"}
    assert login.model_dump(mode="json", context=HIDE) == {"password": "[redacted]"}


def test_markers_work_as_instances_too() -> None:
    class Login(BaseModel):
        password: Annotated[str, Redacted()]

    assert Login(password="hunter2").model_dump(context=HIDE) == {"password": "[redacted]"}
    assert isinstance(Injected(), Injected)


def test_a_context_takes_its_idempotency_key_from_the_call() -> None:
    plain = RunContext(deps=None, call_id="call_1", tool_name="t", run_id="s")
    durable = RunContext(deps=None, call_id="call_1", tool_name="t", run_id="s", idempotency_key="step-7")

    assert plain.idempotency_key == "call_1"
    assert durable.idempotency_key == "step-7"


def test_a_context_has_its_own_metadata_and_no_other_attributes() -> None:
    first = RunContext[int](1, "call_1", "t", "s")
    second = RunContext[int](1, "call_2", "t", "s")

    first.metadata["seen"] = True

    assert second.metadata == {}
    assert not hasattr(first, "__dict__")
