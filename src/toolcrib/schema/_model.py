"""The input model of a tool: a pydantic model with one field for each argument that a caller may give."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from inspect import Parameter
from threading import RLock
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic.aliases import AliasChoices, AliasPath
from pydantic_core import InitErrorDetails, PydanticCustomError

from toolcrib.errors import SchemaError
from toolcrib.jsonschema import SchemaWalk
from toolcrib.schema._core_schema import facts_of, fields_of, secrets_of
from toolcrib.schema._json_form import infinite_place, reading_key
from toolcrib.schema._json_schema import SchemaGenerator, as_object, tidy
from toolcrib.schema._marked_secrets import MarkedSecrets
from toolcrib.schema._markers import Redacted, is_field
from toolcrib.schema._parameters import EMPTY, Annotations, Resolved, is_parameter_name
from toolcrib.schema._portable_types import allowing_default, converted_default, portable

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_WARNINGS = RLock()  # the filters are the process's; two threads must not put back each other's
ROOT = "root"
_TAKEN = frozenset(dir(BaseModel)) | frozenset(dir(type(BaseModel)))
_OVERFLOW = re.compile(r"[eE]\+?\d\d\d")
_DIGITS = re.compile(r"\d{300}")  # a number of so many is infinite where it is read with decimals
_CLOSED = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)

Check: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Raises pydantic's ValidationError, or a ValueError, for arguments that do not fit."""

_BOOLEANS: Mapping[bool, dict[str, Any]] = {True: {}, False: {"not": {}}}
_KINDS = {True: Parameter.POSITIONAL_OR_KEYWORD, False: Parameter.KEYWORD_ONLY}


class _Omitted:
    """Default of an optional key of `**kwargs: Unpack[...]`; it is never passed on."""


_OMITTED = _Omitted()


class InputModel:
    """A pydantic model, and how its fields become arguments.

    Attributes:
        renamed: Parameter name by field name, for names that a pydantic field cannot have.
        omitted: Fields that are not an argument when they were not given.
        open: It takes arguments that it does not declare.
        lenient: Its author left it to pydantic to ignore unknown keys; they are a problem of the call all the same.
        plain: The instance's `__dict__` is the arguments as they are.
        is_root: The model is a RootModel, and its value the one argument `root`.
        names: Every name that an argument may go by, aliases included.
        core_schema: Pydantic's core schema of the model.
        facts: The facts about it.
        marked: The secrets that the JSON schema it was made of marks; None where it was made of types.
        validate_json: The validator's own bound method, fetched once; `strict=True` leaves out pydantic's conversions.
    """

    def __init__(
        self, model: type[BaseModel], renamed: Mapping[str, str], omitted: frozenset[str], lenient: bool
    ) -> None:
        self.model, self.renamed, self.omitted, self.lenient = model, renamed, omitted, lenient
        self.open = model.model_config.get("extra") == "allow"
        self.is_root = is_root(model)
        self.plain = not (renamed or omitted or self.open)
        aliases = {alias for info in model.model_fields.values() for alias in aliases_of(info)}
        self.names = model.model_fields.keys() | aliases
        outer = around_root(model) if self.is_root else model
        self.core_schema = outer.__pydantic_core_schema__
        self.facts = facts_of(self.core_schema)
        validator = outer.__pydantic_validator__
        self.validate_json: Callable[..., Any] = validator.validate_json
        if self.facts.has_aliases:  # the keys of the canonical form are read in any case
            self.validate_json = partial(validator.validate_json, by_alias=True, by_name=True)
        # edited arguments come back by name
        self.validate_python: Callable[..., Any] = partial(validator.validate_python, by_alias=True, by_name=True)
        # whose numbers may be infinite though nothing says so, `*` for those not declared
        top = fields_of(self.core_schema)
        parts = dict(top.named)
        if self.open:
            parts["*"] = {"type": "any"} if top.extras is None else top.extras
        config = {"allow_inf_nan": self.model.model_config.get("allow_inf_nan")}
        facts = {name: facts_of([part, top.definitions], config) for name, part in parts.items()}
        self._unbounded = frozenset(name for name, part in facts.items() if part.may_be_infinite)
        if self._unbounded:
            self.validate_json = partial(self._read_finite, self.validate_json)
            self.validate_python = partial(self._read_finite, self.validate_python)
        if self.is_root:
            self.validate_json, self.validate_python = inner_of(self.validate_json), inner_of(self.validate_python)
        self._secrets: frozenset[str] | None = None
        self.marked: MarkedSecrets | None = None

    @property
    def has_objects(self) -> bool:
        """True if an argument may be an object of a class, which pydantic does not validate a second time."""
        top = fields_of(self.core_schema)
        return len(facts_of([*top.named.values(), top.definitions]).kinds & {"model", "dataclass"}) > 0

    def _read_finite(self, validate: Callable[..., Any], raw: Any, **options: Any) -> BaseModel:
        """Validate arguments, and refuse numbers in them that are not finite."""
        instance: BaseModel = validate(raw, **options)
        if isinstance(raw, str | bytes) and not _may_say_infinite(raw if isinstance(raw, str) else raw.decode()):
            return instance
        values = {name: part for name, part in instance.__dict__.items() if name in self._unbounded}
        if "*" in self._unbounded:
            values |= instance.__pydantic_extra__ or {}
        problem: Any = "finite_number"
        try:
            place = infinite_place(values)
        except RecursionError:
            problem = PydanticCustomError("too_deep", "they are nested too deeply, or contain themselves")
            place = ()
        if place is None:
            return instance
        detail = InitErrorDetails(type=problem, loc=place, input=None)
        raise ValidationError.from_exception_data(self.model.__name__, [detail])

    @property
    def secrets(self) -> frozenset[str]:
        """The fields that have something secret in them, `*` for the values that are not declared."""
        if self._secrets is None:
            marked = frozenset[str]() if self.marked is None else self.marked.names
            self._secrets = secrets_of(self.core_schema) | marked
        return self._secrets

    def arguments(self, instance: BaseModel) -> dict[str, Any]:
        """Return the values of `instance` by parameter name."""
        set_fields = instance.model_fields_set
        values = {
            self.renamed.get(name, name): value
            for name, value in instance.__dict__.items()
            if name in set_fields or name not in self.omitted
        }
        values.update(instance.__pydantic_extra__ or {})
        return values

    def shown_names(self) -> dict[str, str]:
        """Return the key in the JSON schema by parameter name."""
        fields = self.model.model_fields.items()
        return {self.renamed.get(name, name): first_alias(info) or name for name, info in fields}

    def reading_keys(self) -> dict[str, str]:
        """Return the key from which an argument is read in JSON, by parameter name."""
        fields = self.model.model_fields.items()
        names = ((self.renamed.get(name, name), info) for name, info in fields)
        return {argument: reading_key(info) or argument for argument, info in names}


