"""Arguments as JSON shapes: for a record with secrets hidden, for a digest or safe keeping with the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.schema._markers import REDACTED
from toolcrib.schema._model import InputModel

__all__ = ["dump_values"]


def dump_values(
    inputs: InputModel, values: BaseModel | Mapping[str, Any], secrets: frozenset[str], redact: bool
) -> dict[str, Any]:
    """Return arguments as JSON shapes; what has no JSON form is shown by its type.

    Args:
        values: An input, or arguments by parameter name that need not be valid.
        secrets: The fields that have something secret in them, `*` for undeclared ones.
    """
    extra: dict[str, Any] = {}
    if isinstance(values, BaseModel):
        model = values
    elif secrets:
        try:  # only a value of the right type knows what in it is secret
            model = inputs.validate_python(dict(values))
        except ValidationError:
            return _dump_misfits(inputs, values, secrets, redact)
    else:
        model = _unvalidated(inputs, values)
        extra = {name: _jsonable(value) for name, value in values.items() if not inputs.takes(name)}
    try:
        return {**_dump_model(inputs, model, secrets, redact), **extra}
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return _dump_misfits(inputs, inputs.arguments(model), secrets, redact)


def _unvalidated(inputs: InputModel, values: Mapping[str, Any]) -> BaseModel:
    """Return an input that holds `values` as they are, to be read by its serialiser and nothing else."""
    fields = inputs.fields(values)
    declared = inputs.model.model_fields
    inside = {name: value for name, value in fields.items() if name in declared}
    extra = {name: value for name, value in fields.items() if name not in declared} if inputs.open else None
    model = inputs.model.__new__(inputs.model)  # not model_construct, which runs the author's model_post_init
    object.__setattr__(model, "__dict__", inside)
    object.__setattr__(model, "__pydantic_fields_set__", set(inside))
    object.__setattr__(model, "__pydantic_extra__", extra)
    object.__setattr__(model, "__pydantic_private__", None)
    return model


def _dump_model(inputs: InputModel, model: BaseModel, secrets: frozenset[str], redact: bool) -> dict[str, Any]:
    unset = set(inputs.omitted - model.model_fields_set)

    def dump(mode: str) -> dict[str, Any]:
        return model.__pydantic_serializer__.to_python(
            model,
            mode=mode,
            by_alias=True,
            round_trip=True,  # what is dumped validates again: no computed fields
            exclude=unset or None,
            warnings="error" if secrets and redact else False,  # only a value of the right type is surely hidden
            fallback=_by_type,
            context={"redact": redact},
        )

    shown = _finite(dump("json"))
    return _unveil(shown, dump("python")) if secrets and not redact else shown


def _unveil(shown: Any, real: Any) -> Any:
    """Return `shown` with the content of each pydantic secret that stands at the same place in `real`."""
    if isinstance(real, SecretStr | SecretBytes | Secret):
        return _jsonable(cast("Secret[Any]", real).get_secret_value())
    if isinstance(shown, dict) and isinstance(real, dict):
        pairs = zip(cast("dict[str, Any]", shown).items(), cast("dict[Any, Any]", real).values(), strict=False)
        return {name: _unveil(value, inside) for (name, value), inside in pairs}
    if isinstance(shown, list) and isinstance(real, list | tuple | set | frozenset):
        items = zip(cast("list[Any]", shown), cast("Sequence[Any]", real), strict=False)
        return [_unveil(value, inside) for value, inside in items]
    return cast(Any, shown)


def _dump_misfits(
    inputs: InputModel, values: Mapping[str, Any], secrets: frozenset[str], redact: bool
) -> dict[str, Any]:
    """Return values that the serialiser cannot take, each by itself; a field with a secret in it is hidden whole."""
    if not redact:
        return {name: _unveil(_jsonable(value), value) for name, value in values.items()}
    fields = {argument: field for field, argument in inputs.renamed.items()}
    dumped: dict[str, Any] = {}
    for name, value in values.items():
        unknown = secrets and not inputs.takes(name)  # it may be a misspelt secret
        dumped[name] = REDACTED if unknown or fields.get(name, name) in secrets else _jsonable(value)
    return dumped


def _jsonable(value: Any) -> Any:
    for bytes_mode in ("utf8", "base64"):
        try:
            return _finite(to_jsonable_python(value, bytes_mode=bytes_mode, fallback=_by_type))
        except (PydanticSerializationError, ValueError, TypeError, RecursionError):
            continue
    return _by_type(value)


def _finite(value: Any) -> Any:
    """Return JSON shapes with the numbers that JSON does not have as text."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_finite(part) for part in cast("list[Any]", value)]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _by_type(value: Any) -> str:
    """Return a text that is the same in every process, which a repr with an address in it is not."""
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
