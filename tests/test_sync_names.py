"""Names of what blocks and of what is awaited: each pair obeys one rule, and the error inside a loop names the twin."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.public_api import RECORD
from toolcrib.adapters.mcp_server import serve
from toolcrib.calls import ToolCall
from toolcrib.code import Toolkit
from toolcrib.pipeline import Pipeline
from toolcrib.rounds import Session, decode
from toolcrib.testing import ScriptedModel, wire_reply
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


def is_async() -> dict[str, bool]:
    """Return whether each public function is a coroutine function, by name."""
    lines = RECORD.read_text("utf-8").splitlines()
    found = [re.match(r"([\w.]+)\(.*?( \[async\])?(?:  # \w+)?$", line) for line in lines]
    return {one[1]: one[2] is not None for one in found if one is not None}


def test_a_plain_name_is_awaited_and_its_twin_blocks() -> None:
    known = is_async()

    blocking = {name for name in known if name.endswith("_sync")}

    assert {name for name in blocking if known[name] or not known.get(name.removesuffix("_sync"))} == set()
    assert {name.removeprefix("toolcrib.") for name in blocking} == {
        "pipeline.Pipeline.run_sync",
        "rounds.Session.run_sync",
        "rounds.ToolRound.run_sync",
        "rounds.ToolRoundPlan.resolve_sync",
    }


def test_the_first_line_of_a_script_blocks_and_its_twin_is_awaited() -> None:
    known = is_async()

    awaited = {name for name in known if name.endswith("_async")}

    assert {name for name in awaited if not known[name] or known.get(name.removesuffix("_async"))} == set()
    assert {name.rpartition(".")[2].removesuffix("_async") for name in awaited} == {
        "execute",
        "resume",
        "serve",
        "state",
    }


def add(a: int) -> int:
    """Add."""
    return a


TOOLS = Toolset([ez_tool(add)])
CALL = ToolCall("add", {"a": 1}, "c1")


@pytest.mark.parametrize(
    ("block", "twin"),
    [
        (lambda: Pipeline(TOOLS).run_sync(CALL), "await pipeline.run("),
        (lambda: Session(ScriptedModel("Hi.")).say("Hi.").run_sync(), "await session.run("),
        (lambda: decode(TOOLS, wire_reply("openai", [CALL])).run_sync([]), "await round.run("),
        (lambda: Toolkit(TOOLS).execute("1"), "await toolkit.execute_async("),
        (lambda: Toolkit(TOOLS).session().execute("1"), "await session.execute_async("),
        (lambda: Toolkit(TOOLS).session().state(), "await session.state_async("),
        (lambda: serve(TOOLS), "await serve_async("),
    ],
)
async def test_what_blocks_names_its_twin_inside_a_loop(block: Callable[[], Any], twin: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(twin)):
        block()


async def test_results_that_are_not_awaited_say_so() -> None:
    plan = await decode(TOOLS, wire_reply("openai", [CALL])).apply_hooks()

    with pytest.raises(TypeError, match=r"await plan.run_pending\(\)"):
        await plan.commit([], plan.run_pending())  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match=r"await plan\.resolve\("):
        plan.resolve_sync()

    assert len(plan.ready) == 1