def _may_say_infinite(text: str) -> bool:
    """Return whether a number in JSON text may be read as one that is not finite: for most text it is known at once."""
    if "NaN" in text or "Infinity" in text or "inf" in text or "nan" in text or _OVERFLOW.search(text) is not None:
        return True
    return _DIGITS.search(text) is not None


def first_alias(info: FieldInfo) -> str | None:
    """Return the key that pydantic shows for a field that has an alias."""
    alias = info.validation_alias or info.alias
    if isinstance(alias, AliasChoices):
        alias = alias.choices[0]
    return str(alias.path[0]) if isinstance(alias, AliasPath) else alias


def aliases_of(info: FieldInfo) -> set[str]:
    """Return the keys other than its name under which a field is found."""
    alias = info.validation_alias or info.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [] if alias is None else [alias]
    return {str(choice.path[0]) if isinstance(choice, AliasPath) else choice for choice in choices}


def input_of_model(tool: str, model: type[BaseModel]) -> InputModel:
    """Return `model` itself as the input model.

    Raises:
        SchemaError: It names types that do not exist.
    """
    if not model.__pydantic_complete__:
        try:
            model.model_rebuild()
        except Exception as error:  # what the author's types raise
            raise SchemaError(tool, model.__name__, f"is not complete ({one_sentence(error)})") from error
    inputs = InputModel(model, {}, frozenset(), lenient="extra" not in model.model_config and not is_root(model))
    return _require_lists(tool, inputs)


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
    except Exception as error:  # what the author's types raise
        for parameter in parameters:
            try:
                _create(tool, module, [parameter], names)
            except Exception as cause:
                problem = f"has a type that pydantic cannot describe ({one_sentence(cause)})"
                raise SchemaError(tool, parameter.name, problem) from cause
        raise SchemaError(tool, "*", f"cannot be described ({one_sentence(error)})") from error
    field_of = {argument: field for field, argument in renamed.items()}
    omitted = frozenset(field_of.get(p.name, p.name) for p in parameters if p.omitted)
    return _require_lists(tool, InputModel(model, renamed, omitted, lenient=False))


