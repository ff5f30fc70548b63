"""Step 7: post hooks see the result or the exception, and may change either."""

from typing import Any

import pytest

from toolcrib.calls import Completed, Failed, Outcome, ToolCall
from toolcrib.errors import ModelRetry
from toolcrib.hooks import GlobalHooks
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


async def run(tool: Any, *post: Any, wide: Any = None, scope: Run | None = None) -> Outcome:
    made = ez_tool(tool)
    tools = Toolset([made], post_hooks={made.name: post}, global_hooks=GlobalHooks(post=wide))
    return await Pipeline(tools).run(ToolCall(made.name), scope)


async def good() -> str:
    return "good"


async def bad() -> str:
    raise ValueError("bad")


async def kept() -> Exception:
    return ValueError("kept")


async def test_a_post_hook_changes_the_result() -> None:
    async def louder(ctx: Any, result: Any, metadata: Any) -> Any:
        return result + "!"

    outcome = await run(good, louder, louder, wide=lambda ctx, name, result, metadata: f"{name}: {result}")

    assert isinstance(outcome, Completed)
    assert outcome.value == "good: good!!"


@pytest.mark.parametrize(
    ("post", "message"),
    [
        (lambda ctx, result, metadata: result, "bad"),
        (lambda ctx, result, metadata: LookupError("other"), "other"),
    ],
    ids=["passed on", "another"],
)
async def test_a_post_hook_that_returns_an_exception_fails_the_call(post: Any, message: str) -> None:
    outcome = await run(bad, post)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("tool_error", message)


async def test_a_post_hook_may_raise_the_tools_exception_again() -> None:
    def again(ctx: Any, result: Any, metadata: Any) -> Any:
        raise result

    outcome = await run(bad, again, lambda ctx, result, metadata: f"recovered from {result}")

    assert isinstance(outcome, Completed)
    assert outcome.value == "recovered from bad"


@pytest.mark.parametrize("tool", [good, bad])
async def test_a_post_hook_that_fails_fails_the_call(tool: Any) -> None:
    def fail(ctx: Any, result: Any, metadata: Any) -> Any:
        raise LookupError("hook")

    outcome = await run(tool, fail)

    assert isinstance(outcome, Failed)
    assert outcome.code == "hook_error"
    assert "post hook `fail`" in str(outcome.exception)


async def test_a_post_hook_may_turn_a_result_into_a_failure() -> None:
    scope = Run()

    outcome = await run(good, lambda ctx, result, metadata: ModelRetry("too short"), scope=scope)

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable, scope.retries) == ("model_retry", True, {"good": 1})


@pytest.mark.parametrize("post", [(), (lambda ctx, result, metadata: result,)], ids=["without hooks", "with hooks"])
async def test_an_exception_that_a_tool_returns_is_its_result(post: Any) -> None:
    outcome = await run(kept, *post)

    assert isinstance(outcome, Completed)
    assert isinstance(outcome.value, ValueError)


async def test_post_hooks_do_not_see_refused_arguments() -> None:
    seen: list[Any] = []

    @ez_tool
    async def find(query: str) -> None: ...

    tools = Toolset([find], post_hooks={"find": lambda ctx, result, metadata: seen.append(result)})

    outcome = await Pipeline(tools).run(ToolCall("find", {"query": 1}))

    assert isinstance(outcome, Failed)
    assert seen == []
