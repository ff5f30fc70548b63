"""ToolSpec: the input, the output and the words of one tool, each built when it is first asked for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel

from toolcrib import jsonschema
from toolcrib.errors import SchemaError
from toolcrib.jsonschema import check_nesting, schema_texts
from toolcrib.schema._docstring import documented_shape, first_paragraph, one_line
from toolcrib.schema._function import Function
from toolcrib.schema._input_spec import InputSpec
from toolcrib.schema._marked_secrets import MarkedSecrets
from toolcrib.schema._markers import is_field
from toolcrib.schema._model import Check, model_of_schema, parameters_of_schema, with_properties_as_dicts
from toolcrib.schema._parameters import Resolved
from toolcrib.schema._returns import return_schema_of, type_title
from toolcrib.schema._signature import has_default, signature_text
from toolcrib.schema._stub import StubSource, stub_signature, stub_text
from toolcrib.schema._stub_types import StubTypes, camel
from toolcrib.schema._table_type import table_names

_NAME = re.compile(r"[A-Za-z_]\w*")
_SILENT = ("builtins", "toolcrib")
_NEVER_SECRET = (str, int, float, bool)  # types without a mark of their own
_DEEPEST = 4  # types inside of types
_LONGEST = 100  # values of one enum, keys of one type


class ToolSpec(InputSpec):
    """Everything that a signature, a docstring and types say of a tool.

    Defining one reads the signature and nothing else; each of the rest is built once, when it is first asked for.

    Attributes:
        name: As the model sees it.
        fn: The function; None for an input without one.
        fixed: Names of the arguments that the tool's definition supplies.
        is_coroutine: `async def` that returns.
        is_generator: `async def` that yields.
        is_sync_generator: `def` that yields.
        is_sync: `def`, whether it returns or yields.
        is_elsewhere: Whether another framework or a server does the work, which a deadline here may not stop.
        wrong_keywords: Where a given schema is not as JSON Schema allows, which is left out and not checked; in words.
    """

    def __init__(self, name: str, function: Function | None, model: type[BaseModel] | None) -> None:
        super().__init__(name, function, model)
        self.fn = None if function is None else function.fn
        self.is_coroutine = self.is_generator = self.is_sync_generator = self.is_sync = False
        self.is_elsewhere = False
        self.wrong_keywords = ""
        self._given_schema: Mapping[str, Any] | None = None
        self._given_return: Any = None
        self._given_description: str | None = None

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
            context_first: The first parameter is the RunContext, with any annotation or none.

        Raises:
            TypeError: `fn` is built in and has no signature, or is a lambda without a name; or a parameter is one that
                another framework fills.
        """
        if name == "<lambda>":
            raise TypeError("a lambda has no name by which a model could call it: give one, as in name='add'")
        function = Function(name, fn, context_first)
        function.require_own_parameters(fixed)
        spec = cls(name, function, None)
        spec.fixed, spec._given_description, spec._given_return = fixed, description, return_schema
        spec._note_kind(function)
        return spec

    @classmethod
    def from_model(
        cls, model: type[BaseModel], *, name: str, description: str | None = None, output: Any = None
    ) -> ToolSpec:
        """Return the spec of an input that has no function; `output` is the type or schema of what answers it."""
        spec = cls(name, None, model)
        spec._given_description, spec._given_return = description, output
        return spec

    @classmethod
    def from_schema(
        cls,
        fn: Callable[..., Any] | None,
        parameters: Mapping[str, Any],
        *,
        name: str,
        description: str | None = "",
        returns: Mapping[str, Any] | None = None,
        check: Check | None = None,
        whole: Callable[[], Mapping[str, Any]] | None = None,
    ) -> ToolSpec:
        """Return the spec of a function that takes by keyword what a JSON schema describes.

        Args:
            fn: The function; None for an input that the host's own code executes.
            description: Its purpose; None for the first paragraph of the function's docstring.
            returns: The JSON schema of what comes back.
            check: Says what fits besides the names of the arguments, which are checked in any case, by raising
                pydantic's ValidationError; may return other arguments in place of those given.
            whole: Returns the schema that marks what is secret (`writeOnly`, `format: password`), where it is more than
                `parameters`.

        Raises:
            SchemaTooLarge: A schema is nested too deep to be read.
            TypeError: The function does not take an argument that the schema describes.
        """
        check_nesting(name, [parameters, returns])
        repaired = jsonschema.well_formed(name, parameters)
        parameters = jsonschema.satisfiable(name, jsonschema.arguments_schema(name, repaired.schema))
        kinds: Any = parameters.get("type")
        if isinstance(kinds, list) and "object" in kinds:
            parameters = {**parameters, "type": "object"}
        parameters = with_properties_as_dicts(parameters)
        spec = cls(name, None, model_of_schema(name, parameters, check))
        spec._given_schema, spec.wrong_keywords = parameters, repaired.wrong_text
        spec._marked = MarkedSecrets(whole or (lambda: parameters))
        spec._given_description, spec._given_return, spec._resolved = (
            description,
            returns,
            parameters_of_schema(parameters),
        )
        if fn is None:
            return spec
        function = Function(name, fn, context_first=False)
        refused = next((key for key in parameters.get("properties", ()) if not function.accepts(key)), None)
        if refused is not None:
            raise TypeError(f"`{name}`: its schema has the argument `{refused}`, and its function does not take that")
        spec.fn, spec.doc = fn, function.doc
        spec._resolved += tuple(p for p in function.parameters() if p.injected is not None)
        spec._note_kind(function)
        return spec

    def _note_kind(self, function: Function) -> None:
        self.is_coroutine, self.is_generator = function.is_coroutine, function.is_generator
        self.is_sync_generator = function.is_sync_generator
        self.is_sync = not (self.is_coroutine or self.is_generator)

    def __repr__(self) -> str:
        return f"<ToolSpec {self.name}>"

    @property
    def is_of_schema(self) -> bool:
        """True if the tool was made from a JSON schema, whose types have no names in Python."""
        return self._given_schema is not None

    # --- words and schemas -----------------------------------------------------------------------------------------

    @property
    def returns_doc(self) -> str:
        """The docstring's text about the result, on one line."""
        return one_line(self._parsed_doc.returns)

    @property
    def documented_shape(self) -> str:
        """The shape of a result that is a plain dict, by the keys that the docstring lists; empty for none."""
        return documented_shape(self._parsed_doc.returns, self.return_schema)

    @cached_property
    def description(self) -> str:
        """The first paragraph of the docstring, or what the tool's definition says."""
        return first_paragraph(self.doc) if self._given_description is None else self._given_description

    def texts(self) -> Iterator[str]:
        """Yield the texts by which a search finds the tool, besides its name; no schema is created for it."""
        function, names = self._function, dict[str, Any]()
        if function is None or self._given_description is not None:
            yield self.description
        if self._given_schema is not None:
            yield from schema_texts(self._given_schema)
        elif function is None:
            yield from _annotation_texts(self._given_model, names)
        else:
            names = getattr(function.code, "__globals__", names)
            yield function.written_doc
            for parameter in function.written:
                if parameter.name not in self.fixed:
                    yield parameter.name
                    yield from _annotation_texts(parameter.annotation, names)
        returns: Any = self._given_return
        if isinstance(returns, Mapping):
            yield from schema_texts(cast("Any", returns))
        elif returns is not None:
            yield from _annotation_texts(returns, names)
        elif function is not None:
            yield from _annotation_texts(function.written_return, names)

    @property
    def return_type(self) -> Any:
        """The type of what comes back, of one value for a generator; None where nothing is said."""
        annotation = self._result()
        return None if annotation is inspect.Signature.empty else annotation

    def _result(self) -> Any:
        if self._given_return is not None:
            return inspect.Signature.empty if isinstance(self._given_return, Mapping) else self._given_return
        return inspect.Signature.empty if self._function is None else self._function.result()

    @cached_property
    def return_schema(self) -> dict[str, Any] | None:
        """The JSON schema of what comes back, of one value for a generator; None where nothing is said.

        Raises:
            SchemaError: A type that was given for it has no schema.
        """
        return return_schema_of(self.name, self._result(), self._given_return)

    @cached_property
    def table_names(self) -> frozenset[str]:
        """The names of the classes of tables that its parameters and its result have."""
        return table_names(self._result()).union(*self.table_parameters.values())

    @property
    def signature(self) -> str:
        """The call as a model would write it: `get_weather(location: str, unit: str = 'celsius') -> dict`."""
        if self._given_schema is not None:
            return self._signature_of_schema
        returns, untyped, chosen = self._result(), frozenset[str](), self._given_return
        if self._function is not None:
            untyped = self._function.untyped()
            returns = self._function.shown_return() if chosen is None or isinstance(chosen, Mapping) else chosen
        return signature_text(self.name, self._shown, self._secret_arguments(), untyped, returns)

    @cached_property
    def _signature_of_schema(self) -> str:
        try:
            return stub_signature(self._stub_source())
        except SchemaError:  # too large to be written out: the names alone
            untyped = frozenset(parameter.name for parameter in self._shown)
            return signature_text(self.name, self._shown, frozenset(), untyped, inspect.Signature.empty)

    def _secret_arguments(self) -> frozenset[str]:
        """Return the parameters whose default is secret; all of them when the types cannot be described."""
        if not any(map(_may_have_secret_default, self._shown)):
            return frozenset()  # without the model of the arguments, which takes long to make
        try:
            inputs = self._input_model()
            return frozenset(inputs.renamed.get(name, name) for name in inputs.secrets)
        except SchemaError:
            return frozenset(parameter.name for parameter in self._shown)

    def stub(
        self, name: str | None = None, docs: bool = True, is_async: bool = False, types: StubTypes | None = None
    ) -> str:
        """Return the tool as a Python function without a body, for a prompt or a type checker.

        Args:
            docs: With its description, and those of its arguments.
            types: Collects the TypedDicts that the stub names; share one between the stubs that are shown together.
        """
        source = self._stub_source()._replace(name=name or self.name)
        return stub_text(source, StubTypes() if types is None else types, docs, is_async)

    def _stub_source(self) -> StubSource:
        returns = self.return_schema
        return StubSource(
            name=self.name,
            parameters=self._shown,
            keys=self._input_model().shown_names(),
            schema=self.parameters,
            returns=returns,
            returns_name=type_title(self.return_type, returns or {}) or camel(f"{self.name}_result"),
            returns_none=self.return_type is NoneType,
            streams=self.is_generator or self.is_sync_generator,
            description=self.description,
            returns_doc=self.returns_doc,
        )

    def stub_types(self, docs: bool = True) -> list[str]:
        """Return the definitions that the stub names, each before the first that uses it."""
        types = StubTypes()
        self.stub(docs=docs, types=types)
        return types.render(docs=docs)