def _require_lists(tool: str, inputs: InputModel) -> InputModel:
    """Check that no argument has items that pydantic would read when the tool does: nobody could look at them before.

    Raises:
        SchemaError: A field of an argument is an iterable.
    """
    if "generator" in inputs.facts.kinds:
        top = fields_of(inputs.core_schema)
        found = (name for name, part in top.named.items() if "generator" in facts_of(part).kinds)
        name = next(found, "*")
        problem = "has an Iterable in it, whose items are read once, by the tool; declare it as a list"
        raise SchemaError(tool, inputs.renamed.get(name, name), problem)
    return inputs


def _create(
    tool: str, module: str, parameters: Sequence[Resolved], names: Annotations
) -> tuple[type[BaseModel], dict[str, str]]:
    names_in_use = {parameter.name for parameter in parameters}
    renamed: dict[str, str] = {}
    fields: dict[str, Any] = {}
    extra: Any = None
    config = _CLOSED.copy()
    for parameter in parameters:
        if parameter.kind == Parameter.VAR_KEYWORD:
            config["extra"] = "allow"
            extra = portable(parameter.annotation)
            continue
        annotation = allowing_default(portable(parameter.annotation), parameter.default)
        if parameter.kind == Parameter.VAR_POSITIONAL:
            annotation = tuple[annotation, ...]
        own_alias = bool(aliases_of(_field_info(parameter)))
        if own_alias:  # the alias is what a caller sees, the name is what the function takes: both will do
            config["validate_by_name"] = config["validate_by_alias"] = True
        field = _field_name(parameter.name, names_in_use)
        if field != parameter.name:
            names_in_use.add(field)
            renamed[field] = parameter.name
            annotation = annotation if own_alias else Annotated[annotation, pydantic.Field(alias=parameter.name)]
        if _has_redacted(annotation):
            annotation = Annotated[annotation, pydantic.Field(repr=False)]
        fields[field] = (annotation, _default(parameter, annotation))
    with no_read_only_warning():
        base = _base(module, config, extra)
        model = create_model(tool, __base__=base, __module__=module, **fields)
        if not model.__pydantic_complete__:
            model.model_rebuild(_types_namespace={**names.globals, **names.locals})
    return model, renamed


def _has_redacted(annotation: Any) -> bool:
    return annotation is Redacted or isinstance(annotation, Redacted) or any(map(_has_redacted, get_args(annotation)))


@cache
def _closed() -> type[BaseModel]:
    """Return the base of every input that takes what it declares and nothing else.

    It is one for all, because a class is costly, and made when it is first asked for: the first model of a process has
    pydantic look for its plugins.
    """

    class Closed(BaseModel):
        model_config = _CLOSED

    return Closed


def _base(module: str, config: ConfigDict, extra: Any) -> type[BaseModel]:
    """Return a model without fields; `extra` is the type of the values that it does not declare."""
    if config == _CLOSED:
        return _closed()
    annotations = {} if config.get("extra") != "allow" else {"__pydantic_extra__": dict[str, extra]}
    space = {"__module__": module, "__annotations__": annotations, "model_config": config}
    metaclass: Any = type(BaseModel)
    return metaclass("Arguments", (BaseModel,), space)


