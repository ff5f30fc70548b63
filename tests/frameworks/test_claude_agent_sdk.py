"""Claude Agent SDK: what its way in does not show, with a stand-in for Claude Code."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, TypedDict

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PreToolUseHookInput,
    ResultMessage,
    query,
    tool,
)

from tests.frameworks.booking import booking
from tests.ways_in.claude_agent_sdk import ScriptedCli
from toolcrib.adapters.claude_agent_sdk import answers, approval_requests, as_tools, from_tools, guard
from toolcrib.approvals import approve_all
from toolcrib.calls import Completed, Failed, Media, RunNormally, ToolCall
from toolcrib.hooks import HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.testing import RecordingSink
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset

pytestmark = pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked")  # the guard's rule makes it so

BOOK = ("b", "mcp__toolcrib__book", {"city": "Oslo"})
BASH = ("c", "Bash", {"command": "rm x"})


class Talk:
    """Sessions with these options, of which one goes on with the other, and the files of Claude Code."""

    def __init__(self, options: Any, **cli: Any) -> None:
        self.options, self._cli = options, cli
        self.session, self.reason = "", None
        self._sessions: dict[str, Any] = {}

    async def say(self, *steps: list[Any]) -> dict[str, Any]:
        """Have the model make these calls, and return what it was given for each."""
        cli = ScriptedCli(self.options, steps, self._sessions, **self._cli)
        async for message in query(prompt="go", options=self.options, transport=cli):
            if isinstance(message, ResultMessage):
                self.session, self.reason = message.session_id, message.stop_reason
        return cli.results

    @property
    def asked(self) -> list[Any]:
        """What a person is asked."""
        return approval_requests(self.options, self.session)

    async def answer(self, *given: Any) -> dict[str, Any]:
        """Go on with answers, and return what the model was given."""
        self.options = await answers(self.options, self.session, *given)
        return await self.say()


def bash(ran: list[str]) -> dict[str, Any]:
    """Return Claude Code's own tool, which notes what it was called with."""

    def run(given: dict[str, Any]) -> dict[str, str]:
        ran.append(given["command"])
        return {"stdout": f"ran {given['command']}"}

    return {"Bash": run}


def texts(content: Any) -> list[str]:
    """Return the text of the blocks that a tool of an MCP server gave."""
    return [block.get("text") or block["type"] for block in content]


# --- our tools in their sessions


@pytest.mark.parametrize(("said", "ran"), [("grant", ["Oslo"]), ("deny", []), ("nothing", [])])
async def test_a_deferred_call_that_goes_on_before_its_hook_is_called_has_the_same_gates(
    said: str, ran: list[str]
) -> None:
    made: list[str] = []
    talk = Talk(as_tools([booking(made, requires_approval=True)]), late=True)
    await talk.say([BOOK])
    [request] = talk.asked

    done = await talk.answer(*[getattr(request, said)() for said in [said] if said != "nothing"])

    assert made == ran
    if said == "nothing":
        assert "suspended until a person answers" in texts(done["b"])[0]
        assert [request.id for request in talk.asked] == [request.id]


async def test_a_call_that_is_made_again_without_an_answer_waits_again() -> None:
    ran: list[str] = []
    talk = Talk(as_tools([booking(ran, requires_approval=True)]))
    await talk.say([BOOK])
    [first] = talk.asked

    talk.options = await answers(talk.options, talk.session)
    await talk.say()

    assert ([request.id for request in talk.asked], talk.reason, ran) == ([first.id], "tool_deferred", [])


async def test_an_answer_in_the_store_of_the_run_lets_a_deferred_call_go_on() -> None:
    ran: list[str] = []
    runs = [Run(approver=None)]
    talk = Talk(as_tools([booking(ran, requires_approval=True)], run=lambda given: runs[0]))
    await talk.say([BOOK])
    runs[0] = Run(approver=approve_all)

    talk.options = await answers(talk.options, talk.session)
    await talk.say()

    assert ran == ["Oslo"]


async def test_a_run_without_a_host_is_named_like_the_prompt() -> None:
    sink = RecordingSink()
    talk = Talk(as_tools([booking([])], sinks=[sink]))

    await talk.say([BOOK], [("again", *BOOK[1:])])
    await talk.say([BOOK])

    assert [record.run_id == sink.records[0].run_id for record in sink.records] == [True, True, False]
    assert len(sink.records[0].run_id) == len("123e4567-e89b-12d3-a456-426614174000")


