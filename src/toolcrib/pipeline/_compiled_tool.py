"""CompiledTool: the gates of one tool in one pipeline, flattened once and read on every call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel

from toolcrib import hooks as _hooks
from toolcrib import schema
from toolcrib.calls import RawArguments
from toolcrib.errors import HookError, SchemaError, ToolcribError, exception_of
from toolcrib.hooks import GateStep, HookSet, Occasion
from toolcrib.pipeline._call import Executor
from toolcrib.pipeline._run import BodyWrapper, Execute
from toolcrib.schema import RunContext
from toolcrib.toolsets import ToolEntry, ToolRunner, Toolset

if TYPE_CHECKING:
    from toolcrib.hooks import DecisionHook

Reading: TypeAlias = Literal["json", "python"]


@dataclass(frozen=True, slots=True)
class RunnableTool:
    """The tool as an overridden `_call_tool_func` gets it, with `call_func` to continue."""

    name: str
    entry: ToolEntry
    call_func: Callable[[dict[str, Any], RunContext[Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class GateList:
    """The gates that a call passes, in order.

    Attributes:
        before: Those that are asked before the arguments are read.
        after: Those that are asked about the arguments, up to approval.
        approve: Those that say why a person has to approve the call.
        read_host_arguments: Whether one of them, or of those for another occasion, looks at the arguments of a host's
            own call.
        is_empty: Whether there are none.
    """

    before: tuple[GateStep, ...] = ()
    after: tuple[GateStep, ...] = ()
    approve: tuple[GateStep, ...] = ()
    read_host_arguments: bool = False
    is_empty: bool = True


class CompiledTool:
    """One tool in one pipeline: its gates, and what is around its function.

    Attributes:
        toolset: The tools that it is one of.
        steps: The gates of the tool itself; a run may have more.
        begin_gates: Those of them that are asked once more right before the tool begins.
        lists: Its gates with those of runs, by occasion and by the gates of the run.
        buffered_post_hooks: Post hooks that need the whole result, so that a stream's values wait for them.
        value_post_hooks: Post hooks that see each value of a stream.
        execution: Makes one execution of the tool's function: what is awaited of one that returns, what is entered of a
            stream; None for a declared input.
        wrappers: The wrappers around the execution, the outermost first: the executor, and overridden methods.
        has_wrappers: Whether other code stands around the execution.
        calls_body_directly: Whether executing is nothing but the tool's body.
        streams_through: Whether the values of a streaming tool can be given as they come.
        shortener: Makes what is shown in the place of a result that is too long; None where results are cut.
        finish_is_async: Whether there is something to await when the tool has run.
    """

    def __init__(
        self,
        entry: ToolEntry,
        toolset: Toolset,
        hooks: HookSet | None,
        executor: Executor | None,
        shortener: _hooks.Shortener | None = None,
        steps: tuple[GateStep, ...] = (),
    ) -> None:
        tool, self.toolset = entry.tool, toolset
        self._defaults: dict[str, Any] | None = None
        self.entry, self.tool, self.spec, self.name, self.off = entry, tool, tool.spec, entry.name, entry.off
        self.streaming = tool.is_streaming
        self.execution: Callable[..., Any] | None = None
        if tool.fn is not None:
            self.execution = tool.body.stream if tool.is_streaming else tool.body.call
        self.timeout, self.max_retries = entry.timeout, entry.max_retries
        self.max_result_chars = entry.max_result_chars
        self.pre = entry.pre
        self.buffered_post_hooks = tuple(step for step in entry.post if not (step.per_value and self.streaming))
        self.deliveries = entry.deliveries
        self.shortener = shortener
        self.finish_is_async = bool(self.buffered_post_hooks or self.deliveries) or shortener is not None
        self.value_post_hooks = tuple(step for step in entry.post if step.per_value and self.streaming)
        self.hook_sets = ((hooks, entry.name), *entry.hook_sets) if hooks is not None else entry.hook_sets
        around = () if executor is None else (_by_executor(executor),)
        self.wrappers: tuple[BodyWrapper, ...] = (*around, *(_by_runner(runner, entry) for runner in entry.runners))
        self.has_wrappers = bool(self.wrappers)
        self.calls_body_directly = not self.streaming and not self.has_wrappers and self.execution is not None
        self.streams_through = self.streaming and not (self.buffered_post_hooks or self.has_wrappers)
        self.steps = steps
        self.begin_gates = tuple(step for step in steps if step.begin is not None)
        self.lists: dict[Occasion, dict[tuple[GateStep, ...], GateList]] = {name: {} for name in get_args(Occasion)}
        supplies = bool(self.tool.fixed) or self._injects()
        self.wants_ctx = bool(steps or self.streaming or entry.post or self.deliveries or entry.runners or supplies)
        self.has_secrets = self._has_secrets()
        self.may_quote_secrets = supplies or self.has_secrets

    def _injects(self) -> bool:
        try:
            return bool(self.spec.injected)
        except SchemaError:  # raised again where the arguments are read, with the parameter's name
            return True

    def _has_secrets(self) -> bool:
        try:
            return self.spec.has_secrets
        except SchemaError:  # what is secret cannot be known
            return True

    @cached_property
    def description(self) -> str:
        """The description of the tool that models get."""
        return self.entry.description

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The JSON schema of the arguments; None without one, as only a host can call such a tool."""
        try:
            return self.spec.parameters
        except SchemaError:
            return None

    @cached_property
    def definition(self) -> str | None:
        """The digest of what the tool says that it is and takes, which a grant holds for; None without a schema.

        Where the server or the object behind the tool is known, the digest of its identity follows after an `@`.
        """
        source, parameters = self.tool.source, self.parameters
        if parameters is None:
            return None
        definition: dict[str, Any] = {"description": self.spec.description, "parameters": parameters}
        definition["third party"] = None if source is None else source.get_definition()
        identity = self.tool.identity if source is None else source.get_identity()
        stated = schema.digest(self.name, definition)
        if identity is None and not self.entry.identities:
            return stated
        return f"{stated}@{schema.digest(self.name, {'tool': identity, 'toolset': list(self.entry.identities)})}"

    def decisions(self) -> list[DecisionHook]:
        """Return the decision hooks, in order; asked anew, because a hook may be registered at any time."""
        return [decision for hooks, name in self.hook_sets for decision in hooks.decisions_for(name)]

    def read_python(self, values: Mapping[str, Any], *, host: bool) -> dict[str, Any]:
        """Return the arguments that Python values come to, such as edited ones.

        Raises:
            InvalidArguments: They do not fit.
            SchemaError: The tool has no schema to check a model's arguments against.
        """
        if host:
            return self.validated(self.tool.bind((), values))
        return self.spec.arguments(self.spec.validate_python(values))

    def read_json(
        self, values: Mapping[str, Any], *, host: bool = False, reading: Reading = "json", convert: bool = False
    ) -> dict[str, Any]:
        """Return the arguments that a JSON form describes; raises what `read_python` does.

        Args:
            host: It may have what only a host gives: fixed and injected arguments, or those of a tool without a schema.
            reading: Whether they are read as JSON, or as the Python values of a host, such as a `str` that a union
                takes as it is and would read as a date.
            convert: Whether JSON is converted where pydantic can, as the values of a host are.
        """
        spec = self.spec
        if reading == "python":
            return self.validated(values) if host else spec.arguments(spec.validate_python(values))
        of_host = {
            name: value for name, value in values.items() if host and (name in spec.fixed or name in spec.injected)
        }
        of_model = {name: value for name, value in values.items() if name not in of_host}
        try:
            return {**spec.arguments(spec.validate_json(json.dumps(of_model), convert)), **of_host}
        except SchemaError:
            if not host:
                raise
            return self.validated(values)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a host's arguments validated, with the defaults; as they are where the tool has no schema.

        Raises:
            InvalidArguments: They do not fit.
        """
        spec = self.spec
        try:
            return spec.validate_host(arguments)
        except SchemaError:  # a host may pass what has no schema
            if self._defaults is None:
                self._defaults = dict(spec.defaults)
            return {**self._defaults, **arguments}

    def make_input(self, raw: RawArguments) -> BaseModel:
        """Return the input that a model's arguments describe; raises what `read_python` does."""
        return self.spec.validate_model(raw)


# --- what stands around the execution


def _by_executor(executor: Executor) -> BodyWrapper:
    async def wrap(call: Any, execute: Execute, arguments: dict[str, Any], ctx: RunContext[Any] | None) -> Any:
        return await executor.execute(call, lambda: execute(call.args.copy(), ctx))

    return wrap


def _by_runner(runner: ToolRunner, entry: ToolEntry) -> BodyWrapper:
    async def wrap(call: Any, execute: Execute, arguments: dict[str, Any], ctx: Any) -> Any:
        is_tools_error = False

        async def run_tool(arguments: dict[str, Any], ctx: Any) -> Any:
            nonlocal is_tools_error
            try:
                return await execute(arguments, ctx)
            except BaseException:
                is_tools_error = True
                raise

        try:
            return await runner(arguments, ctx, RunnableTool(entry.name, entry, run_tool))
        except BaseException as error:  # of a task that an executor makes, it would end the event loop
            if is_tools_error or isinstance(error, ToolcribError):
                raise exception_of(error)  # noqa: B904 -- it is the same error, or has it as its cause
            raise HookError.of(entry.name, "execution", runner, error)  # noqa: B904 -- it has it as its cause

    return wrap
