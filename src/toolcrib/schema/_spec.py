"""ToolSpec: one object that knows a tool's input, output and words, and builds each of them when first asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolcrib.errors import FieldProblem, InvalidArguments, SchemaError
from toolcrib.schema._bind import Binder
from toolcrib.schema._docstring import first_paragraph
from toolcrib.schema._json_schema import SchemaGenerator, tidy
from toolcrib.schema._markers import InjectedParameter
from toolcrib.schema._model import InputModel, first_line, input_of_function, input_of_model
from toolcrib.schema._parameters import (
    Resolved,
    annotations_of,
    evaluate,
    plain_function,
    read_signature,
    resolve,
    seen_locals,
)
from toolcrib.schema._problems import problems_of
from toolcrib.schema._returns import is_described, yielded_type
from toolcrib.schema._secrets import dump_values, secret_fields
from toolcrib.schema._stub import signature_text, stub_text

__all__ = ["ToolSpec"]

_BUILD = RLock()  # two threads that ask first must get the same input model
_NOTHING: Any = object()


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
        "_given_model",
        "_given_return",
        "_input",
        "_locals",
        "_parameters",
        "_resolved",
        "_return_schema",
        "_return_type",
        "_secrets",
        "_signature",
        "_visible",
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
        self._signature: inspect.Signature | None = None
        self._locals: dict[str, Any] | None = None
        self._resolved: tuple[Resolved, ...] | None = None
        self._visible: tuple[Resolved, ...] | None = None
        self._binder: Binder | None = None
        self._input: InputModel | None = None
        self._parameters: dict[str, Any] | None = None
        self._return_type: Any = _NOTHING
        self._return_schema: Any = _NOTHING
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
        return MappingProxyType({p.name: p.injected for p in self._resolve() if p.injected is not None})

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
                    self._input = input_of_model(self._given_model)
                else:
                    fn: Any = self.fn
                    module = getattr(plain_function(fn), "__module__", None) or __name__
                    names = annotations_of(fn, self._locals)
                    self._input = input_of_function(self.name, module, self._shown(), names)
        return self._input

    @property
    def input_model(self) -> type[BaseModel]:
        """The pydantic model of the arguments; it takes no unknown ones, unless the function has `**kwargs`."""
        return (self._input or self._input_model()).model

    def validate_json(self, raw: str | bytes) -> BaseModel:
        """Return the input that JSON text describes; empty text is no arguments.

        Raises:
            InvalidArguments: It does not fit; every problem is named.
        """
        try:
            return (self._input or self._input_model()).validate_json(raw)
        except ValidationError as error:
            raise InvalidArguments(self.name, problems_of(error)) from None

    def validate_python(self, values: Mapping[str, Any]) -> BaseModel:
        """Return the input with these values, converted where pydantic can.

        Raises:
            InvalidArguments: They do not fit; every problem is named.
        """
        try:
            return (self._input or self._input_model()).validate_python(values)
        except ValidationError as error:
            raise InvalidArguments(self.name, problems_of(error)) from None

    def arguments(self, model: BaseModel) -> dict[str, Any]:
        """Return the values of an input by parameter name, as Python objects."""
        return (self._input or self._input_model()).arguments(model)

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
            own = self._given_model.__doc__ if self._given_model is not None else inspect.getdoc(self.fn)
            self._doc = inspect.cleandoc(own or "")
        return self._doc

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
        if self._parameters is None:
            try:
                schema = self.input_model.model_json_schema(schema_generator=SchemaGenerator)
            except SchemaError:
                raise
            except Exception as error:
                raise SchemaError(self.name, "?", f"has no JSON schema ({first_line(error)})") from error
            self._parameters = tidy(schema)
        return self._parameters

    @property
    def return_type(self) -> Any:
        """The type of what comes back, of one value for a generator; None where nothing is said."""
        if self._return_type is _NOTHING:
            self._return_type = self._find_return_type()
        return self._return_type

    def _find_return_type(self) -> Any:
        if self._given_return is not None:
            return None if isinstance(self._given_return, Mapping) else self._given_return
        if self._signature is None or self.fn is None:
            return None
        annotation, problem = evaluate(self._signature.return_annotation, annotations_of(self.fn, self._locals))
        if problem or self._signature.return_annotation is inspect.Signature.empty:
            return None
        return yielded_type(annotation) if self.is_generator or self.is_sync_generator else annotation

    @property
    def return_schema(self) -> dict[str, Any] | None:
        """The JSON schema of what comes back, of one value for a generator; None where nothing is said."""
        if self._return_schema is _NOTHING:
            self._return_schema = self._find_return_schema()
        return self._return_schema

    def _find_return_schema(self) -> dict[str, Any] | None:
        if isinstance(self._given_return, Mapping):
            return dict(self._given_return)
        if not is_described(self.return_type):
            return None
        try:
            schema = TypeAdapter(self.return_type).json_schema(mode="serialization", schema_generator=SchemaGenerator)
        except Exception as error:
            if self._given_return is None:
                return None
            raise SchemaError(self.name, "return", f"has no JSON schema ({first_line(error)})") from error
        return tidy(schema)

    @property
    def signature(self) -> str:
        """The call as a model would write it: `get_weather(location: str, unit: str = 'celsius') -> dict`."""
        return signature_text(self.name, self._shown(), self._signature, self.return_type)

    def stub(self, name: str | None = None, docs: bool = True, is_async: bool = False) -> str:
        """Return the tool as a Python function without a body, for a prompt or a type checker."""
        return stub_text(name or self.name, self.parameters, self.return_schema, self.doc if docs else "", is_async)
