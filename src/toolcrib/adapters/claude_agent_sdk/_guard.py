"""Gates around the tools that Claude Code runs: its own, and those of its MCP servers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from toolcrib.adapters.claude_agent_sdk._calls import ENTRY, Gates, Options, decision
from toolcrib.adapters.claude_agent_sdk._options import GatedOptions, asking, gated, hooked
from toolcrib.approvals import SuspendedCallStore
from toolcrib.calls import Completed, Outcome, Suspended, ToolCall
from toolcrib.errors import ToolcribError
from toolcrib.pipeline import Call, Run, is_call
from toolcrib.schema import ToolSpec
from toolcrib.serving import GuardPolicy, takes_policy
from toolcrib.serving.frameworks import FrameworkTools, GuardedTools, RecentValues
from toolcrib.tools import Tool

_log = logging.getLogger("toolcrib.tools")

_OWN = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "RemoteTrigger",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
]
"""The tools that Claude Code has itself; those of a newer one are known where the options name them."""

_ANY = {"type": "object", "additionalProperties": True}


@takes_policy
def guard(
    options: ClaudeAgentOptions, policy: GuardPolicy, *, suspended: SuspendedCallStore | None = None
) -> GatedOptions:
    """Return options with the gates of a policy around each tool that Claude Code runs, MCP servers' included.

    What the gates let through is then asked about as Claude Code itself has it. A person's approval, by an approver or
    by `answer`, counts for both.

    Args:
        options: Options of the SDK, or what `as_tools` made of them.
        policy: The gates; a function that opens its runs is given what Claude Code gives its hooks.
        suspended: Where suspended calls are kept; when None, beside the approval store of the run, or in memory.

    Raises:
        ToolConstraintError: The policy has a name of no tool that Claude Code has or the options name, and that is not
            one of an MCP server's tool, such as `mcp__files__delete`.
        ValueError: The policy has a timeout: Claude Code runs its tools itself.
    """
    if GuardPolicy.checked(policy).timeout is not None:
        raise ValueError("GuardPolicy: timeout is for tools that run here; for Claude Code set BASH_DEFAULT_TIMEOUT_MS")
    listed = options.tools if isinstance(options.tools, list) else ()
    named = (*options.allowed_tools, *options.disallowed_tools, *listed)
    of_servers = [name for name in policy.tool_names if name.startswith("mcp__")]
    replace(policy).check_names([*_OWN, *of_servers, *(rule.partition("(")[0] for rule in named)])
    gates = _GuardGates(options, policy, GuardedTools(ENTRY, policy, suspended))
    result = gated(
        options,
        gates,
        hooks=hooked(
            options,
            PreToolUse=gates.pre_tool_use,
            PostToolUse=gates.post_tool_use,
            PostToolUseFailure=gates.post_tool_use,
            Stop=gates.stop,
        ),
    )
    return gates.resuming(result) if options.resume is not None or options.continue_conversation else result


class _GuardGates(Gates):
    """The gates of a policy, around each tool that Claude Code runs."""

    def __init__(self, options: ClaudeAgentOptions, policy: GuardPolicy, tools: GuardedTools) -> None:
        super().__init__(tools.runs, tools.sinks, options.resume)
        self._options, self._policy, self._tools = options, policy, tools
        self._running: RecentValues[str, tuple[FrameworkTools, Call]] = RecentValues()  # by call id

    def tools_of(self, name: str) -> FrameworkTools | None:
        self._tools.check_names([name], by_words=False)
        return None if self._tools.leaves(name) else self._tools.guard(name, None, lambda: _tool(name))

    def known(self, name: str) -> FrameworkTools | None:
        return self.tools_of(name)

    async def pre_tool_use(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Pass a call through the gates; end the session where its run or a gate of the host is wrong."""
        try:
            return await super().pre_tool_use(data, tool_use_id, context)
        except Exception as error:  # Claude Code runs the tool where a hook fails
            _log.error("the session ends before its call of `%s`: %s", data["tool_name"], error)
            return {**decision("deny", str(error)), "continue_": False, "stopReason": str(error)}

    async def passed(self, tools: FrameworkTools, call: ToolCall, run: Run) -> dict[str, Any]:
        admitted = await self._begin(tools, call, run)
        if not is_call(admitted):
            return decision("deny", admitted.text())
        edits: dict[str, Any] = (
            {} if admitted.arguments == call.arguments else {"updatedInput": dict(admitted.arguments)}
        )
        if admitted.grant is not None:
            return decision("allow", "", **edits)
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **edits}} if edits else {}

    async def post_tool_use(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Finish a call with what its tool gave, or with how it failed."""
        tools, call = self._running.pop(tool_use_id or "", (None, None))
        if tools is None or call is None:
            return {}
        if data["hook_event_name"] == "PostToolUseFailure":
            error = ToolcribError(str(data["error"]))
            await tools.pipeline.finish(tools.pipeline.executed(call, error=error))
            return {}
        value = data["tool_response"]
        outcome = await tools.pipeline.finish(tools.pipeline.executed(call, value))
        if not isinstance(outcome, Completed):
            return {"continue_": False, "stopReason": outcome.text()}
        if outcome.value is value and not tools.pipeline.has_deliveries(call.name, call.run):
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": outcome.value}}

    async def stop(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Close the records of calls that Claude Code did not make."""
        for id in [*self._running]:
            tools, call = self._running.pop(id)
            tools.pipeline.discard(call)
        return {}

    # --- going on

    def resuming(self, options: Options) -> Options:
        """Return options in which Claude Code asks about each call that may need approval, before and after its hooks.

        A session that goes on makes a deferred call at once, now and then before its hooks are known.
        """
        names = self._names_to_ask_about
        if not names or options.can_use_tool == self.can_use_tool:
            return options
        return replace(options, settings=asking(options, names), can_use_tool=self.can_use_tool)

    async def can_use_tool(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        """Pass a call through the gates where its hook was not called; ask as Claude Code would do without us."""
        tools, id = self.tools_of(name), context.tool_use_id or ""
        if tools is None:
            return await self._their_word(name, arguments, context)
        if id not in self._running:
            run = self.run_of_call(id)
            call = ToolCall(name, dict(arguments), id)
            asked = await self.ask(tools, call, run)
            if isinstance(asked, Suspended):
                self.note(run.channel.conversation_id or "", asked.request)
                return PermissionResultDeny(message=asked.text(), interrupt=True)
            admitted = asked if isinstance(asked, str) else await self._begin(tools, call, run)
            if isinstance(admitted, str) or not is_call(admitted):
                return PermissionResultDeny(message=admitted if isinstance(admitted, str) else admitted.text())
        call = self._running[id][1]
        if call.grant is not None:
            return PermissionResultAllow(updated_input=dict(call.arguments))
        return await self._their_word(name, dict(call.arguments), context)

    async def _their_word(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        options = self._options
        if options.can_use_tool is not None:
            return await options.can_use_tool(name, arguments, context)
        servers = (
            [f"mcp__{server}" for server in options.mcp_servers] if isinstance(options.mcp_servers, Mapping) else []
        )
        allowed = name in options.allowed_tools or any(
            name.startswith(f"{server}__") and server in options.allowed_tools for server in servers
        )
        if allowed or options.permission_mode == "bypassPermissions":
            return PermissionResultAllow(updated_input=arguments)
        return PermissionResultDeny(
            message=f"`{name}` needs permission: list it in allowed_tools, or give can_use_tool"
        )

    # --- inside

    @property
    def _names_to_ask_about(self) -> list[str]:
        """The tools that the policy may ask a person about, as Claude Code's rules name them."""
        approve = self._policy.approve
        if self.runs.may_ask or self._policy.hooks is not None or callable(approve) or approve is True:
            return ["*"]
        return [] if approve is False else sorted(approve)

    async def _begin(self, tools: FrameworkTools, call: ToolCall, run: Run) -> Call | Outcome:
        admitted = tools.take(call, run)
        if admitted is None:
            raise ToolcribError(f"`{call.name}` was not admitted ({call.id})")
        if is_call(admitted):
            self._running.keep(call.id, (tools, admitted))
        return admitted


def _tool(name: str) -> Tool[..., Any]:
    """Return a tool of Claude Code as one of ours, which it runs itself."""

    async def elsewhere(**arguments: Any) -> Any:
        raise ToolcribError(f"`{name}` is run by Claude Code")

    return Tool(ToolSpec.from_schema(elsewhere, _ANY, name=name))