async def test_the_session_is_the_conversation_and_the_host_says_for_whom() -> None:
    sink = RecordingSink()
    given: list[Any] = []

    @ez_tool
    async def whose(ctx: RunContext) -> str:
        """Say whose."""
        assert ctx.provided[PreToolUseHookInput]["tool_name"] == "mcp__toolcrib__whose"  # type: ignore[index]
        return f"{ctx.deps} {ctx.run.principal} {ctx.run.channel.conversation_id}"

    def open_run(about: Any) -> Run:
        given.append(about["cwd"])
        return Run(principal="ben", deps="dep")

    talk = Talk(as_tools([whose], run=open_run, sinks=[sink]))
    done = await talk.say([("w", "mcp__toolcrib__whose", {})])

    assert texts(done["w"]) == [f"dep ben {talk.session}"]
    assert (sink.record.principal, given) == ("ben", ["/"])


async def test_limits_hold_for_one_prompt() -> None:
    ran: list[str] = []
    options = as_tools([booking(ran)], run=lambda given: Run(limits=CallLimits(total=1)))
    talk = Talk(options)

    first = await talk.say([BOOK], [("again", BOOK[1], {"city": "Rome"})])
    talk.options = await answers(talk.options, talk.session)  # the same session, and another prompt
    second = await talk.say([("third", BOOK[1], {"city": "Nice"})])

    assert "Rejected" in str(first["again"])
    assert (texts(second["third"]), ran) == (["booked Nice"], ["Oslo", "Nice"])


async def test_media_are_blocks_of_mcp() -> None:
    @ez_tool
    async def draw() -> Any:
        """Draw."""
        link = Media("application/pdf", url="https://example.org/a.pdf")
        return ["a dot", Media("image/png", b"dot"), Media("audio/wav", b"beep"), Media("text/csv", b"a,b"), link]

    done = await Talk(as_tools([draw])).say([("d", "mcp__toolcrib__draw", {})])

    assert texts(done["d"]) == ["a dot", "image", "audio", "resource", "resource_link"]


async def test_a_session_that_ends_stops_its_tools() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @ez_tool
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    options = as_tools([wait])
    cli = ScriptedCli(options, [[("w", "mcp__toolcrib__wait", {})]])
    async with ClaudeSDKClient(options, transport=cli) as client:
        await client.query("go")
        await begun.wait()

    await ended.wait()


def test_a_server_of_the_same_name_and_servers_in_a_file_are_errors() -> None:
    once = as_tools([booking([])])
    with pytest.raises(ValueError, match="more_toolcrib"):
        as_tools([booking([])], once)
    with pytest.raises(ValueError, match="give its servers as a dict"):
        as_tools([booking([])], ClaudeAgentOptions(mcp_servers="mcp.json"))


# --- their tools with us


class City(TypedDict):
    city: str


@pytest.mark.parametrize(
    "schema",
    [{"city": str}, City, {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}],
)
async def test_their_tools_are_members_of_a_toolset(schema: Any) -> None:
    @tool("look", "Look.", schema)
    async def look(given: Any) -> dict[str, Any]:
        if given["city"] == "Bonn":
            return {"content": [{"type": "text", "text": "no view"}], "is_error": True}
        return {
            "content": [
                {"type": "text", "text": given["city"]},
                {"type": "image", "data": "ZG90", "mimeType": "image/png"},
            ]
        }

    pipeline = Pipeline(Toolset(from_tools([look])))
    done, failed, wrong = [
        await pipeline.run(ToolCall("look", given)) for given in ({"city": "Oslo"}, {"city": "Bonn"}, {"town": "x"})
    ]

    assert isinstance(done, Completed)
    assert isinstance(failed, Failed)
    assert isinstance(wrong, Failed)
    assert done.value == ["Oslo", Media("image/png", b"dot")]
    assert ("no view" in failed.text(), wrong.code) == (True, "invalid_arguments")


# --- gates around what is there


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize(("said", "made"), [("grant", ["rm x"]), ("deny", []), ("nothing", [])])
async def test_a_guarded_call_waits_and_goes_on_by_its_answer_alone(
    late: bool, mode: Any, said: str, made: list[str]
) -> None:
    ran: list[str] = []
    sink = RecordingSink()
    options = guard(ClaudeAgentOptions(permission_mode=mode), GuardPolicy(approve=["Bash"], sinks=(sink,)))
    talk = Talk(options, builtin=bash(ran), late=late)
    await talk.say([BASH])
    [request] = talk.asked
    assert (talk.reason, ran) == ("tool_deferred", [])

    done = await talk.answer(*[getattr(request, said)() for said in [said] if said != "nothing"])

    assert ran == made
    if said == "grant":
        assert (done["c"], sink.records[-1].outcome["kind"]) == ({"stdout": "ran rm x"}, "completed")
    if said == "nothing":
        assert [request.id for request in talk.asked] == [request.id]


@pytest.mark.parametrize("late", [True, False])
async def test_a_guarded_call_runs_the_arguments_that_were_approved(late: bool) -> None:
    ran: list[str] = []
    talk = Talk(guard(ClaudeAgentOptions(), GuardPolicy(approve=True)), builtin=bash(ran), late=late)
    await talk.say([BASH])

    await talk.answer(talk.asked[0].grant("ben", override_args={"command": "ls"}))

    assert ran == ["ls"]


