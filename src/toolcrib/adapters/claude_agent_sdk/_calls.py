"""Calls of Claude Code: the run that they belong to, what its hooks are answered, and which of them wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, PreToolUseHookInput, ResultMessage

from toolcrib.approvals import is_answer_to
from toolcrib.calls import ApprovalRequest, Suspended, ToolCall
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving.frameworks import (
    FrameworkRuns,
    FrameworkTools,
    Given,
    RecentValues,
    UsageNames,
    is_to_earlier,
    record_usage,
)

Options = TypeVar("Options", bound=ClaudeAgentOptions)

ENTRY = "claude_agent_sdk"

_USAGE = UsageNames(
    "input_tokens cache_creation_input_tokens cache_read_input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Gates(ABC):
    """The gates of one set of options, as the calls of its sessions meet them.

    Attributes:
        resumed: The session that the options go on with.
    """

    def __init__(self, runs: FrameworkRuns, sinks: Iterable[Sink], resumed: str | None) -> None:
        self.runs, self.sinks, self.resumed = runs, tuple(sinks), resumed
        self._run_of_call: RecentValues[str, Run] = RecentValues()
        self._run_of_session: RecentValues[str, Run] = RecentValues()  # that of its last prompt
        self._waiting: RecentValues[str, dict[str, ApprovalRequest]] = RecentValues()  # by session, by request
        self._denied: RecentValues[str, str] = RecentValues()  # by request: the text for the model

    @abstractmethod
    def tools_of(self, name: str) -> FrameworkTools | None:
        """Return the tools that one of Claude Code's names is among; None where it has no gates here."""

    @abstractmethod
    def known(self, name: str) -> FrameworkTools | None:
        """Return the tools that one of our names is among."""

    @abstractmethod
    async def passed(self, tools: FrameworkTools, call: ToolCall, run: Run) -> dict[str, Any]:
        """Return the hook's answer about a call that needs no person any more."""

    def our_name(self, name: str) -> str:
        """Return our name of one of Claude Code's tools."""
        return name

    def resuming(self, options: Options) -> Options:
        """Return the options with which a session goes on."""
        return options

    async def pre_tool_use(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Pass a call through the gates before Claude Code runs it; defer it where a person has to answer."""
        name: str = data["tool_name"]
        tools = self.tools_of(name)
        if tools is None:
            return {}
        run = self.run_of(data)
        call = ToolCall(self.our_name(name), dict(data["tool_input"]), tool_use_id or data["tool_use_id"])
        asked = await self.ask(tools, call, run)
        match asked:
            case Suspended():
                self.note(data["session_id"], asked.request)
                return decision("defer", asked.request.text())
            case str():
                return decision("deny", asked)
            case None:
                return await self.passed(tools, call, run)

    async def ask(self, tools: FrameworkTools, call: ToolCall, run: Run) -> Suspended | str | None:
        """Return the suspended call where a person has to answer, the text for the model of a denial, or None."""
        told = await self.denial_of(tools, call, run)
        return told if told is not None else await tools.admit(call, run, answer=self.runs.answer_to)

    def run_of(self, data: Mapping[str, Any]) -> Run:
        """Return the run of a prompt's calls, given what a hook is given."""
        session, prompt = str(data.get("session_id", "")), str(data.get("prompt_id", ""))
        provide = {PreToolUseHookInput: data}
        run = self.runs.find((session, prompt), data, run_id=prompt, provide=provide, conversation_id=session)
        self._run_of_session.keep(session, run)
        if data.get("tool_use_id"):
            self._run_of_call.keep(str(data["tool_use_id"]), run)
        return run

    def run_of_call(self, tool_use_id: str) -> Run:
        """Return the run that the hook found for a call; that of the resumed session where no hook was called."""
        found = self._run_of_call.get(tool_use_id)
        return self.run_of({"session_id": self.resumed or ""}) if found is None else found

    def record(self, result: ResultMessage) -> None:
        """Record the usage of a prompt's requests."""
        run = self._run_of_session.pop(result.session_id, None)
        if run is not None:  # a call of the prompt came by
            models = ", ".join(result.model_usage or ())
            request = _USAGE.request(result.uuid or uuid4().hex, result.usage, models)
            record_usage(run, [request], self.sinks)

    # --- answers

    async def denial_of(self, tools: FrameworkTools, call: ToolCall, run: Run) -> str | None:
        """Return the text for the model, of a call that was denied."""
        known = await tools.find_suspended(call, run)
        return None if known is None else self._denied.get(known.request.id)

    def waiting(self, session_id: str) -> list[ApprovalRequest]:
        """Return the requests that a person must answer in a session that this process ran."""
        return [*self._waiting.get(session_id, {}).values()]

    async def answer(self, session_id: str, answer: Given) -> bool:
        """Keep an answer for the session that goes on; False where nothing that it is for waits here.

        Nothing is kept for a request whose answer the store has: the store is asked when the call comes.

        Raises:
            ApprovalError: The request was answered before.
        """
        run = self.run_of({"session_id": session_id})
        asked = answer.id if isinstance(answer, ApprovalRequest) else answer.request_id
        found = await self.runs.find_request(asked or "", run)
        tools = None if found is None else self.known(found[1].tool)
        if found is None or tools is None:
            return False
        request = found[1].request
        if isinstance(answer, ApprovalRequest):
            self._waiting.get(session_id, {}).pop(request.id, None)
            return True
        if not (is_answer_to(answer, request) or is_to_earlier(answer, request)):
            return False
        verdict = await tools.take_answer(found[1], answer, run)
        if isinstance(verdict, str):
            self._denied.keep(request.id, verdict)
        if verdict is not False:
            self._waiting.get(session_id, {}).pop(request.id, None)
        return True

    def note(self, session_id: str, request: ApprovalRequest) -> None:
        """Record a request that a person must answer."""
        known = self._waiting.get(session_id, {})
        self._waiting.keep(session_id, {**known, request.id: request})


def decision(verdict: Literal["allow", "deny", "defer"], why: str = "", **more: Any) -> dict[str, Any]:
    """Return the answer of a `PreToolUse` hook about a call."""
    output: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": verdict, **more}
    return {"hookSpecificOutput": {**output, "permissionDecisionReason": why} if why else output}
