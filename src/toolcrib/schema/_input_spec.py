"""InputSpec: what a caller may give a tool, how it is read, and its one JSON form."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from threading import RLock
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from toolcrib._json_writer import json_writer
from toolcrib.errors import FieldProblem, InvalidArguments, SchemaError
from toolcrib.jsonschema import SchemaWalk
from toolcrib.schema._bind import Binder
from toolcrib.schema._canonical import CanonicalArguments, Writer, untyped
from toolcrib.schema._docstring import ParsedDoc, docstring_of, parse_doc
from toolcrib.schema._function import Function
from toolcrib.schema._marked_secrets import MarkedSecrets
from toolcrib.schema._markers import InjectedParameter, Redacted, is_field
from toolcrib.schema._model import InputModel, input_of_function, input_of_model, input_schema
from toolcrib.schema._parameters import Resolved, is_marked
from toolcrib.schema._problems import (
    HALF_A_CHARACTER,
    ExpectedInput,
    let_through,
    parsed,
    problems_of,
    property_names,
    repeated_keys,
    wrong_kinds,
)
from toolcrib.schema._secret_objects import secret_objects, secret_texts
from toolcrib.schema._table_type import table_names

_log = logging.getLogger("toolcrib.tools")

_json_of = json_writer(allow_nan=True)
_BUILD = RLock()  # two threads that ask first must get the same input model
_NOTHING_CAME = "no arguments came. Send them as one JSON object, with `{}` for none"
_OF_ARGUMENTS = (  # keywords of a schema that takes arguments
    "properties", "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "required",
    "minProperties", "dependentSchemas", "dependentRequired", "if", "not",
)  # fmt: skip
_NO_ARGUMENTS: frozenset[str | bytes] = frozenset({"", "null", b"", b"null"})  # what some providers send for none


class InputSpec:
    """The input of a tool: parameters, validation, canonical form and JSON schema, each built when it is asked for.

    Attributes:
        name: As the model sees it.
        fixed: Names of the arguments that the tool's definition supplies.
    """

    def __init__(self, name: str, function: Function | None, model: type[BaseModel] | None) -> None:
        self.name = name
        self.fixed: frozenset[str] = frozenset()
        self._function = function
        self._given_model = model
        self._marked: MarkedSecrets | None = None
        self._input: InputModel | None = None
        self._watched = False
        self._writer: Writer | None = None

    # --- the function's side ---------------------------------------------------------------------------------------

    def accepts(self, name: str) -> bool:
        """Return whether the function can be given an argument of this name."""
        if self._function is not None:
            return self._function.accepts(name)
        return self._given_model is not None and name in self._given_model.model_fields

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of its parameters that are written out, as they are in the code."""
        if self._function is not None:
            return tuple(parameter.name for parameter in self._function.written)
        return () if self._given_model is None else tuple(self._given_model.model_fields)

    @cached_property
    def _resolved(self) -> tuple[Resolved, ...]:
        if self._function is not None:
            return self._function.parameters()
        fields = self._input_model().model.model_fields
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return tuple(Resolved(name, info.annotation, info, kind) for name, info in fields.items())

    @cached_property
    def injected(self) -> Mapping[str, InjectedParameter]:
        """The parameters that the run fills, by name."""
        return MappingProxyType({p.name: p.injected for p in self._resolved if p.injected is not None})

    @property
    def unresolved(self) -> frozenset[str]:
        """The parameters whose annotation cannot be evaluated, or not yet."""
        return frozenset(p.name for p in self._resolved if p.problem)

    def bind_host(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the host's own arguments by name, and what was dropped because the function does not take it.

        Positional values go to parameters in order; one that the run fills is skipped, unless the value fits its type.

        Raises:
            InvalidArguments: A required argument is missing, or one is given twice. A TypeError.
        """
        return self._binder.bind(args, kwargs)

    def name_host(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Bind arguments as `bind_host` does, where some may still be missing."""
        return self._binder.name(args, kwargs)

    def split(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `(args, kwargs)` with which the function takes these arguments."""
        return self._binder.split(arguments)

    @property
    def plain(self) -> bool:
        """True if the function can be called with the arguments as they are, by `fn(**arguments)`."""
        return self._binder.plain

    @cached_property
    def _binder(self) -> Binder:
        return Binder(self.name, self._resolved, self.fixed)

    # --- the caller's side -----------------------------------------------------------------------------------------

    @cached_property
    def _shown(self) -> tuple[Resolved, ...]:
        """The parameters that a caller may give."""
        return tuple(p for p in self._resolved if p.injected is None and p.name not in self.fixed)

    @cached_property
    def by_position(self) -> tuple[tuple[str, ...], str | None]:
        """The parameters that a caller may give by position, and the one that takes all further values."""
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        rest = next((p.name for p in self._shown if p.kind == inspect.Parameter.VAR_POSITIONAL), None)
        return tuple(p.name for p in self._shown if p.kind in kinds), rest

    @cached_property
    def table_parameters(self) -> Mapping[str, frozenset[str]]:
        """The parameters that take a table, each with the names of its classes."""
        return {p.name: names for p in self._shown if (names := table_names(p.annotation))}

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The defaults of the parameters that a caller may leave out; those given as `Field(...)` are not in it."""
        return {
            parameter.name: parameter.default
            for parameter in self._shown
            if parameter.default is not inspect.Parameter.empty and not is_field(parameter.default)
        }

    def _input_model(self) -> InputModel:
        with _BUILD:
            if self._input is not None:
                return self._input
            function = self._function
            if function is not None:
                model = input_of_function(self.name, function.module, self._shown, function.names())
                if unannotated := [p.name for p in self._shown if p.name in function.untyped()]:
                    _log.warning(
                        "`%s` takes any value for %s, which %s no type annotation: a model is shown no type",
                        self.name,
                        ", ".join(f"`{name}`" for name in unannotated),
                        "has" if len(unannotated) == 1 else "have",
                    )
                self._watched = model.open and bool(self.fixed or self.injected)
            else:
                model = input_of_model(self.name, self._given_model or BaseModel)
                parameters: tuple[Resolved, ...] = vars(self).get(
                    "_resolved", ()
                )  # by a schema; a model has no such parameters
                self._watched = model.lenient or any(p.injected is not None for p in parameters)
                model.marked = self._marked
            self._input = model
            return model

    @property
    def input_model(self) -> type[BaseModel]:
        """The pydantic model of the arguments; it takes no unknown ones, unless the function has `**kwargs`."""
        return (self._input or self._input_model()).model

    def validate_json(self, raw: str | bytes, convert: bool = False) -> BaseModel:
        """Return the input that JSON text describes; empty text and null are not arguments, where the tool takes none.

        Args:
            raw: The text, which fits as the schema says that a model is shown: no text is a number there.
            convert: Whether values are converted where pydantic can, as a host's own are.

        Raises:
            InvalidArguments: It does not fit; every problem is named.
            SchemaError: A parameter's type cannot be described.
        """
        inputs = self._input or self._input_model()
        try:
            model = inputs.validate_json(raw, strict=True)
        except ValidationError as error:
            model, refused = self._read_again(inputs, raw, None if convert else error)
        else:
            refused = None
        if model is None:
            if refused is None:
                return self.validate_json("{}")
            raise refused  # out here, so that it does not carry pydantic's error and the input along
        colons = raw.count(":") if isinstance(raw, str) else raw.count(b":")
        if colons > len(model.__pydantic_fields_set__):  # else each key is that of another argument
            problems = repeated_keys(raw, self._expected_input())
            if problems:
                raise InvalidArguments(self.name, problems)
        return self._admit(inputs, model, parsed(raw) if inputs.lenient else None) if self._watched else model

    def _read_again(
        self, inputs: InputModel, raw: str | bytes, error: ValidationError | None
    ) -> tuple[BaseModel | None, InvalidArguments | None]:
        """Return the input that JSON text describes after all, or why it does not, or neither."""
        values = parsed(raw)
        try:
            model = inputs.validate_json(raw)
        except ValidationError as strict_error:
            if raw.strip() not in _NO_ARGUMENTS:
                return None, self._refusal(strict_error, values)
            if self._takes_any():
                return None, InvalidArguments(self.name, (FieldProblem("", _NOTHING_CAME),))
            return None, None
        wrong = None if error is None else wrong_kinds(error, values, model)
        return (model, None) if wrong is None else (None, self._refusal(wrong, values))

    def _takes_any(self) -> bool:
        """Return whether a caller may give any arguments, in any of the choices of the schema."""
        try:
            schema = self.parameters
        except SchemaError:  # it can be validated and not be described
            return True
        choices = SchemaWalk(schema).choices(schema)
        return any(choice.get(keyword) for choice in choices for keyword in _OF_ARGUMENTS)

    def validate_model(self, raw: str | bytes | Mapping[str, Any]) -> BaseModel:
        """Return the input that a model's arguments describe; JSON that was read already means what its text means.

        Raises:
            InvalidArguments: It does not fit; every problem is named.
            SchemaError: A parameter's type cannot be described.
        """
        if isinstance(raw, str | bytes):
            return self.validate_json(raw)
        try:
            text = _json_of(raw).encode()
        except UnicodeEncodeError:
            self.validate_python(raw)  # which names the place, where a type of the tool refuses it
            raise InvalidArguments(self.name, (FieldProblem("", HALF_A_CHARACTER),)) from None
        except (TypeError, ValueError, RecursionError):  # Python values of this process
            return self.validate_python(raw)
        return self.validate_json(text)

    @cached_property
    def read(self) -> Callable[[str | bytes | Mapping[str, Any]], dict[str, Any]]:
        """Returns a model's arguments by parameter name, as Python objects; raises what `validate_model` does.

        Text that fits at once is read in one step, and all else by `validate_model`.

        Raises:
            SchemaError: A parameter's type cannot be described.
        """
        inputs, validate_model = self._input or self._input_model(), self.validate_model
        validate, in_one_step = inputs.validate_json, inputs.plain and not self._watched

        def read(raw: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
            if in_one_step and type(raw) is str:
                try:
                    model = validate(raw, strict=True)
                    if raw.count(":") <= len(model.__pydantic_fields_set__):  # else a key may be repeated
                        return model.__dict__  # which no other code has
                except ValidationError:  # `validate_model` says what is wrong, or reads it after all
                    pass
            model = validate_model(raw)
            return model.__dict__ if inputs.plain else inputs.arguments(model)  # pyright: ignore[reportReturnType] -- as above

        return read

    def validate_python(self, values: Mapping[str, Any]) -> BaseModel:
        """Return the input with these values, converted where pydantic can.

        Raises:
            InvalidArguments: They do not fit; every problem is named.
            SchemaError: A parameter's type cannot be described.
        """
        inputs = self._input or self._input_model()
        try:
            model = inputs.validate_python(values)
        except ValidationError as error:
            refused = self._refusal(error, values)
        else:
            return self._admit(inputs, model, values) if self._watched else model
        raise refused  # as above

    def _admit(self, inputs: InputModel, model: BaseModel, values: Any) -> BaseModel:
        problems = let_through(inputs, model, values, self._expected_input())
        if problems:
            raise InvalidArguments(self.name, problems)
        return model

    def _refusal(self, error: ValidationError, values: Any) -> InvalidArguments:
        return InvalidArguments(self.name, problems_of(error, values, self._expected_input()))

    def _expected_input(self) -> ExpectedInput:
        hidden = self.fixed | self.injected.keys()
        secrets = (self._input or self._input_model()).secrets
        try:
            return ExpectedInput(self.parameters, secrets, hidden)
        except SchemaError:  # it can be validated and not be described: say what can be said
            return ExpectedInput({}, secrets, hidden)

    def arguments(self, model: BaseModel) -> dict[str, Any]:
        """Return the values of an input by parameter name, as Python objects."""
        inputs = self._input or self._input_model()
        return model.__dict__.copy() if inputs.plain else inputs.arguments(model)

    def validate_host(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a host's arguments by parameter name, validated and with the defaults; `bind_host` names them.

        Values are converted as `validate_python` does. Arguments that the caller may not give, fixed and injected ones,
        are returned as they are.

        Raises:
            InvalidArguments: They do not fit; every problem is named.
            SchemaError: A parameter's type cannot be described: there is nothing to validate by.
        """
        hidden = self.fixed | self.injected.keys()
        asked = {name: value for name, value in arguments.items() if name not in hidden}
        valid = self.arguments(self.validate_python(asked))
        return {**valid, **{name: value for name, value in arguments.items() if name in hidden}} if hidden else valid

    @property
    def has_secrets(self) -> bool:
        """True if a part of the input is secret, at any depth."""
        return bool((self._input or self._input_model()).secrets)

    def canonical(self, arguments: Mapping[str, Any]) -> CanonicalArguments:
        """Return the one JSON form of validated arguments: what is shown, digested, recorded and sent.

        `spec.arguments(spec.validate_json(json.dumps(canonical.values)))` are equal arguments, whose canonical form is
        the same, in every process. Values that were not validated, or are those of a tool without a schema, are
        written as what they are.
        """
        try:
            writer = self._writer or self._make_writer()
        except SchemaError:  # only a host calls such a tool
            return untyped(arguments)
        return writer.canonical(arguments)

    def secrets_in(self, form: CanonicalArguments) -> frozenset[str]:
        """Return the secret texts and numbers in the canonical form of arguments, which may be quoted nowhere."""
        return form.secrets(self._declared_names) if form.has_secrets else frozenset()

    def supplied_secrets(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Return the secret texts and numbers among fixed and injected arguments, by name."""
        marked = [p.name for p in self._resolved if p.name in values and is_marked(p.annotation, Redacted)]
        return secret_objects(values).union(*(secret_texts(values[name]) for name in marked))

    @cached_property
    def _declared_names(self) -> frozenset[str] | None:
        """The names of properties in the schema; None without a schema."""
        try:
            return property_names(self.parameters)
        except SchemaError:
            return None

    def _make_writer(self) -> Writer:
        writer = self._writer = Writer(self._input or self._input_model())
        return writer

    def read_some(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that JSON shapes by parameter name are read as; the others need not be there.

        Raises:
            ValidationError: One does not fit; pydantic's.
            SchemaError: A parameter's type cannot be described.
        """
        return (self._writer or self._make_writer()).read_some(values)

    @property
    def has_validators(self) -> bool:
        """True if code reads an argument, so that validating its value again may give another value."""
        try:
            return (self._input or self._input_model()).facts.runs_code
        except SchemaError:  # nothing is validated
            return False

    @property
    def has_objects(self) -> bool:
        """True if an argument may be an object of a class, which pydantic does not validate a second time."""
        try:
            return (self._input or self._input_model()).has_objects
        except SchemaError:  # nothing is validated
            return False

    def as_given(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that were not validated as JSON shapes, under the keys of the canonical form.

        They are written by what they are, so that the text of a `Json` stays that text. Secrets have their real values.
        """
        keys = (self._input or self._input_model()).shown_names()
        return {keys.get(name, name): value for name, value in untyped(arguments).values.items()}

    def reads_back(self, form: CanonicalArguments, arguments: Mapping[str, Any]) -> bool:
        """Return whether validated arguments are what is read from their form.

        They are not where a validator changes them again, or where the text of one type of a union is read as another.
        """
        if self._writer is None:  # it has no schema
            return True
        hidden = self.fixed | self.injected.keys()  # a host's
        values, asked = ({n: v for n, v in part.items() if n not in hidden} for part in (form.values, arguments))
        return self._writer.reads_back(values, asked)

    # --- its docstring and schema ------------------------------------------------------------------------------

    @cached_property
    def doc(self) -> str:
        """The whole docstring."""
        return docstring_of(self._given_model) if self._function is None else self._function.doc

    @cached_property
    def _parsed_doc(self) -> ParsedDoc:
        return parse_doc(self.doc)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments.

        Raises:
            SchemaError: A parameter's type has no schema.
        """
        inputs = self._input or self._input_model()
        schema = input_schema(self.name, inputs)
        parts: dict[str, dict[str, Any]] = schema["properties"]
        if any("description" not in part for part in parts.values()):
            keys = inputs.shown_names()
            for name, text in self._parsed_doc.parameters.items():
                parts.get(keys.get(name, name), {}).setdefault("description", text)
        return schema
