"""Way in that needs the extra `claude-agent-sdk`: a session of that SDK with a stand-in for Claude Code.

The stand-in speaks the protocol between the SDK and Claude Code 2.1: hooks, permissions, MCP servers of this process,
deferred calls. It plays what a model says from a script.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, ToolResultBlock, Transport, UserMessage, query

from toolcrib.adapters.claude_agent_sdk import GatedOptions, answers, approval_requests, as_tools
from toolcrib.approvals import MemorySuspendedCalls
from toolcrib.calls import Failed, Outcome, Suspended, ToolCall, outcome_from_dict
from toolcrib.errors import ApprovalError
from toolcrib.pipeline import Run
from toolcrib.testing import RecordingSink
from toolcrib.testing._ways import Ability, RunWay, Way, WayRequest

__all__ = ["ScriptedCli", "claude_agent_sdk_ways"]

_ORDER = ("deny", "defer", "ask", "allow")


@dataclass
class ScriptedCli(Transport):
    """A stand-in for the program that the SDK runs.

    Attributes:
        options: The options of the session, most of which the program is given on its command line.
        steps: The calls that a model makes: in each step `(id, name, input)` of some.
        sessions: The calls that are deferred, by session: what the program keeps in its own files.
        builtin: What the program's own tools give, by name: a value, or an exception.
        usage: What the prompt takes, as a `ResultMessage` says it.
        late: Go on with a deferred call before the hooks are known, as the program does now and then.
        results: What a model is given for each call, by id.
    """

    options: ClaudeAgentOptions
    steps: Sequence[Sequence[tuple[str, str, dict[str, Any]]]] = ()
    sessions: dict[str, list[list[Any]]] = field(default_factory=dict[str, list[list[Any]]])
    builtin: Mapping[str, Any] = field(default_factory=dict[str, Any])
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    late: bool = False
    results: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._hooks: dict[str, list[dict[str, Any]]] = {}
        self._session, self._prompt = self.options.resume or str(uuid4()), ""
        self._served: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._out.put_nowait(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._out.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        match message["type"]:
            case "control_request":
                self._control(message["request_id"], message["request"])
            case "control_response":
                self._answered(message["response"])
            case "user":
                task = asyncio.create_task(self._play())
                self._tasks.add(task)
            case other:
                raise AssertionError(f"Claude Code knows no message {other}")

    # --- the protocol

    def _control(self, request_id: str, request: dict[str, Any]) -> None:
        if request["subtype"] == "initialize":
            self._hooks = request["hooks"] or {}
        elif request["subtype"] != "interrupt":
            raise AssertionError(f"Claude Code knows no request {request['subtype']}")
        else:
            for task in self._tasks:
                task.cancel()
        response: dict[str, Any] = {"commands": [], "hook_on_failure_supported": True}
        done: dict[str, Any] = {"subtype": "success", "request_id": request_id, "response": response}
        self._out.put_nowait({"type": "control_response", "response": done})

    def _answered(self, response: dict[str, Any]) -> None:
        waiting = self._answers.pop(response["request_id"])
        if response["subtype"] == "error":
            waiting.set_exception(RuntimeError(response["error"]))
        else:
            waiting.set_result(response["response"])

    async def _ask(self, subtype: str, **about: Any) -> dict[str, Any]:
        request_id = str(uuid4())
        waiting = self._answers[request_id] = asyncio.get_running_loop().create_future()
        request = {"subtype": subtype, **about}
        self._out.put_nowait({"type": "control_request", "request_id": request_id, "request": request})
        try:
            return await waiting
        except asyncio.CancelledError:
            self._out.put_nowait({"type": "control_cancel_request", "request_id": request_id})
            raise

    async def _hook(self, event: str, **about: Any) -> list[dict[str, Any]]:
        given = {"session_id": self._session, "prompt_id": self._prompt, "cwd": "/", "hook_event_name": event, **about}
        said: list[dict[str, Any]] = []
        for matcher in self._hooks.get(event, []):
            for callback in matcher["hookCallbackIds"]:
                ask = {"callback_id": callback, "input": given, "tool_use_id": about.get("tool_use_id")}
                try:
                    said.append(await self._ask("hook_callback", **ask))
                except RuntimeError as error:
                    if matcher.get("onFailure") == "block":
                        about_error = {"permissionDecision": "deny", "permissionDecisionReason": str(error)}
                        said.append({"hookSpecificOutput": about_error})
        return said

    # --- a turn

    async def _play(self) -> None:
        self._say("system", subtype="init", tools=[], mcp_servers=[])
        deferred = [(id, name, given) for id, name, given in self.sessions.pop(self._session, [])]
        going = await self._calls(deferred, resumed=True) if deferred else True
        self._prompt = str(uuid4())
        for step in self.steps:
            if not going:
                break
            blocks = [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in step]
            self._say("assistant", message={"role": "assistant", "model": "script", "content": blocks})
            going = await self._calls(step)
        await self._hook("Stop", stop_hook_active=False)
        self._result("end_turn" if going else "tool_deferred" if self._session in self.sessions else None)

    async def _calls(self, calls: Sequence[tuple[str, str, dict[str, Any]]], *, resumed: bool = False) -> bool:
        """Make calls; False where one was deferred, or stopped the turn."""
        going = True
        for id, name, given in calls:
            said = (
                []
                if resumed and self.late
                else await self._hook("PreToolUse", tool_name=name, tool_input=given, tool_use_id=id)
            )
            about = [one.get("hookSpecificOutput", {}) for one in said]
            made = [one.get("permissionDecision") for one in about]
            given = next((one["updatedInput"] for one in about if "updatedInput" in one), given)
            decided = next((word for word in _ORDER if word in made), "")
            why = next((one.get("permissionDecisionReason", "") for one in about if decided in one.values()), "")
            if decided == "defer":
                self.sessions.setdefault(self._session, []).append([id, name, given])
                going = False
            elif decided == "deny":
                self._give(id, why, is_error=True)
            else:
                going = await self._permitted(id, name, given, decided == "allow") and going
        return going

    async def _permitted(self, id: str, name: str, given: dict[str, Any], allowed: bool) -> bool:
        rules: Any = json.loads(str(self.options.settings or "{}")).get("permissions", {})
        asks = "*" in rules.get("ask", []) or name in rules.get("ask", [])
        server = name.rpartition("__")[0]
        known = name in self.options.allowed_tools or server in self.options.allowed_tools
        if asks or not (allowed or known or self.options.permission_mode == "bypassPermissions"):
            if self.options.can_use_tool is None:
                self._give(id, f"{name} needs approval", is_error=True)
                return True
            said = await self._ask("can_use_tool", tool_name=name, input=given, tool_use_id=id)
            if said["behavior"] == "deny":
                self._give(id, said["message"], is_error=True)
                return not said.get("interrupt", False)
            given = said["updatedInput"]
        return await self._made(id, name, given)

    async def _made(self, id: str, name: str, given: dict[str, Any]) -> bool:
        about = {"tool_name": name, "tool_input": given, "tool_use_id": id}
        if name.startswith("mcp__"):
            _, server, tool = name.split("__", 2)
            result = await self._serve(server, "tools/call", name=tool, arguments=given, _meta=_meta(id))
            value, failed = result["content"], bool(result.get("isError"))
        else:
            value = self.builtin[name]
            failed = isinstance(value, Exception)
            value = value(given) if callable(value) else value
        if failed:
            await self._hook("PostToolUseFailure", error=str(value), **about)
            self._give(id, str(value) if isinstance(value, Exception) else value, is_error=True)
            return True
        said = await self._hook("PostToolUse", tool_response=value, **about)
        changed = [one["hookSpecificOutput"] for one in said if "hookSpecificOutput" in one]
        self._give(id, next((one["updatedToolOutput"] for one in changed if "updatedToolOutput" in one), value))
        return all(one.get("continue", True) for one in said)

    async def _serve(self, server: str, method: str, **params: Any) -> dict[str, Any]:
        if server not in self._served:
            self._served.add(server)
            about = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "script", "version": "1"},
            }
            await self._send(server, {"id": "i", "method": "initialize", "params": about})
            await self._send(server, {"method": "notifications/initialized"})
            await self._send(server, {"id": "l", "method": "tools/list"})
        message = await self._send(server, {"id": str(uuid4()), "method": method, "params": params})
        return message["result"]

    async def _send(self, server: str, message: dict[str, Any]) -> dict[str, Any]:
        sent = await self._ask("mcp_message", server_name=server, message={"jsonrpc": "2.0", **message})
        return sent["mcp_response"]

    # --- messages

    def _give(self, id: str, content: Any, *, is_error: bool = False) -> None:
        self.results[id] = content
        block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
        self._say("user", message={"role": "user", "content": [block]})

    def _result(self, reason: str | None) -> None:
        counted: dict[str, Any] = {
            "duration_ms": 1,
            "duration_api_ms": 1,
            "num_turns": 1,
            "total_cost_usd": 0.0,
            "usage": dict(self.usage),
        }
        self._say("result", subtype="success", is_error=False, stop_reason=reason, result="done", **counted)
        self._out.put_nowait(None)

    def _say(self, type: str, **about: Any) -> None:
        ids = {"session_id": self._session, "uuid": str(uuid4()), "parent_tool_use_id": None}
        self._out.put_nowait({"type": type, **ids, **about})


def _meta(id: str) -> dict[str, Any]:
    return {"claudecode/toolUseId": id, "progressToken": 1}


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A session that waits: the calls that are deferred, and the store of the suspended one."""

    session: str
    sessions: dict[str, list[list[Any]]]
    calls: MemorySuspendedCalls


