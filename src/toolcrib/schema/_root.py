"""Inputs that are no object by themselves, a union, an enum, a list: RootModels, whose value is the argument `root`.

Every provider wants an object with named arguments, without a union at the top. So the value gets the name that its
field has in the RootModel, to the model that calls and in the arguments; the input is the author's RootModel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

__all__ = ["ROOT", "RootValidators", "is_root", "root_validators", "with_root"]

ROOT = "root"


def is_root(model: type[BaseModel]) -> bool:
    """Return whether `model` is a RootModel; asked like this, because importing that loads half of pydantic."""
    return model.__pydantic_root_model__


class RootValidators(NamedTuple):
    """From `{"root": ...}` to the author's RootModel."""

    validate_json: Callable[..., BaseModel]
    validate_python: Callable[..., BaseModel]


class _Edited:
    """Has an instance of a union's member checked again: it may have been edited, and pydantic takes it as it is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain = handler(source)  # JSON has no instances, and is read faster and by its own rules without the function
        return core_schema.json_or_python_schema(plain, core_schema.no_info_before_validator_function(_anew, plain))


def _anew(value: Any) -> Any:
    if not isinstance(value, BaseModel):
        return value
    kind = type(value)
    if is_root(kind):
        return kind.__pydantic_validator__.validate_python(_anew(value.__dict__[ROOT]))
    given = {name: part for name, part in value.__dict__.items() if name in kind.model_fields}
    given.update(value.__pydantic_extra__ or {})
    return kind.__pydantic_validator__.validate_python(given, by_alias=True, by_name=True)


def root_validators(model: type[BaseModel]) -> RootValidators:
    """Return what reads the arguments of a RootModel; problems are found at `root`."""
    required = model.model_fields[ROOT].is_required()
    field: Any = (Annotated[model, _Edited()], Field() if required else Field(default_factory=model))
    around = create_model(
        model.__name__, __config__=ConfigDict(extra="forbid"), __module__=model.__module__, root=field
    )
    validator: Any = around.__pydantic_validator__

    def validate_json(raw: str | bytes) -> BaseModel:
        return validator.validate_json(raw).root

    def validate_python(values: Mapping[str, Any]) -> BaseModel:
        return validator.validate_python(values).root

    return RootValidators(validate_json, validate_python)


def with_root(schema: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a RootModel's value as that of an object with this one property.

    Of the descriptions the field's is kept; the class's is the tool's.
    """
    info = model.model_fields[ROOT]
    part = {key: value for key, value in schema.items() if key not in ("$defs", "description")}
    if info.description:
        part["description"] = info.description
    made: dict[str, Any] = {"type": "object", "properties": {ROOT: part}}
    if info.is_required():
        made["required"] = [ROOT]
    made["additionalProperties"] = False
    if "$defs" in schema:
        made["$defs"] = schema["$defs"]
    return made
