"""ToolSpec: one object that knows a tool's input, output and words, and builds each of them when first asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from types import MappingProxyType, NoneType
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from toolcrib.errors import FieldProblem, InvalidArguments, SchemaError
from toolcrib.schema._bind import Binder
from toolcrib.schema._docstring import ParsedDoc, docstring_of, first_paragraph, parse_doc
from toolcrib.schema._dump import dump_values
from toolcrib.schema._markers import InjectedParameter
from toolcrib.schema._model import InputModel, input_of_function, input_of_model, input_schema
from toolcrib.schema._parameters import (
    Resolved,
    annotations_of,
    evaluate,
    plain_function,
    read_signature,
    resolve,
    seen_locals,
)
from toolcrib.schema._problems import Asked, problems_of, unknown_argument
from toolcrib.schema._returns import awaited_type, return_schema_of, type_title, yielded_type
from toolcrib.schema._secrets import secret_fields
from toolcrib.schema._signature import signature_text
from toolcrib.schema._stub import StubSource, stub_text
from toolcrib.schema._stub_types import StubTypes, camel

__all__ = ["ToolSpec"]

_BUILD = RLock()  # two threads that ask first must get the same input model
_UNKNOWN: Any = object()
_NO_ARGUMENTS: frozenset[str | bytes] = frozenset({"", "null", b"", b"null"})  # what some providers send for none
VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


class ToolSpec:
    """Everything that can be told of a tool from its signature, its docstring and its types.

    Defining one reads the signature and nothing else; each of the rest is built once, when it is first asked for.

    Attributes:
        name: As the model sees it.
        fn: The function; None for an input without one.
        fixed: Names of the arguments that the tool's definition supplies.
        is_coroutine: `async def` that returns.
        is_generator: `async def` that yields.
        is_sync_generator: `def` that yields.
        is_sync: `def`, whether it returns or yields.
    """

    __slots__ = (
        "_binder",
        "_context_first",
        "_description",
        "_doc",
        "_doc_parts",
        "_given_model",
        "_given_return",
        "_injected",
        "_input",
        "_locals",
        "_parameters",
        "_resolved",
        "_return_schema",
        "_return_type",
        "_secrets",
        "_signature",
        "_visible",
        "_watched",
        "fixed",
        "fn",
        "is_coroutine",
        "is_generator",
        "is_sync",
        "is_sync_generator",
        "name",
    )

    def __init__(self, name: str, fn: Callable[..., Any] | None, model: type[BaseModel] | None) -> None:
        self.name = name
        self.fn = fn
        self.fixed: frozenset[str] = frozenset()
        self.is_coroutine = self.is_generator = self.is_sync_generator = self.is_sync = False
        self._given_model = model
        self._given_return: Any = None
        self._context_first = False
        self._description: str | None = None
        self._doc: str | None = None
        self._doc_parts: ParsedDoc | None = None
        self._injected: Mapping[str, InjectedParameter] | None = None
        self._watched = False
        self._signature: inspect.Signature | None = None
        self._locals: dict[str, Any] | None = None
        self._resolved: tuple[Resolved, ...] | None = None
        self._visible: tuple[Resolved, ...] | None = None
        self._binder: Binder | None = None
        self._input: InputModel | None = None
        self._parameters: dict[str, Any] | None = None
        self._return_type: Any = _UNKNOWN
        self._return_schema: Any = _UNKNOWN
        self._secrets: frozenset[str] | None = None

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        name: str,
        description: str | None = None,
        fixed: frozenset[str] = frozenset(),
        return_schema: Any = None,
        context_first: bool = False,
    ) -> ToolSpec:
        """Return the spec of a function, method, partial or object with `__call__`.

        Args:
            fixed: Arguments that the tool's definition supplies; hidden from models, never missing.
            return_schema: A JSON schema, or a type, in place of what the return annotation says.
            context_first: The first parameter is the RunContext, whatever its annotation.

        Raises:
            TypeError: `fn` is built in and has no signature.
        """
        spec = cls(name, fn, None)
        spec.fixed = fixed
        spec._description, spec._given_return, spec._context_first = description, return_schema, context_first
        spec._signature = read_signature(name, fn)
        spec._locals = seen_locals(fn, spec._signature)
        code = fn if inspect.isroutine(fn) else plain_function(fn)
        spec.is_coroutine = inspect.iscoroutinefunction(code)
        spec.is_generator = inspect.isasyncgenfunction(code)
        spec.is_sync_generator = inspect.isgeneratorfunction(code)
        spec.is_sync = not (spec.is_coroutine or spec.is_generator)
        return spec

    @classmethod
    def from_model(
        cls, model: type[BaseModel], *, name: str, description: str | None = None, output: Any = None
    ) -> ToolSpec:
        """Return the spec of an input that has no function; `output` is the type or schema of what answers it."""
        spec = cls(name, None, model)
        spec._description, spec._given_return = description, output
        return spec

    def __repr__(self) -> str:
        return f"<ToolSpec {self.name}>"

    # --- the function's side ---------------------------------------------------------------------------------------

    def accepts(self, name: str) -> bool:
        """Return whether the function can be given an argument of this name."""
        if self._signature is None:
            return self._given_model is not None and name in self._given_model.model_fields
        parameters = self._signature.parameters
        if name in parameters:
            return parameters[name].kind is not inspect.Parameter.VAR_KEYWORD
        return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())

    def _resolve(self) -> tuple[Resolved, ...]:
        if self._resolved is None:
            if self._signature is None:
                fields = self._input_model().model.model_fields
                kind = inspect.Parameter.KEYWORD_ONLY
                self._resolved = tuple(Resolved(n, f.annotation, f, kind) for n, f in fields.items())
            else:
                names = annotations_of(self.fn, self._locals) if self.fn else annotations_of(len, None)
                self._resolved = resolve(self._signature.parameters, names, self._context_first)
        return self._resolved

    @property
    def injected(self) -> Mapping[str, InjectedParameter]:
        """The parameters that the run fills, by name."""
        if self._injected is None:
            found = {p.name: p.injected for p in self._resolve() if p.injected is not None}
            self._injected = MappingProxyType(found)
        return self._injected

    def bind_host(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the host's own arguments by name, and what was dropped because the function does not take it.

        Positional values go to parameters in order; one that the run fills is skipped, unless the value fits its type.

        Raises:
            InvalidArguments: A required argument is missing, or one is given twice. A TypeError.
        """
        return (self._binder or self._bound()).bind(args, kwargs)

    def split(self, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `(args, kwargs)` with which the function takes these arguments."""
        return (self._binder or self._bound()).split(arguments)

    @property
    def plain(self) -> bool:
        """Whether `fn(**arguments)` is right as it is."""
        return (self._binder or self._bound()).plain

    def _bound(self) -> Binder:
        self._binder = Binder(self.name, self._resolve(), self.fixed)
        return self._binder

    # --- the caller's side -----------------------------------------------------------------------------------------

    def _shown(self) -> tuple[Resolved, ...]:
        """Return the parameters that a caller may give."""
        if self._visible is None:
            self._visible = tuple(p for p in self._resolve() if p.injected is None and p.name not in self.fixed)
        return self._visible

    def _input_model(self) -> InputModel:
        with _BUILD:
            if self._input is None:
                if self._given_model is not None:
                    self._input = input_of_model(self.name, self._given_model)
                else:
                    fn: Any = self.fn
                    module = getattr(plain_function(fn), "__module__", None) or __name__
                    names = annotations_of(fn, self._locals)
                    self._input = input_of_function(self.name, module, self._shown(), names)
                hidden = self.fixed or self.injected if self._given_model is None else False
                self._watched = self._input.lenient or (self._input.open and bool(hidden))
        return self._input

    @property
    def input_model(self) -> type[BaseModel]:
        """The pydantic model of the arguments; it takes no unknown ones, unless the function has `**kwargs`."""
        return (self._input or self._input_model()).model

    def validate_json(self, raw: str | bytes) -> BaseModel:
        """Return the input that JSON text describes; empty text and null are no arguments.

        Raises:
            InvalidArguments: It does not fit; every problem is named.
            SchemaError: A parameter's type cannot be described.
        """
        inputs = self._input or self._input_model()
        try:
            model = inputs.validate_json(raw)
        except ValidationError as error:
            none = raw.strip() in _NO_ARGUMENTS
            refused = None if none else self._refusal(error, parsed(raw))  # raised outside: no input hangs on it
        else:
            if not self._watched:
                return model
            refused = self._unwanted(inputs, model, parsed(raw) if inputs.lenient else None)
            if refused is None:
                return model
        if refused is None:
            return self.validate_json("{}")
        raise refused

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
            if not self._watched:
                return model
            refused = self._unwanted(inputs, model, values)
            if refused is None:
                return model
        raise refused

    def _refusal(self, error: ValidationError, given: Any) -> InvalidArguments:
        return InvalidArguments(self.name, problems_of(error, given, self._asked()))

    def _unwanted(self, inputs: InputModel, model: BaseModel, given: Any) -> InvalidArguments | None:
        """Return what is wrong with arguments that the model let through: unknown ones, and those of the host."""
        asked = self._asked()
        names = set(model.__pydantic_extra__ or {}) & asked.hidden
        if inputs.lenient and isinstance(given, Mapping):
            names = set(cast("Mapping[str, Any]", given)) - inputs.keys()
        problems = tuple(FieldProblem(name, unknown_argument((name,), asked)) for name in sorted(names))
        return InvalidArguments(self.name, problems) if problems else None

    def _asked(self) -> Asked:
        hidden = self.fixed | self.injected.keys()
        try:
            return Asked(self.parameters, self._secret_names(), hidden)
        except SchemaError:  # it can be validated and not be described: say what can be said
            return Asked({}, self._secret_names(), hidden)

    def arguments(self, model: BaseModel) -> dict[str, Any]:
        """Return the values of an input by parameter name, as Python objects."""
        inputs = self._input or self._input_model()
        return model.__dict__.copy() if inputs.plain else inputs.arguments(model)

    @property
    def has_secrets(self) -> bool:
        """Whether anything in the input is secret, at any depth."""
        return bool(self._secret_names())

    def _secret_names(self) -> frozenset[str]:
        if self._secrets is None:
            self._secrets = secret_fields(self.input_model)
        return self._secrets

    def dump(self, values: BaseModel | Mapping[str, Any], redact: bool) -> dict[str, Any]:
        """Return arguments as JSON shapes.

        Args:
            redact: Hide what is secret, for a record, a log or a person. Without it the real values are shown, those
                of SecretStr too: for a digest and for safe keeping, never for a log.
        """
        return dump_values(self._input or self._input_model(), values, self._secret_names(), redact)

    # --- words and schemas -----------------------------------------------------------------------------------------

    @property
    def doc(self) -> str:
        """The whole docstring."""
        if self._doc is None:
            target = self._given_model or plain_function(self.fn)
            self._doc = docstring_of(target) or docstring_of(self.fn if isinstance(self.fn, Callable) else None)
        return self._doc

    def _parsed_doc(self) -> ParsedDoc:
        if self._doc_parts is None:
            self._doc_parts = parse_doc(self.doc)
        return self._doc_parts

    @property
    def returns_doc(self) -> str:
        """What the docstring says about the result, on one line."""
        return self._parsed_doc().returns

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, or what the tool's definition says."""
        if self._description is None:
            self._description = first_paragraph(self.doc)
        return self._description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments.

        Raises:
            SchemaError: A parameter's type has none.
        """
        schema = self._parameters
        if schema is None:
            schema = input_schema(self.name, self._input or self._input_model())
            properties: dict[str, dict[str, Any]] = schema["properties"]
            if any("description" not in part for part in properties.values()):
                for name, text in self._parsed_doc().parameters.items():
                    if name in properties:
                        properties[name].setdefault("description", text)
            self._parameters = schema
        return schema

    @property
    def return_type(self) -> Any:
        """The type of what comes back, of one value for a generator; None where nothing is said."""
        if self._return_type is _UNKNOWN:
            given = self._given_return
            annotation = self._return_annotation() if given is None else None if isinstance(given, Mapping) else given
            self._return_type = None if annotation is inspect.Signature.empty else annotation
        return self._return_type

    def _return_annotation(self) -> Any:
        if self._signature is None or self.fn is None:
            return inspect.Signature.empty
        written = self._signature.return_annotation
        annotation, problem = evaluate(written, annotations_of(self.fn, self._locals))
        if problem or written is inspect.Signature.empty:
            return inspect.Signature.empty
        if self.is_generator or self.is_sync_generator:
            return yielded_type(annotation)
        return annotation if self.is_coroutine else awaited_type(annotation)

    @property
    def return_schema(self) -> dict[str, Any] | None:
        """The JSON schema of what comes back, of one value for a generator; None where nothing is said.

        Raises:
            SchemaError: A type that was given for it has none.
        """
        if self._return_schema is _UNKNOWN:
            self._return_schema = return_schema_of(self.name, self._return_annotation(), self._given_return)
        return self._return_schema

    @property
    def signature(self) -> str:
        """The call as a model would write it: `get_weather(location: str, unit: str = 'celsius') -> dict`."""
        given, signature = self._given_return, self._signature
        returns = inspect.Signature.empty if given is None or isinstance(given, Mapping) else given
        untyped: frozenset[str] = frozenset()
        if signature is not None:
            untyped = frozenset(n for n, p in signature.parameters.items() if p.annotation is inspect.Parameter.empty)
            if returns is inspect.Signature.empty and self.fn is not None:
                annotation, problem = evaluate(signature.return_annotation, annotations_of(self.fn, self._locals))
                written = signature.return_annotation
                returns = written if problem or written is inspect.Signature.empty else annotation
        return signature_text(self.name, self._shown(), self._secret_arguments(), untyped, returns)

    def _secret_arguments(self) -> frozenset[str]:
        """Return the parameters with something secret in them; all of them when the types cannot be described."""
        try:
            renamed = self._input_model().renamed
            return frozenset(renamed.get(name, name) for name in self._secret_names())
        except SchemaError:
            return frozenset(parameter.name for parameter in self._shown())

    def stub(
        self, name: str | None = None, docs: bool = True, is_async: bool = False, types: StubTypes | None = None
    ) -> str:
        """Return the tool as a Python function without a body, for a prompt or a type checker.

        Args:
            docs: With its description, and those of its arguments.
            types: Collects the TypedDicts that the stub names; share one between the stubs that are shown together.
        """
        return stub_text(self._stub_source(name), StubTypes() if types is None else types, docs, is_async)

    def stub_types(self, docs: bool = True) -> list[str]:
        """Return the definitions that the stub names, each before the first that uses it."""
        types = StubTypes()
        self.stub(docs=docs, types=types)
        return types.render(docs=docs)

    def _stub_source(self, name: str | None) -> StubSource:
        returns = self.return_schema
        fields = self._input_model().model.model_fields
        field_of = {argument: field for field, argument in self._input_model().renamed.items()}
        shown = [p for p in self._shown() if p.name in fields or p.name in field_of or p.kind == VAR_KEYWORD]
        return StubSource(
            name=name or self.name,
            parameters=shown,
            keys={p.name: fields[p.name].alias or p.name for p in shown if p.name in fields},
            schema=self.parameters,
            returns=returns,
            returns_name=type_title(self.return_type, returns or {}) or camel(f"{self.name}_result"),
            returns_none=self._return_annotation() in (None, NoneType),
            streams=self.is_generator or self.is_sync_generator,
            description=self.description,
            returns_doc=self.returns_doc,
        )


def parsed(raw: str | bytes) -> Any:
    """Return what JSON text says, None when it says nothing."""
    try:
        return from_json(raw)
    except ValueError:
        return None
