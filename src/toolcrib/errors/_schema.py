"""Errors about arguments, results and the schemas that describe them."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.errors._base import MessageError


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """The fault of one argument, and the mend.

    `field` is a path like `stops[0].city`, or an empty string when the arguments as a whole are wrong.
    """

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


class InvalidArguments(MessageError, TypeError, ValueError):
    """The arguments do not fit the tool's schema; nothing ran."""

    code = "invalid_arguments"
    tool: str
    problems: tuple[FieldProblem, ...]

    def __str__(self) -> str:
        return f"`{self.tool}` cannot take these arguments: {'; '.join(map(str, self.problems))}"


class InvalidOutput(MessageError, TypeError, ValueError):
    """A result that the host's own code gives is not of the type that the tool declares."""

    code = "invalid_output"
    tool: str
    problems: tuple[FieldProblem, ...]

    def __str__(self) -> str:
        return f"`{self.tool}` cannot be completed with this output: {'; '.join(map(str, self.problems))}"


class InvalidSchema(MessageError, TypeError, ValueError):
    """A tool cannot be made of this name or this JSON schema."""

    code = "invalid_schema"
    tool: str
    problem: FieldProblem
    _template = "`{tool}` cannot be made of a JSON schema: {problem}"


class SchemaError(MessageError, TypeError):
    """A parameter or return type has no JSON schema; direct Python calls still work."""

    code = "schema_error"
    tool: str
    parameter: str
    problem: str
    _template = (
        "`{tool}` has no schema: parameter `{parameter}` {problem}. Annotate it with a type that "
        "pydantic can describe, mark it `Annotated[T, Injected]` so that the host supplies it, or give it as a "
        "fixed argument."
    )


class SchemaTooLarge(SchemaError):
    """A schema comes to too much when its references are written out; what sends it as it is still works."""

    code = "schema_too_large"

    def __init__(self, tool: str) -> None:
        super().__init__(tool, "*", "is too large")
        self.args = (tool,)  # what it is made of again, in another process

    def __str__(self) -> str:
        owner = f"`{self.tool}` has a schema that" if self.tool else "the schema"
        return (
            f"{owner} is too large to be written out: it comes to more than 10,000 parts, 1,000,000 characters or 100 "
            "levels, and a choice of types has a level for each. Give it fewer or smaller types, or leave the tool out."
        )


class FormatError(MessageError, ValueError):
    """The tool cannot be offered to this provider as it is."""

    code = "format_error"
    tool: str
    format: str
    problem: str
    _template = "`{tool}` cannot be offered to {format}: {problem}"


class MissingProvided(MessageError, TypeError):
    """The tool declares an injected parameter that this run does not provide."""

    code = "missing_provided"
    tool: str
    parameter: str
    wanted: str

    def __str__(self) -> str:
        return (
            f"`{self.tool}` needs `{self.parameter}` ({self.wanted}) from the host, and this run provides none. Open "
            f"the run with `Run(provide={{{self.parameter!r}: ...}})`, or give the parameter a default."
        )


class ResultNotSerializable(MessageError, TypeError):
    """The tool ran, and what it returned has no JSON form to show a model."""

    code = "result_not_serializable"
    tool: str
    type_name: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"`{self.tool}` ran, and its result of type {self.type_name} has no JSON form{detail}. Return JSON values, "
            "a dataclass, a TypedDict or a pydantic model."
        )
