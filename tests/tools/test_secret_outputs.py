"""Problems of outputs and answers whose type has something secret: they quote nothing of it, as those of inputs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from toolcrib.calls import ToolCall
from toolcrib.errors import InvalidArguments, InvalidOutput
from toolcrib.pipeline import Pipeline, Run
from toolcrib.rounds._typed_answer import typed_answer
from toolcrib.schema import Redacted, ToolSpec
from toolcrib.tools import Tool, ez_tool
from toolcrib.tools._outputs import checked_output

PIN = "xq4711"


def _refused(value: Any) -> Any:
    raise ValueError(f"bad {value}")


class OfField(BaseModel):
    user: str
    pin: SecretStr

    @field_validator("pin")
    @classmethod
    def _check(cls, pin: SecretStr) -> SecretStr:
        raise ValueError(f"{pin.get_secret_value()} is wrong")


class OfSibling(BaseModel):
    pin: SecretStr
    user: str

    @field_validator("user")
    @classmethod
    def _check(cls, user: str, info: Any) -> str:
        raise ValueError(f"not with {info.data['pin'].get_secret_value()}")


class OfModel(BaseModel):
    pin: Annotated[str, Redacted]

    @model_validator(mode="after")
    def _check(self) -> "OfModel":
        raise PydanticCustomError("pin", "it is {pin}", {"pin": self.pin.upper()})


class One(BaseModel):
    kind: Literal["one"]
    pin: SecretStr


class Two(BaseModel):
    kind: Literal["two"]


class Keys(BaseModel):
    keys: Annotated[dict[str, int], Redacted]


class Tagged(BaseModel):
    login: Annotated[One | Two, Redacted] = Field(discriminator="kind")


@dataclass
class Given:
    pin: Annotated[SecretStr, AfterValidator(lambda pin: _refused(pin.get_secret_value()))]


TYPES: dict[str, tuple[Any, Any]] = {
    "field": (OfField, {"user": "ann", "pin": PIN}),
    "sibling": (OfSibling, {"user": "ann", "pin": PIN}),
    "model": (OfModel, {"pin": PIN}),
    "list": (list[OfField], [{"user": "ann", "pin": PIN}]),
    "key": (Keys, {"keys": {PIN: "no number"}}),
    "tag": (Tagged, {"login": {"kind": PIN, "pin": "x"}}),
    "dataclass": (Given, {"pin": PIN}),
    "alone": (Annotated[SecretStr, AfterValidator(lambda pin: _refused(pin.get_secret_value()))], PIN),
}


def _returning(kind: Any) -> Tool[..., Any]:
    async def look() -> Any: ...

    look.__annotations__["return"] = kind
    return ez_tool(look)


def require_hidden(error: Exception) -> None:
    assert PIN.casefold() not in f"{error}{error!r}{error.__cause__}{error.__context__}".casefold()


@pytest.mark.parametrize("name", TYPES)
def test_the_problem_of_an_output_quotes_no_secret(name: str) -> None:
    kind, output = TYPES[name]

    with pytest.raises(InvalidOutput) as caught:
        checked_output(_returning(kind), "look", output)

    require_hidden(caught.value)


@pytest.mark.parametrize("wrap", [SecretStr, str], ids=["object", "text"])
def test_the_problem_of_a_hosts_output_quotes_no_secret(wrap: Callable[[str], Any]) -> None:
    with pytest.raises(InvalidOutput) as caught:
        checked_output(_returning(OfField), "look", {"user": "ann", "pin": wrap(PIN)})

    require_hidden(caught.value)


@pytest.mark.parametrize("name", [name for name in TYPES if name != "alone"])
def test_the_problem_of_an_answer_quotes_no_secret(name: str) -> None:
    kind, output = TYPES[name]

    with pytest.raises(InvalidOutput) as caught:
        typed_answer(json.dumps({"value": output} if isinstance(output, list) else output), kind)

    require_hidden(caught.value)


async def test_a_result_that_an_approver_gives_is_refused_without_its_secrets() -> None:
    pay = _returning(OfField)
    outcome: Any = await Pipeline([pay]).recover(ToolCall("look", {}, "call_1"), Run(), begun=1)

    with pytest.raises(InvalidOutput) as caught:
        Pipeline([pay]).check_answer("look", outcome.request.done({"user": "ann", "pin": PIN}, "ann"))
    require_hidden(caught.value)


def test_a_problem_says_what_pydantic_says_where_it_quotes_nothing() -> None:
    class Login(BaseModel):
        valid: int
        pin: SecretStr

    with pytest.raises(InvalidOutput) as caught:
        checked_output(_returning(Login), "look", {"valid": "yes", "pin": PIN})

    assert [(one.field, one.problem[:21]) for one in caught.value.problems] == [("valid", "Input should be a val")]


@pytest.mark.parametrize("kind", [OfSibling, OfField])
def test_the_validator_of_another_argument_quotes_no_secret(kind: Any) -> None:
    with pytest.raises(InvalidArguments) as caught:
        ToolSpec.from_model(kind, name="log_in").validate_model({"user": "ann", "pin": PIN})

    require_hidden(caught.value)
