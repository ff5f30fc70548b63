"""Calls of Claude Code: the run that they belong to, what its hooks are answered, and which of them wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, PreToolUseHookInput, ResultMessage

from toolcrib.approvals import is_answer_to
from toolcrib.calls import ApprovalRequest, Denial, Grant, Suspended, ToolCall, outcome_from_dict
from toolcrib.pipeline import Run
from toolcrib.record import Sink
from toolcrib.serving import CountedRequest, FrameworkRuns, FrameworkTools, record_usage

__all__ = ["ENTRY", "Gates", "Options", "decision", "remember"]

Options = TypeVar("Options", bound=ClaudeAgentOptions)

ENTRY = "claude_agent_sdk"

_MOST = 1_000
"""Calls, sessions and denials that are kept of each; of more, the oldest are forgotten."""


class Gates(ABC):
    """The gates of one set of options, as the calls of its sessions meet them.

    Attributes:
        runs: The runs of the calls.
        sinks: Where their events go, besides those of a run.
        resumed: The session that the options go on with.
    """

    def __init__(self, runs: FrameworkRuns, sinks: Iterable[Sink], resumed: str | None) -> None:
        self.runs, self.sinks, self.resumed = runs, tuple(sinks), resumed
        self._run_of_call: OrderedDict[str, Run] = OrderedDict()
        self._run_of_session: OrderedDict[str, Run] = OrderedDict()  # that of its last prompt
        self._waiting: OrderedDict[str, dict[str, ApprovalRequest]] = OrderedDict()  # by session, by request
        self._denied: OrderedDict[str, str] = OrderedDict()  # by request: the text for the model

    @abstractmethod
    def tools_of(self, name: str) -> FrameworkTools | None:
        """Return the tools that one of Claude Code's names is among; None where it has no gates here."""

    @abstractmethod
    def known(self, name: str) -> FrameworkTools | None:
        """Return the tools that one of our names is among."""

    @abstractmethod
    async def passed(self, tools: FrameworkTools, call: ToolCall, run: Run) -> dict[str, Any]:
        """Return what the hook says of a call that no person has to be asked about any more."""

    def our_name(self, name: str) -> str:
        """Return our name of one of Claude Code's tools."""
        return name

    def resuming(self, options: Options) -> Options:
        """Return the options with which a session goes on."""
        return options

    async def pre_tool_use(self, given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Take a call through the gates before Claude Code runs it; defer it where a person has to answer."""
        name: str = given["tool_name"]
        tools = self.tools_of(name)
        if tools is None:
            return {}
        run = self.run_of(given)
        call = ToolCall(self.our_name(name), dict(given["tool_input"]), tool_use_id or given["tool_use_id"])
        asked = await self.ask(tools, call, run)
        match asked:
            case Suspended():
                self.note(given["session_id"], asked.request)
                return decision("defer", asked.request.text())
            case str():
                return decision("deny", asked)
            case None:
                return await self.passed(tools, call, run)

    async def ask(self, tools: FrameworkTools, call: ToolCall, run: Run) -> Suspended | str | None:
        """Return the suspended call where a person has to answer, the text for the model of a denial, or None."""
        known = await tools.find_suspended(call, run)
        told = None if known is None else self.denial_of(known.request)
        return told if told is not None else await tools.admit(call, run, answer=self.runs.answer_to)

    def run_of(self, given: Mapping[str, Any]) -> Run:
        """Return the run of a prompt's calls, given what a hook is given."""
        session, prompt = str(given.get("session_id", "")), str(given.get("prompt_id", ""))
        run = self.runs.find((session, prompt), given, run_id=prompt)
        own = {} if run.channel.conversation_id is not None else {"conversation_id": session}
        run = run.view(provide={**run.provide, PreToolUseHookInput: given}, **own)
        remember(self._run_of_session, session, run)
        if given.get("tool_use_id"):
            remember(self._run_of_call, str(given["tool_use_id"]), run)
        return run

    def run_of_call(self, tool_use_id: str) -> Run:
        """Return the run that the hook found for a call; that of the resumed session where no hook was called."""
        found = self._run_of_call.get(tool_use_id)
        return self.run_of({"session_id": self.resumed or ""}) if found is None else found

    def record(self, result: ResultMessage) -> None:
        """Record what the requests of a prompt took."""
        usage, run = result.usage or {}, self._run_of_session.pop(result.session_id, None)
        if run is None:
            return  # no call of the prompt came by
        cached = usage.get("cache_read_input_tokens") or 0
        made = usage.get("cache_creation_input_tokens") or 0
        read, written = (usage.get("input_tokens") or 0) + made + cached, usage.get("output_tokens")
        id, models = result.uuid or uuid4().hex, ", ".join(result.model_usage or ())
        record_usage(run, [CountedRequest(id, read, written, cached, models, made)], self.sinks)

    # --- answers

    def denial_of(self, request: ApprovalRequest) -> str | None:
        """Return the text for the model, of a call that was denied."""
        return self._denied.get(request.id)

    def waiting(self, session_id: str) -> list[ApprovalRequest]:
        """Return what a person has to decide in a session that this process ran."""
        return [*self._waiting.get(session_id, {}).values()]

    async def answer(self, session_id: str, answer: Grant | Denial) -> bool:
        """Keep an answer for the session that goes on; False where nothing that it is for waits here.

        Raises:
            ApprovalError: The request was answered before.
        """
        run = self.run_of({"session_id": session_id})
        kept = await self.runs.store_of(run).find_request(run.principal or "", answer.request_id or "")
        suspended = None if kept is None else outcome_from_dict(kept.state)
        if not isinstance(suspended, Suspended) or not is_answer_to(answer, suspended.request):
            return False
        tools = self.known(suspended.tool)
        if tools is None:
            return False
        self._waiting.get(session_id, {}).pop(suspended.request.id, None)
        if isinstance(answer, Grant):
            self.runs.give(suspended.request, answer)
        else:
            remember(self._denied, suspended.request.id, (await tools.deny(suspended, answer, run)).text())
        return True

    def note(self, session_id: str, request: ApprovalRequest) -> None:
        """Note what a person has to decide."""
        known = self._waiting.get(session_id, {})
        remember(self._waiting, session_id, {**known, request.id: request})


def decision(made: Literal["allow", "deny", "defer"], why: str = "", **more: Any) -> dict[str, Any]:
    """Return what a `PreToolUse` hook says of a call."""
    said: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": made, **more}
    return {"hookSpecificOutput": {**said, "permissionDecisionReason": why} if why else said}


def remember(kept: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Keep a value, and forget the oldest of too many."""
    kept[key] = value
    if len(kept) > _MOST:
        kept.popitem(last=False)
