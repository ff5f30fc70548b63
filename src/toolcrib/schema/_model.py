"""The input model of a tool: a pydantic model with one field for each argument that a caller may give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from typing_extensions import TypeForm

from toolcrib.errors import SchemaError
from toolcrib.schema._parameters import EMPTY, Annotations, Resolved

__all__ = ["InputModel", "input_of_function", "input_of_model"]

_TAKEN = frozenset(dir(BaseModel)) | frozenset(dir(type(BaseModel)))
_CONFIG = ConfigDict(extra="forbid", protected_namespaces=(), ser_json_inf_nan="strings")


class _Omitted:
    """Default of an optional key of `**kwargs: Unpack[...]`; it is never passed on."""

    def __repr__(self) -> str:
        return "..."


OMITTED: Any = _Omitted()


@dataclass(frozen=True, slots=True)
class InputModel:
    """A pydantic model, and how its fields become arguments.

    Attributes:
        renamed: Parameter name by field name, for names that a pydantic field cannot have.
        omitted: Fields that are no argument when they were not given.
        plain: The instance's `__dict__` is the arguments as they are.
        validate_json: The validator's own bound method, fetched once.
    """

    model: type[BaseModel]
    renamed: Mapping[str, str]
    omitted: frozenset[str]
    plain: bool
    validate_json: Callable[..., BaseModel]
    validate_python: Callable[..., BaseModel]

    def arguments(self, instance: BaseModel) -> dict[str, Any]:
        """Return the values of `instance` by parameter name."""
        if self.plain:
            return instance.__dict__.copy()
        given = instance.model_fields_set
        values = {
            self.renamed.get(name, name): value
            for name, value in instance.__dict__.items()
            if name in given or name not in self.omitted
        }
        values.update(instance.__pydantic_extra__ or {})
        return values

    def fields(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by field name: the way back from `arguments`."""
        if not self.renamed:
            return dict(arguments)
        fields = {argument: field for field, argument in self.renamed.items()}
        return {fields.get(name, name): value for name, value in arguments.items()}


def _finished(model: type[BaseModel], renamed: Mapping[str, str], omitted: frozenset[str]) -> InputModel:
    extras = model.model_config.get("extra") == "allow"
    validator = model.__pydantic_validator__
    return InputModel(
        model=model,
        renamed=renamed,
        omitted=omitted,
        plain=not (renamed or omitted or extras),
        validate_json=validator.validate_json,
        validate_python=validator.validate_python,
    )


def input_of_model(model: type[BaseModel]) -> InputModel:
    """Return `model` itself as the input model."""
    if not model.__pydantic_complete__:
        model.model_rebuild()
    return _finished(model, {}, frozenset())


def input_of_function(tool: str, module: str, parameters: Sequence[Resolved], names: Annotations) -> InputModel:
    """Return the input model of a function; `parameters` are those that a caller may give.

    Raises:
        SchemaError: Pydantic cannot describe the type of a parameter.
    """
    for parameter in parameters:
        if parameter.problem:
            raise SchemaError(tool, parameter.name, parameter.problem)
    try:
        model, renamed = _create(tool, module, parameters, names)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError, NameError, ValueError, RecursionError) as error:
        raise _blame(tool, module, parameters, names) or SchemaError(tool, "?", str(error)) from error
    omitted = {p.name for p in parameters if p.omitted}
    by_argument = {argument: field for field, argument in renamed.items()}
    return _finished(model, renamed, frozenset(by_argument.get(name, name) for name in omitted))


def _create(
    tool: str, module: str, parameters: Sequence[Resolved], names: Annotations
) -> tuple[type[BaseModel], dict[str, str]]:
    taken = {p.name for p in parameters}
    renamed: dict[str, str] = {}
    fields: dict[str, tuple[TypeForm[Any], Any]] = {}
    config = _CONFIG
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_KEYWORD:
            config = ConfigDict(**{**config, "extra": "allow"})
            fields["__pydantic_extra__"] = (cast(TypeForm[Any], dict[str, parameter.annotation]), ...)
            continue
        info = _field_info(parameter)
        own_alias = info.alias is not None or info.validation_alias is not None
        if own_alias:
            config = ConfigDict(**{**config, "validate_by_name": True, "validate_by_alias": True})
        field = _field_name(parameter.name, taken)
        annotation: Any = _annotation(parameter)
        if field != parameter.name:
            taken.add(field)
            renamed[field] = parameter.name
            if not own_alias:
                annotation = Annotated[annotation, Field(alias=parameter.name)]
        fields[field] = (annotation, _default(parameter))
    model = create_model(tool, __config__=config, __module__=module, **cast(Any, fields))
    if not model.__pydantic_complete__:
        model.model_rebuild(_types_namespace={**names.globals, **names.locals})
    return model, renamed


def _field_info(parameter: Resolved) -> FieldInfo:
    if isinstance(parameter.default, FieldInfo):
        return FieldInfo.from_annotated_attribute(parameter.annotation, parameter.default)
    return FieldInfo.from_annotation(parameter.annotation)


def _field_name(name: str, taken: set[str]) -> str:
    if not name.startswith("_") and name not in _TAKEN:
        return name
    field = name.strip("_") or "field"
    while field in taken or field in _TAKEN:
        field += "_"
    return field


def _annotation(parameter: Resolved) -> Any:
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return tuple[parameter.annotation, ...]
    return parameter.annotation


def _default(parameter: Resolved) -> Any:
    if parameter.omitted:
        return OMITTED
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return ()
    return ... if parameter.default is EMPTY else parameter.default


def _blame(tool: str, module: str, parameters: Sequence[Resolved], names: Annotations) -> SchemaError | None:
    """Return the error of the first parameter that cannot be described by itself."""
    for parameter in parameters:
        try:
            _create(tool, module, [parameter], names)
        except Exception as error:  # whatever the user's type raised
            return SchemaError(tool, parameter.name, f"has a type that pydantic cannot describe ({first_line(error)})")
    return None


def first_line(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")
