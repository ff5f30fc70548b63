from __future__ import annotations

from typing import Any

from toolcrib.calls import Completed, Suspended, ToolCall
from toolcrib.pipeline import Pipeline, Run
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset


async def test_policy_sees_the_defaults_of_a_hosts_call() -> None:
    asked = ez_tool(name="pay", thread=False, requires_approval=lambda args, ctx: args["cents"] > 100)
    pay = asked(lambda to, cents=500: f"{to}:{cents}")

    outcome = await Pipeline([pay]).run(ToolCall("pay", {"to": "ann"}, origin="host"), Run())

    assert isinstance(outcome, Suspended)
    assert outcome.request.arguments["cents"] == 500


async def test_pre_hook_sees_the_defaults_of_a_hosts_call() -> None:
    def double(ctx: object, args: dict[str, Any], metadata: object) -> dict[str, Any]:
        return {**args, "times": args["times"] * 2}

    say = ez_tool(name="say", thread=False)(lambda text, times=2: text * times)

    outcome = await Pipeline(Toolset([say], pre_hooks={"say": double})).run(
        ToolCall("say", {"text": "a"}, origin="host"), Run()
    )

    assert isinstance(outcome, Completed)
    assert outcome.value == "aaaa"
