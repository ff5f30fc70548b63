"""Code mode: one tool that runs programs with the tools as functions, and one that finds these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcrib._json_writer import RepeatedKeyError, read_json
from toolcrib.adapters.mcp_server._client_link import LogLevels
from toolcrib.adapters.mcp_server._elicitation import Suspension
from toolcrib.adapters.mcp_server._options import ServerOptions
from toolcrib.adapters.mcp_server._replies import error_result, text_result
from toolcrib.adapters.mcp_server._tool_server import ToolRequest, ToolServer
from toolcrib.calls import Denial, Grant
from toolcrib.code import ExecutionResult, PausedProgram, Toolkit
from toolcrib.errors import ApprovalError, PausedProgramError, ReplayDiverged, SandboxError
from toolcrib.serving import OpenCalls, Principal
from toolcrib.toolsets import Toolset

_RUN, _SEARCH = "run_python", "search_tools"


class _Run(BaseModel):
    model_config = ConfigDict(extra="forbid")
    code: Annotated[str | None, Field(description="The program, as Python text.")] = None
    request: Annotated[
        str | None, Field(description="In place of a program: a request that a paused one waits for, to go on with it.")
    ] = None


class _Search(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: Annotated[str, Field(description="What the function should do, in a few words.")]
    limit: Annotated[int, Field(description="The most functions to find.", ge=1, le=20)] = 5


class ProgramServer(ToolServer):
    """A toolset as the functions of programs."""

    def __init__(
        self,
        toolset_now: Callable[[], Toolset],
        options: ServerOptions,
        calls: OpenCalls,
        levels: LogLevels,
    ) -> None:
        super().__init__(options, calls, levels)
        self._toolset_now = toolset_now
        self.renewed()

    def renewed(self) -> None:
        """Replace the functions that programs call by those that the toolset has now; programs that run keep theirs."""
        self._toolset, options = self._toolset_now(), self._options
        self._finder = f"{_SEARCH}_" if _SEARCH in self._toolset else _SEARCH
        self._toolkit = Toolkit(self._toolset, sandbox=options.sandbox, sinks=options.sinks)

    @property
    def toolset(self) -> Toolset:
        return self._toolset

    async def list(self, principal: Principal, *, stateless: bool) -> Sequence[types.Tool]:
        schema = self._toolkit.tool_schema("raw", name=_RUN)
        goes_on = (
            "A program that calls a function which needs a person's approval stops there and names the request. Once "
            "that is answered, call `run_python(request=...)` or send the same program: it goes on where it stopped."
        )
        text = f"{schema['description']}\n\n{goes_on}"
        found = "Find functions for `run_python` that its description leaves out, and how each is called."
        return [
            types.Tool(name=_RUN, title="Run Python", description=text, input_schema=_Run.model_json_schema()),
            types.Tool(
                name=_SEARCH,
                title="Search tools",
                description=found,
                input_schema=_Search.model_json_schema(),
                annotations=types.ToolAnnotations(read_only_hint=True),
            ),
        ]

    async def instructions(self, principal: Principal) -> Sequence[str]:
        return [self._toolkit.tool_prompt()]

    def asks(self, name: str) -> bool:
        return name == _RUN

    def may_be_suspended(self, request: ToolRequest) -> bool:
        return request.params.name == _RUN

    def named_approval(self, request: ToolRequest) -> Any:
        arguments = request.params.arguments or {}
        named = arguments.get("request") if request.params.name == _RUN else None
        return super().named_approval(request) if named is None else named

    async def start(self, request: ToolRequest) -> types.CallToolResult | Suspension:
        name, arguments = request.params.name, request.params.arguments or {}
        try:
            if request.text is not None:
                read_json(request.text)
                return _refused(name, "a text has half a character in it; write it again")
            if name == _RUN:
                return await self._program(request, _Run.model_validate(arguments).code)
            if name == _SEARCH:
                return await self._search(request, _Search.model_validate(arguments))
        except RepeatedKeyError as error:
            return _refused(name, error)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            return _refused(name, problems)
        raise MCPError(INVALID_PARAMS, f"there is no tool `{name}`. There are: `{_RUN}`, `{_SEARCH}`.")

    async def resume(
        self, request: ToolRequest, state: Mapping[str, Any], answers: Sequence[Grant | Denial]
    ) -> types.CallToolResult | Suspension:
        grants = [answer for answer in answers if isinstance(answer, Grant)]
        denials = [answer for answer in answers if isinstance(answer, Denial)]
        try:
            paused = PausedProgram.from_dict(state)
            result = await self._toolkit.resume_async(paused, request.run, grants=grants, denials=denials)
        except (ApprovalError, PausedProgramError, ReplayDiverged, SandboxError) as error:
            return error_result(f"{type(error).__name__}: {error}")
        return _result(result)

    async def _program(self, request: ToolRequest, code: str | None) -> types.CallToolResult | Suspension:
        if code is None:
            return error_result(
                f"InvalidArguments: `{_RUN}` cannot take these arguments: code: missing, it is required"
            )
        try:
            return _result(await self._toolkit.execute_async(code, request.run))
        except SandboxError as error:
            return error_result(f"{type(error).__name__}: {error}")

    async def _search(self, request: ToolRequest, wanted: _Search) -> types.CallToolResult:
        """Search as a program does."""
        code = f"{self._finder}({wanted.query!r}, {wanted.limit})"
        result = await self._toolkit.execute_async(code, request.run, origin="host")
        if not result.success:
            return error_result(result.text())
        lines = [f"{found['call']}\n    {found['description']}" for found in result.return_value]
        return text_result("\n".join(lines) or "No function fits.", {"found": result.return_value})


def _refused(tool: str, why: object) -> types.CallToolResult:
    return error_result(f"InvalidArguments: `{tool}` cannot take these arguments: {why}")


def _result(result: ExecutionResult) -> types.CallToolResult | Suspension:
    if result.paused is not None:
        requests = tuple(call.request for call in result.suspended_calls)
        return Suspension(requests, result.paused.to_dict(), result.text())
    return text_result(result.text()) if result.success else error_result(result.text())