async def test_options_that_go_on_with_a_session_are_guarded_before_their_hooks_are_known() -> None:
    ran: list[str] = []
    talk = Talk(guard(ClaudeAgentOptions(), GuardPolicy(approve=["Bash"])), builtin=bash(ran), late=True)
    await talk.say([BASH])

    again = ClaudeAgentOptions(permission_mode="bypassPermissions", resume=talk.session)
    talk.options = guard(again, GuardPolicy(approve=["Bash"]))
    await talk.say()

    assert ran == []


async def test_a_guard_opens_nothing_that_claude_code_keeps_shut() -> None:
    ran: list[str] = []
    sink = RecordingSink()
    talk = Talk(guard(ClaudeAgentOptions(), GuardPolicy(sinks=(sink,))), builtin=bash(ran))

    assert await talk.say([BASH]) == {"c": "Bash needs approval"}
    assert (ran, sink.events[-1].record is not None) == ([], True)


@pytest.mark.parametrize("how", ["can_use_tool", "allowed_tools", "nothing"])
async def test_a_session_that_goes_on_asks_as_claude_code_would(how: str) -> None:
    ran: list[str] = []

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        return PermissionResultAllow(updated_input={"command": "ls"})

    given: dict[str, Any] = {
        "can_use_tool": {"can_use_tool": can_use_tool},
        "allowed_tools": {"allowed_tools": ["Bash"]},
    }
    options = ClaudeAgentOptions(resume="s", **given.get(how, {}))
    policy = GuardPolicy(approve=lambda args, ctx: args["command"] == "rm y")
    await Talk(guard(options, policy), builtin=bash(ran)).say([BASH])

    assert ran == {"can_use_tool": ["ls"], "allowed_tools": ["rm x"], "nothing": []}[how]


async def test_an_approver_that_is_there_is_asked_at_once() -> None:
    ran: list[str] = []
    policy = GuardPolicy(approve=True, run=Run(approver=approve_all))

    await Talk(guard(ClaudeAgentOptions(), policy), builtin=bash(ran)).say([BASH])

    assert ran == ["rm x"]


async def test_a_gate_that_fails_blocks_the_call() -> None:
    ran: list[str] = []

    def broken(about: Any) -> Run:
        raise RuntimeError("no run")

    options = ClaudeAgentOptions(permission_mode="bypassPermissions")
    done = await Talk(guard(options, GuardPolicy(run=broken)), builtin=bash(ran)).say([BASH])

    assert (done, ran) == ({"c": "no run"}, [])


async def test_a_guarded_tool_that_fails_is_recorded_as_failed() -> None:
    sink = RecordingSink()
    options = ClaudeAgentOptions(permission_mode="bypassPermissions")

    await Talk(guard(options, GuardPolicy(sinks=(sink,))), builtin={"Bash": OSError("exit 1")}).say([BASH])

    assert (sink.record.outcome["kind"], sink.record.run_id != "") == ("failed", True)


async def test_a_guarded_tool_is_given_the_arguments_that_a_hook_made() -> None:
    ran: list[str] = []
    hooks = HookSet()

    @hooks.on("Bash")
    async def soften(call: Any, input: Any) -> Any:
        return RunNormally(input.model_copy(update={"command": "ls"}))

    options = ClaudeAgentOptions(permission_mode="bypassPermissions")
    await Talk(guard(options, GuardPolicy(hooks=hooks)), builtin=bash(ran)).say([BASH])

    assert ran == ["ls"]


async def test_gates_of_a_guard_and_of_our_tools_are_in_one_session() -> None:
    ran: list[str] = []
    options = guard(as_tools([booking(ran)]), GuardPolicy(approve=["mcp__toolcrib__book"]))
    talk = Talk(options)
    await talk.say([BOOK])
    assert ran == []

    await talk.answer(talk.asked[0].grant())

    assert ran == ["Oslo"]


@pytest.mark.parametrize("kept", ["text", "file"])
def test_settings_are_kept_beside_the_rules_of_a_guard(kept: str, tmp_path: Path) -> None:
    text = json.dumps({"model": "opus", "permissions": {"deny": ["WebFetch"], "ask": ["Read"]}})
    (tmp_path / "settings.json").write_text(text)
    given = text if kept == "text" else str(tmp_path / "settings.json")

    made = guard(ClaudeAgentOptions(resume="s", settings=given), GuardPolicy(approve=["Bash"]))

    assert made.settings is not None
    assert json.loads(made.settings) == {
        "model": "opus",
        "permissions": {"deny": ["WebFetch"], "ask": ["Read", "Bash"]},
    }


def test_a_timeout_is_no_gate_of_a_guard_here() -> None:
    with pytest.raises(ValueError, match="BASH_DEFAULT_TIMEOUT_MS"):
        guard(ClaudeAgentOptions(), GuardPolicy(timeout=1))
