"""Commands of the command line: a dataclass of options is an option each, and a database brings its schema along."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer
from typer.core import TyperCommand

from toolcrib.errors import asks_for_approval

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = {
    "schema": ("TOOLCRIB_SCHEMA", "The schema of a Postgres database that has all the tables"),
    "application": ("TOOLCRIB_APPLICATION", "The application whose queues and work are meant"),
}


_OF_OTHERS = {"--as": "--by", "--approver": "--by", "--db": "--database"}  # options that are called otherwise here
_APPROVAL = (
    'Calls that need approval are declared in the file, as "toolcrib": {"approval": ["TOOL"]} of a server, or in '
    "Python, as @tool(requires_approval=True)."
)
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # by its own name, it is in a package that differs
_MissingParameter = next(kind for kind in typer.BadParameter.__subclasses__() if kind.__name__ == "MissingParameter")


class _Command(TyperCommand):
    """A command that says what an option of another name is called here, and what a missing argument is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            if isinstance(error, _MissingParameter):
                missing: Any = error
                missing.message = missing.param.help or ""
            here = _OF_OTHERS.get(getattr(error, "option_name", ""))
            usage, options = cast("Any", error), {option for parameter in self.params for option in parameter.opts}
            if here in options:
                usage.possibilities = [here]
            elif self.name == "serve" and asks_for_approval(getattr(error, "option_name", "").removesuffix("s")):
                usage.message, usage.possibilities = f"No such option: {usage.option_name}. {_APPROVAL}", []
            elif "extra argument" in usage.message and "--port" in options and (port := _port_in(words)):
                usage.message += f". The port is an option: --port {port}"
            elif "extra argument" in usage.message and self.name == "call":
                usage.message += ". The arguments of a tool are one JSON object: '{\"NAME\": VALUE}'"
            raise


def _port_in(args: Iterable[str]) -> str:
    """Return the port that stands among the arguments of a command, alone or after a host; empty without one."""
    found = (re.fullmatch(r"(?:[^/]*:)?(\d{1,5})", text) for text in args)
    return next((match[1] for match in found if match is not None), "")


class Commands(typer.Typer):
    """A group of commands.

    Each field of a dataclass that a command takes is an option. One that has the option --database has --schema and
    --application beside it.
    """

    def command(self, *args: Any, **options: Any) -> Callable[[F], F]:
        """Return the decorator of a command."""
        register = super().command(*args, **{"cls": _Command, **options})

        def add(function: F) -> F:
            register(_with_options(function))
            return function

        return add


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with a parameter for each option, as Typer reads it.

    The schema and the application of a database are put where what opens a database reads them.
    """
    hints = get_type_hints(function, include_extras=True)
    declared = [
        parameter.replace(annotation=hints[name]) for name, parameter in inspect.signature(function).parameters.items()
    ]
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters = [option for parameter in declared for option in _options_of(parameter)]
    names = [] if all(parameter.name != "database" for parameter in parameters) else [*_OPTIONS]
    for name in names:
        variable, about = _OPTIONS[name]
        option = typer.Option(metavar="NAME", help=f"{about}; {variable} when left out.")
        annotation = Annotated[str | None, option]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))

    @wraps(function)
    def command(**options: Any) -> Any:
        named = {_OPTIONS[name][0]: options.pop(name) for name in names}
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        with _environment({variable: value for variable, value in named.items() if value is not None}):
            return function(**options)

    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    cast("Any", command).__signature__ = inspect.Signature(parameters)
    return command


def _options_of(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return a parameter by its name, or one for each field of the dataclass that it takes."""
    kind: Any = parameter.annotation
    if not is_dataclass(kind):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


@contextmanager
def _environment(values: dict[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
