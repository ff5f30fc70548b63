"""Policies of guards: names of tools that an agent does not have."""

from typing import Any

import pytest

from toolcrib.adapters.mcp_server import ServerOptions
from toolcrib.calls import Failed, ToolCall
from toolcrib.errors import ToolConstraintError
from toolcrib.pipeline import CallLimits, Run
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import GuardedTools
from toolcrib.tools import ez_tool


@ez_tool
async def delete_file(path: str = "x") -> str:
    """Delete a file."""
    return f"deleted {path}"


@ez_tool
async def list_files() -> str:
    """List files."""
    return "a b"


each_option = pytest.mark.parametrize("option", ["approve", "leave"])


@each_option
@pytest.mark.parametrize("are_all", [True, False])
def test_a_name_that_is_nearly_that_of_a_tool_is_an_error(option: str, are_all: bool) -> None:
    guarded = GuardedTools("test", GuardPolicy(**{option: ["delet_file"]}), None)

    with pytest.raises(ToolConstraintError, match=r"`delet_file`: GuardPolicy.* Did you mean `delete_file`"):
        guarded.check_names(["delete_file", "list_files"], are_all=are_all)


@each_option
def test_a_name_of_a_tool_that_is_not_known_is_an_error_where_all_are_known(option: str) -> None:
    policy = GuardPolicy(**{option: ["refund"]})

    with pytest.raises(ToolConstraintError, match="There are: `ask_expert`"):
        policy.check_names(["ask_expert"])


@each_option
def test_a_name_of_a_tool_that_may_come_later_is_in_the_log_once(option: str, caplog: pytest.LogCaptureFixture) -> None:
    policy = GuardPolicy(**{option: ["refund", "list_files"]})

    policy.check_names(["list_files"], are_all=False)
    policy.check_names(["list_files"], are_all=False)

    (line,) = caplog.messages
    assert f"GuardPolicy({option}=...) is about `refund`, which fits no tool here" in line


@each_option
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([delete_file], r"give the name of the tool: {}=\['delete_file'\]"),
        ([len], r"give the name of the tool: {}=\['len'\]"),
        ({"delete_file": True}, r"is a list of names, as in {}=\['delete_file'\]"),
        ("delete_file", r"takes several names, as in {}=\['delete_file'\]"),
    ],
)
def test_what_is_not_a_list_of_names_is_refused(option: str, given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said.format(option)):
        GuardPolicy(**{option: given})


@each_option
def test_a_pattern_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=r"'delete_.', a pattern; name each tool"):
        GuardPolicy(**{option: ["delete_*"]})


async def test_limits_of_a_run_are_about_all_tools_of_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    guarded = GuardedTools("test", GuardPolicy(), None)
    guarded.check_names(["delete_file", "list_files"])
    tools = guarded.around(delete_file)

    wrong, right = [Run(limits=CallLimits(per_tool={name: 1})) for name in ("list_file", "list_files")]
    outcomes = [await tools.pipeline.run(ToolCall("delete_file"), run) for run in (wrong, right)]

    assert isinstance(outcomes[0], Failed)
    assert "Did you mean `list_files`" in outcomes[0].text()
    assert outcomes[1].kind == "completed"
    assert not caplog.messages


@pytest.mark.parametrize("options", [GuardPolicy, ServerOptions])
def test_an_async_function_that_would_open_runs_is_told_with_the_form_that_works(options: Any) -> None:
    async def opened(context: Any) -> Run:
        return Run()

    with pytest.raises(
        TypeError, match=rf"{options.__name__}: run is `opened`, an async function; write it as a plain"
    ):
        options(run=opened)