class ClaudeAgentSDKWay(Way):
    """A session of the Claude Agent SDK; answered in a new one that goes on with it."""

    title = "claude_agent_sdk"
    abilities: ClassVar[frozenset[Ability]] = RunWay.abilities - {"json"}  # Claude Code sends objects

    def __init__(self) -> None:
        self._stopped: dict[str, _Stopped] = {}  # by request

    async def carry(self, request: WayRequest) -> Outcome:
        watch = RecordingSink()
        run = request.run.with_sinks(watch)
        made = request.call
        if isinstance(made, ToolCall):
            calls, sessions = MemorySuspendedCalls(), dict[str, list[list[Any]]]()
            options = _options(request, run, calls)
            steps = [[(made.id, f"mcp__toolcrib__{made.name}", request.json_arguments)]]
        else:
            stopped = self._stopped[made.request.id]
            calls, sessions, steps = stopped.calls, json.loads(json.dumps(stopped.sessions)), []
            options = _options(request, run, calls)
            try:
                options = await self._answered(request, made, stopped, options)
            except ApprovalError as error:
                return Failed(made.tool, made.call_id, error.code, str(error), "ApprovalError", exception=error)
        cli = ScriptedCli(options, steps, sessions)
        shown: list[str] = []
        session = ""
        async for message in query(prompt="call it", options=options, transport=cli):
            if isinstance(message, UserMessage) and isinstance(message.content, list):
                shown += [_shown(block.content) for block in message.content if isinstance(block, ToolResultBlock)]
            if isinstance(message, ResultMessage):
                session = message.session_id
        asked = approval_requests(options, session)
        if asked:
            kept = await calls.find_request(run.principal or "", asked[0].id)
            suspended = None if kept is None else outcome_from_dict(kept.state)
            if not isinstance(suspended, Suspended):
                raise AssertionError(f"the suspended call is not kept: {suspended}")
            self._stopped[asked[0].id] = _Stopped(session, sessions, calls)
            return suspended
        if isinstance(made, Suspended) and request.answer is None and not watch.records:
            return made  # Claude Code makes the call again when it goes on
        request.shown.append("\n".join(shown))
        return outcome_from_dict(watch.records[-1].outcome)

    async def _answered(
        self, request: WayRequest, made: Suspended, stopped: _Stopped, options: GatedOptions
    ) -> GatedOptions:
        kept = await stopped.calls.find_request(request.run.principal or "", made.request.id)
        if kept is not None:
            await stopped.calls.keep(replace(kept, state=made.to_dict()))
        given = [] if request.answer is None else [request.answer]
        return await answers(options, stopped.session, *given)


def _options(request: WayRequest, run: Run, calls: MemorySuspendedCalls) -> GatedOptions:
    return as_tools(request.toolset, run=lambda given: run, suspended=calls)


def _shown(content: Any) -> str:
    if not isinstance(content, list):
        return str(content)
    blocks = cast("list[dict[str, Any]]", content)
    return "\n".join(str(block.get("text") or block.get("data") or block) for block in blocks)


claude_agent_sdk_ways: tuple[Way, ...] = (ClaudeAgentSDKWay(),)