@contextmanager
def no_read_only_warning() -> Generator[None]:
    """Keep pydantic from warning, in each user's log, that it does not enforce `ReadOnly` keys of a TypedDict."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier", category=UserWarning)
        yield


def _field_info(parameter: Resolved) -> FieldInfo:
    from pydantic.fields import FieldInfo  # noqa: PLC0415 -- most of pydantic's own import, and no tool has a schema yet

    if is_field(parameter.default):
        return FieldInfo.from_annotated_attribute(parameter.annotation, parameter.default)
    return FieldInfo.from_annotation(parameter.annotation)


def _field_name(name: str, used: set[str]) -> str:
    """Return a name that a pydantic field can have."""
    if not name.startswith("_") and name not in _TAKEN:
        return name
    field = name.strip("_") or "field"
    while field in used or field in _TAKEN:
        field += "_"
    return field


def _default(parameter: Resolved, annotation: Any) -> Any:
    if parameter.omitted:
        return _OMITTED
    if parameter.kind == Parameter.VAR_POSITIONAL:
        return ()
    if parameter.default is EMPTY:
        return ...
    return parameter.default if is_field(parameter.default) else converted_default(annotation, parameter.default)


# --- the input of a tool that brings its JSON schema along, instead of a signature


def model_of_schema(tool: str, schema: Mapping[str, Any], check: Check | None) -> type[BaseModel]:
    """Return a model that keeps the arguments as they are, shows `schema` as it is, and takes what `check` lets pass.

    Required arguments and undeclared ones are checked here; `check` need not do that. It may return other arguments in
    place of those that it is given.
    """

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow", protected_namespaces=())

        @model_validator(mode="before")
        @classmethod
        def fits(cls, values: Any) -> Any:
            if isinstance(values, dict):
                arguments = cast("dict[str, Any]", values)
                missing = (name for name in schema.get("required", ()) if name not in arguments)
                problems = [InitErrorDetails(type="missing", loc=(name,), input=arguments) for name in missing]
                if schema.get("additionalProperties") is False and not schema.get("patternProperties"):
                    extra = (name for name in arguments if name not in schema.get("properties", {}))
                    kind = "extra_forbidden"
                    problems += [InitErrorDetails(type=kind, loc=(name,), input=arguments[name]) for name in extra]
                if problems:
                    raise ValidationError.from_exception_data(tool, problems)
                replaced = None if check is None else check(arguments)
                return arguments if replaced is None else replaced
            return values

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return deepcopy({"type": "object", **schema})

    return Arguments


def with_properties_as_dicts(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose properties are all dicts: `true` takes anything, and `false` takes nothing.

    Raises:
        TypeError: A property is not a schema.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    odd = next((name for name, part in properties.items() if not isinstance(part, Mapping | bool)), None)
    if odd is not None:
        raise TypeError(f"the schema of `{odd:.80}` is {properties[odd]!r:.40}, and not an object, true or false")
    parts = {name: _BOOLEANS[part] if isinstance(part, bool) else part for name, part in properties.items()}
    return {**schema, "properties": parts} if parts != properties else schema


def parameters_of_schema(schema: Mapping[str, Any]) -> tuple[Resolved, ...]:
    """Return the properties of a schema, in any of its choices, as parameters, the required first.

    One whose name Python does not take is given by name alone.
    """
    required = schema.get("required", ())
    properties = SchemaWalk(schema).properties(schema)
    kinds = {name: _KINDS[is_parameter_name(name)] for name in properties}
    ordered = sorted(properties, key=lambda name: (kinds[name], name not in required))
    return tuple(Resolved(name, Any, EMPTY, kinds[name], omitted=name not in required) for name in ordered)


# --- RootModels: an input that is not an object is the one argument `root`, under the name of the model's field


def is_root(model: type[BaseModel]) -> bool:
    """Return whether `model` is a RootModel; asked like this, because importing that loads half of pydantic."""
    return model.__pydantic_root_model__


def around_root(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model whose one field is the RootModel: every provider wants an object with named arguments."""
    new = pydantic.Field
    field: Any = new() if model.model_fields[ROOT].is_required() else new(default_factory=model)
    config = ConfigDict(extra="forbid")
    return create_model(model.__name__, __config__=config, __module__=model.__module__, root=(model, field))


def inner_of(validate: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that validates the model around a RootModel, and returns the RootModel."""

    def inner(value: Any, **options: Any) -> BaseModel:
        return validate(value, **options).root

    return inner


def with_root(schema: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a RootModel's value as that of an object with this one property.

    Of the descriptions the field's is kept; the class's is the tool's.
    """
    info = model.model_fields[ROOT]
    part = {key: value for key, value in schema.items() if key not in ("$defs", "description")}
    if info.description:
        part["description"] = info.description
    outer: dict[str, Any] = {"type": "object", "properties": {ROOT: part}}
    if info.is_required():
        outer["required"] = [ROOT]
    outer["additionalProperties"] = False
    if "$defs" in schema:
        outer["$defs"] = schema["$defs"]
    return outer


# --- the JSON schema


def input_schema(tool: str, inputs: InputModel) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments.

    Raises:
        SchemaError: A type has no schema, though pydantic can validate it.
    """
    try:
        schema = inputs.model.model_json_schema(schema_generator=SchemaGenerator)
    except Exception as error:  # what the author's types raise
        for name, info in inputs.model.model_fields.items():
            try:
                alone = create_model(tool, value=(info.rebuild_annotation(), ...))
                alone.model_json_schema(schema_generator=SchemaGenerator)
            except Exception as cause:
                problem = f"has a type without a JSON schema ({one_sentence(cause)})"
                raise SchemaError(tool, inputs.renamed.get(name, name), problem) from cause
        raise SchemaError(tool, "*", f"has no JSON schema ({one_sentence(error)})") from error
    schema = with_root(tidy(schema), inputs.model) if inputs.is_root else as_object(tidy(schema))
    if schema.get("type") != "object":
        raise SchemaError(tool, inputs.model.__name__, "is not an object with named arguments")
    if inputs.lenient:
        schema["additionalProperties"] = False
    schema.setdefault("properties", {})
    return schema


def one_sentence(error: Exception) -> str:
    """Return the first sentence of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")
