"""Arguments as JSON shapes: for a record with secrets hidden, for a digest or safe keeping with the real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from toolcrib.schema._json_values import by_type, finite, jsonable, settle
from toolcrib.schema._markers import REDACTED
from toolcrib.schema._model import InputModel
from toolcrib.schema._root import ROOT
from toolcrib.schema._traits import Traits

__all__ = ["dump_values"]


def dump_values(
    inputs: InputModel, values: BaseModel | Mapping[str, Any], traits: Traits, redact: bool
) -> dict[str, Any]:
    """Return arguments as JSON shapes; what has no JSON form is shown by its type.

    Args:
        values: An input, or arguments by parameter name that need not be valid.
    """
    extra: dict[str, Any] = {}
    if isinstance(values, BaseModel):
        model = values
    elif inputs.is_root and ROOT not in values:  # there is nothing that its serialiser could take
        return _dump_misfits(inputs, values, traits, redact)
    elif traits.secrets:
        try:  # only a value of the right type knows what in it is secret
            model = inputs.validate_python(dict(values))
        except ValidationError:
            return _dump_misfits(inputs, values, traits, redact)
    else:
        model = _unvalidated(inputs, values)
        if not values.keys() <= inputs.names:
            extra = {name: jsonable(value) for name, value in values.items() if not inputs.takes(name)}
    try:
        dumped = _dump_model(inputs, model, traits, redact)
        return {**({ROOT: dumped} if inputs.is_root else dumped), **extra}
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return _dump_misfits(inputs, inputs.arguments(model), traits, redact)


def _unvalidated(inputs: InputModel, values: Mapping[str, Any]) -> BaseModel:
    """Return an input that holds `values` as they are, to be read by its serialiser and nothing else."""
    named = inputs.fields(values)
    inside = named
    extra: dict[str, Any] | None = {} if inputs.open else None
    if not named.keys() <= inputs.declared:
        inside = {name: value for name, value in named.items() if name in inputs.declared}
        extra = {name: value for name, value in named.items() if name not in inside} if inputs.open else None
    model = inputs.model.__new__(inputs.model)  # not model_construct, which runs the author's model_post_init
    object.__setattr__(model, "__dict__", inside)
    object.__setattr__(model, "__pydantic_fields_set__", set(inside))
    object.__setattr__(model, "__pydantic_extra__", extra)
    object.__setattr__(model, "__pydantic_private__", None)
    return model


def _dump_model(inputs: InputModel, model: BaseModel, traits: Traits, redact: bool) -> Any:
    unset = set(inputs.omitted - model.model_fields_set) if inputs.omitted else None
    shown = model.__pydantic_serializer__.to_python(
        model,
        mode="json",
        by_alias=True,
        round_trip=True,  # what is dumped validates again: no computed fields
        exclude=unset or None,
        warnings="error" if traits.secrets and redact else False,  # only a value of the right type is surely hidden
        fallback=by_type,
        context={"redact": redact},
    )
    unveil = bool(traits.secrets) and not redact
    return settle(finite(shown), model, unveil) if unveil or traits.sets else finite(shown)


def _dump_misfits(inputs: InputModel, values: Mapping[str, Any], traits: Traits, redact: bool) -> dict[str, Any]:
    """Return values that the serialiser cannot take, each by itself; a field with a secret in it is hidden whole."""
    if not redact:
        return {name: settle(jsonable(value), value, unveil=True) for name, value in values.items()}
    field_of = {argument: field for field, argument in inputs.renamed.items()}
    dumped: dict[str, Any] = {}
    for name, value in values.items():
        unknown = traits.secrets and not inputs.takes(name)  # it may be a misspelt secret
        hidden = unknown or field_of.get(name, name) in traits.secrets
        dumped[name] = REDACTED if hidden else settle(jsonable(value), value, unveil=False)
    return dumped