def _may_have_secret_default(parameter: Resolved) -> bool:
    return has_default(parameter) and (is_field(parameter.default) or parameter.annotation not in _NEVER_SECRET)


def _annotation_texts(annotation: Any, names: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the words of a type: what a Literal or an Enum allows, the keys of a record, descriptions.

    Args:
        names: The objects that names in an annotation that is a text stand for.
    """
    if isinstance(annotation, type):
        if depth < _DEEPEST and annotation.__module__.partition(".")[0] not in _SILENT:
            yield from _record_texts(annotation, depth)
    elif isinstance(annotation, str):
        yield annotation
        for name in _NAME.findall(annotation):
            if isinstance(names.get(name), type):
                yield from _annotation_texts(names[name], names, depth + 1)
    elif is_field(annotation):
        yield annotation.description or ""
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation)[:_LONGEST])
    elif depth < _DEEPEST:
        for part in get_args(annotation):
            yield from _annotation_texts(part, names, depth + 1)


def _record_texts(record: Any, depth: int) -> Iterator[str]:
    """Yield the values of an Enum, or the keys of a class with annotations, and what these say."""
    if issubclass(record, Enum):
        yield from (str(member.value) for member in list[Enum](record)[:_LONGEST])
        return
    fields: Mapping[str, Any] = getattr(record, "model_fields", None) or getattr(record, "__annotations__", {})
    for key in list(fields)[:_LONGEST]:
        yield key
        field = fields[key]
        described = is_field(field)
        yield (field.description or "") if described else ""
        yield from _annotation_texts(field.annotation if described else field, {}, depth + 1)
