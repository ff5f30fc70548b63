"""One validated asynchronous call: from the JSON text that a model sends to the outcome of a two-parameter tool."""

# ruff: noqa: PLC0415 -- a contender's process imports what that contender needs, and nothing of the others

from __future__ import annotations

import json
import os
from typing import Any, Literal

from benchmarks._measure import Contender, Measure, Metric, Sample, Target
from benchmarks._timing import async_sample, on_loop
from benchmarks._tools import get_weather

COUNT = 200
RAW = '{"city": "Oslo", "unit": "c"}'
ANSWER = {"city": "Oslo", "temp": 21, "unit": "c"}


def bare_pydantic() -> Sample:
    from pydantic import BaseModel, ConfigDict

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="forbid")
        city: str
        unit: Literal["c", "f"] = "c"

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await get_weather(**Arguments.model_validate_json(RAW).__dict__)
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def bare_pydantic_timeout() -> Sample:
    import asyncio

    from pydantic import BaseModel, ConfigDict

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="forbid")
        city: str
        unit: Literal["c", "f"] = "c"

    async def batch() -> Any:
        for _ in range(COUNT):
            async with asyncio.timeout(60):
                outcome = await get_weather(**Arguments.model_validate_json(RAW).__dict__)
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def _toolcrib(**options: Any) -> Sample:
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    pipeline = Pipeline(Toolset([tool(**options)(get_weather)]))

    async def batch() -> Any:
        scope = Run()
        for _ in range(COUNT):
            outcome = await pipeline.run(ToolCall("get_weather", RAW), scope)
        return outcome.value

    return async_sample("us", batch, COUNT, ANSWER)


def toolcrib_plain() -> Sample:
    return _toolcrib()


def toolcrib_run_each() -> Sample:
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    pipeline = Pipeline(Toolset([tool()(get_weather)]))

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await pipeline.run(ToolCall("get_weather", RAW), Run(principal="ann"))
        return outcome.value

    return async_sample("us", batch, COUNT, ANSWER)


def toolcrib_deadline() -> Sample:
    return _toolcrib(timeout=60)


def toolcrib_recorded() -> Sample:
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.record import ListSink
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    crib = Toolset([tool()(get_weather)])

    async def batch() -> Any:
        kept = ListSink()
        pipeline, scope = Pipeline(crib, sinks=(kept,)), Run()
        for _ in range(COUNT):
            outcome = await pipeline.run(ToolCall("get_weather", RAW), scope)
        if len(kept.records) != COUNT:
            raise RuntimeError("not every call was recorded")
        return outcome.value

    return async_sample("us", batch, COUNT, ANSWER)


def toolcrib_hooks() -> Sample:
    from toolcrib.calls import ToolCall
    from toolcrib.pipeline import Pipeline, Run
    from toolcrib.tools import tool
    from toolcrib.toolsets import Toolset

    async def same_arguments(ctx: Any, args: Any, metadata: Any) -> Any:
        return args

    async def same_result(ctx: Any, result: Any, metadata: Any) -> Any:
        return result

    crib = Toolset(
        [tool()(get_weather)], pre_hooks={"get_weather": same_arguments}, post_hooks={"get_weather": same_result}
    )
    pipeline = Pipeline(crib)

    async def batch() -> Any:
        scope = Run()
        for _ in range(COUNT):
            outcome = await pipeline.run(ToolCall("get_weather", RAW), scope)
        return outcome.value

    return async_sample("us", batch, COUNT, ANSWER)


def _pydantic_ai_context() -> Any:
    from pydantic_ai import RunContext
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


def pydantic_ai_manager() -> Sample:
    from pydantic_ai import FunctionToolset
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tool_manager import ToolManager

    manager = on_loop(ToolManager(FunctionToolset([get_weather])).for_run_step(_pydantic_ai_context()))

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await manager.handle_call(ToolCallPart("get_weather", RAW))
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def pydantic_ai_toolset() -> Sample:
    from pydantic_ai import FunctionToolset

    context, toolset = _pydantic_ai_context(), FunctionToolset([get_weather])
    entry = on_loop(toolset.get_tools(context))["get_weather"]

    async def batch() -> Any:
        for _ in range(COUNT):
            arguments = entry.args_validator.validate_json(RAW)
            outcome = await toolset.call_tool("get_weather", arguments, context, entry)
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def openai_agents() -> Sample:
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

    from agents import function_tool
    from agents.tool_context import ToolContext

    tool = function_tool(get_weather)

    async def batch() -> Any:
        for _ in range(COUNT):
            context = ToolContext(context=None, tool_name="get_weather", tool_call_id="call_1", tool_arguments=RAW)
            outcome = await tool.on_invoke_tool(context, RAW)
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def langchain() -> Sample:
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(coroutine=get_weather)

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await tool.ainvoke(json.loads(RAW))
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def pygents_tool() -> Sample:
    from pygents import tool

    weather = tool()(get_weather)

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await weather(**json.loads(RAW))
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


def pygents_turn() -> Sample:
    from pygents import Turn, tool

    tool()(get_weather)

    async def batch() -> Any:
        for _ in range(COUNT):
            outcome = await Turn("get_weather", kwargs=json.loads(RAW)).returning()
        return outcome

    return async_sample("us", batch, COUNT, ANSWER)


MEASURE = Measure(
    name="calls",
    title="one validated asynchronous call, JSON text to outcome",
    metrics=(Metric("us", "per call", "us"),),
    contenders=(
        Contender("pydantic + await", bare_pydantic),
        Contender("pydantic + await in asyncio.timeout", bare_pydantic_timeout),
        Contender("toolcrib", toolcrib_plain),
        Contender("toolcrib, a run each", toolcrib_run_each),
        Contender("toolcrib, deadline", toolcrib_deadline),
        Contender("toolcrib, pre and post hook", toolcrib_hooks),
        Contender("toolcrib, every event recorded", toolcrib_recorded),
        Contender("pydantic-ai ToolManager", pydantic_ai_manager),
        Contender("pydantic-ai FunctionToolset", pydantic_ai_toolset),
        Contender("openai-agents function_tool", openai_agents),
        Contender("langchain-core StructuredTool", langchain),
        Contender("pygents tool", pygents_tool),
        Contender("pygents Turn", pygents_turn),
    ),
    baseline="pydantic + await",
    often=3,
    targets=(
        Target("us", "toolcrib", "pydantic + await", 2.5),
        Target("us", "toolcrib, a run each", "pydantic + await", 3.3),
        Target("us", "toolcrib, every event recorded", "pydantic + await", 10),
        Target("us", "toolcrib, deadline", "pydantic + await", 8),
        Target("us", "toolcrib", "pydantic-ai ToolManager", 1 / 8),
    ),
    notes=(
        "pygents parses the JSON and does not validate it; its turn sets a deadline, as every turn has one.",
        "toolcrib also checks availability, approval and limits; it makes events and a record when somebody listens.",
    ),
)
