"""An unknown option of what a page of the documentation calls is refused with the one that is meant, or what has it."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.public_api import RECORD, ROOT
from toolcrib.adapters.dbos import DurableAgent, DurableToolkit, Engine
from toolcrib.adapters.mcp_client import connect
from toolcrib.adapters.mcp_server import HttpOptions, serve
from toolcrib.code import Toolkit
from toolcrib.errors import explain_options
from toolcrib.openapi import toolset as openapi_toolset
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import Session, decode
from toolcrib.serving import GuardPolicy
from toolcrib.testing import ScriptedModel
from toolcrib.tools import ez_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, Turn

VALUES = frozenset({"Ask", "Declaration", "FeatureParts", "MessageHistory", "ModelVerdict", "RunContext", "Unhandled"})
"""Values that are made for each call, or by a format: they have no options."""
OF_OTHERS = frozenset({"client_model", "create_agent", "guest_command", "resource_changed", "stream_agent"})
"""Functions whose keywords go to something else: a provider, another framework, a program."""


OF_EACH_CALL = frozenset({"toolcrib.calls.ToolCall", "toolcrib.calls.render", "toolcrib.tools.from_schema.schema_tool"})
"""What is made for each call, and checks what it is given itself; and `schema_tool`, which reads its schema first."""
PLAIN = frozenset({"bool", "bool | None", "str", "str | None"})
"""Annotations of options that are checked by what they say."""


@functools.cache
def called() -> list[str]:
    """Return the public names that a page or an example calls."""
    texts = [path.read_text("utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    blocks = [block for text in texts for block in re.findall(r"```python.*?```", text, re.DOTALL)]
    code = "\n".join([*blocks, *(path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py"))])
    lines = RECORD.read_text("utf-8").splitlines()
    found = [re.match(r"(toolcrib[\w.]*\.(\w+))(?: class.*|\(.*)  # (?:user|seed)$", line) for line in lines]
    names = {one[1]: one[2] for one in found if one is not None and one[2] not in VALUES | OF_OTHERS}
    words = {*re.findall(r"(?<![\w.@])(\w+)\(", code)}
    return [path for path, name in names.items() if name in words]


def target_of(path: str) -> Any:
    module, _, name = path.rpartition(".")
    found = getattr(pytest.importorskip(module, exc_type=ImportError), name)
    has_options = any(
        one.kind in (one.KEYWORD_ONLY, one.VAR_KEYWORD) or one.default is not one.empty
        for one in inspect.signature(found).parameters.values()
    )
    if not has_options or (isinstance(found, type) and issubclass(found, BaseException)):
        pytest.skip("it has no options")
    return found


def give(target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Call something with options alone, by name; a decorator with a function, too."""
    returned = target(**options)
    if inspect.iscoroutine(returned):
        asyncio.run(returned)
    elif inspect.isfunction(returned):

        async def decorated(city: str) -> None: ...

        returned(decorated)


def call(target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Call something with options, and with a text for what it requires besides."""
    parameters = inspect.signature(target).parameters.values()
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
    required = [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    give(partial(target, *([{} if name == "schema" else "x" for name in required] if takes_any else [])), options)


@pytest.mark.parametrize("path", called())
def test_an_unknown_option_of_what_a_page_calls_is_refused_with_help(path: str) -> None:
    target = target_of(path)

    with pytest.raises(TypeError) as raised:
        call(target, {"aproverr": 1})

    said = str(raised.value)
    assert "`aproverr`" in said
    assert re.search(r"Did you mean|There (?:are|is)|argument", said)


@pytest.mark.parametrize("path", [path for path in called() if path not in OF_EACH_CALL])
def test_an_option_that_is_a_text_or_true_or_false_takes_nothing_else(path: str) -> None:
    target = target_of(path)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [one for one in inspect.signature(target).parameters.values() if one.kind in named]
    required = [one.name for one in parameters if one.default is one.empty]

    for option in [one.name for one in parameters if str(one.annotation) in PLAIN]:
        with pytest.raises((TypeError, ValueError), match=option):
            give(target, {option: object(), **{name: "x" for name in required if name != option}})


SEVERAL = ("Collection", "Iterable", "Sequence", "Set", "frozenset", "list", "set", "tuple")
OF_OTHER_CLASSES: Mapping[str, object] = {
    **dict.fromkeys((*SEVERAL, "Callable", "Mapping", "Path", "dict"), 5),
    **dict.fromkeys(("datetime", "timedelta"), "2020-01-01"),
}
"""A value that an option does not take, by the class that it takes."""
GIVEN: Mapping[str, Any] = {
    "agent": Agent("options", "Sells.", [], register=False),
    "check": len,
    "format": "openai",
    "model": ScriptedModel(),
    "source": ["python", "server.py"],
    "stage": "approve",
    "tool": ez_tool(len),
    "toolkit": Toolkit([]),
    "tools": [],
    "until": datetime.now(UTC),
}
"""Values of options that are required, by name; of others, those that are texts are `x`, and the rest is None."""
OTHERWISE = {"pre": "middleware", "post": "middleware", "items": "transcript", "trusted_proxies": "addresses"}
"""The word of an error that does not name the option itself."""
LAZY = frozenset({"toolcrib.code.CallEnded", "toolcrib.serving.frameworks.answered"})
"""An event that no host makes, and a generator, which checks nothing before it is read."""


def outer_classes(annotation: object) -> set[str]:
    """Return the names of the classes in an annotation, without those within brackets."""
    text = str(annotation)
    while "[" in text:
        text = re.sub(r"\[[^\[\]]*\]", "", text)
    return {name.rpartition(".")[2] for name in text.split(" | ")}


@pytest.mark.parametrize("path", [path for path in called() if path not in OF_EACH_CALL | LAZY])
def test_a_value_of_another_class_is_told_by_the_option(path: str) -> None:
    target = target_of(path)
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [one for one in inspect.signature(target).parameters.values() if one.kind in named]
    required = [one for one in parameters if one.default is one.empty]
    values = {one.name: "x" if "str" in outer_classes(one.annotation) else None for one in required}
    others = {name: GIVEN.get(name, value) for name, value in values.items()}

    for one in parameters:
        wrong = [OF_OTHER_CLASSES[name] for name in sorted(outer_classes(one.annotation) & OF_OTHER_CLASSES.keys())]
        if wrong and outer_classes(one.annotation).isdisjoint({"int", "float", "object"}):
            with pytest.raises((TypeError, ValueError), match=OTHERWISE.get(one.name, one.name)):
                give(target, {**others, one.name: wrong[0]})


@pytest.mark.parametrize(
    ("target", "option", "said"),
    [
        (decode, "approver", "decode() has no option `approver`. Here it is `run=Run(approver=...)`."),
        (decode, "principal", "decode() has no option `principal`: it is one of Run. Write run=Run(principal=...)."),
        (decode, "errors", ": it is one of Channel. Write run=Run(channel=Channel(errors=...))."),
        (decode, "on_text", ": it is one of Session.run and of decode_stream."),
        (decode, "requires_approval", ". Here it is @tool(requires_approval=True), or toolset.with_approval"),
        (decode, "frmat", ". Did you mean `format`?"),
        (Toolset, "approver", "Toolset has no option `approver`: it is one of Run"),
        (Agent, "max_rounds", "Agent has no option `max_rounds`. There are: "),
        (
            Agent,
            "instructions",
            "Agent has no option `instructions`. Here it is `Session(model, system=..., tools=...)`",
        ),
        (Turn, "params", "Turn has no option `params`. Did you mean `kwargs`?"),
        (Pipeline, "deps", "Pipeline has no option `deps`"),
        (Run, "durable", "a Run has no option `durable`"),
        (Run, "budgets", "Here it is Run(gates=[Budgets([Limit(calls=10, per='minute')])])."),
        (Run, "store", "Here it is Run(approvals=SqliteApprovalStore('a.db')), or Run(durability="),
        (Run, "approvers", "Here it is Run(gates=[ApproverRules([...], groups)])."),
        (Run, "user_id", "Did you mean `principal`?"),
        (Run, "thread_id", "Here it is Run(channel=Channel(conversation_id=...))."),
        (Run, "max_calls", "Here it is Run(limits=CallLimits(total=...))."),
        (Run, "record", "Here it is Run(sinks=[SqliteSink('toolcrib.db')])."),
        (Run, "approve", "Here it is @tool(requires_approval=True), or toolset.with_approval(names=[...])."),
        (CallLimits, "per_day", "Here it is Run(gates=[Budgets([Limit(calls=10, per='day')])])."),
        (GuardPolicy, "require_approval", "Did you mean `approve`?"),
        (Toolset, "gates", "Here it is toolset.with_gates(...)."),
        (Toolset, "approve", "Here it is toolset.with_approval(names=[...])."),
        (Toolset, "confirm", "Here it is toolset.with_approval(names=[...])."),
        (Run, "human_in_the_loop", "Here it is @tool(requires_approval=True), or toolset.with_approval(names=[...])."),
        (GuardPolicy, "hitl", "Did you mean `approve`?"),
        (Session, "confirm", "Here it is @tool(requires_approval=True), or toolset.with_approval(names=[...])."),
        (openapi_toolset, "confirm", "Did you mean `approval`?"),
        (Toolset, "budgets", "Here it is toolset.with_gates(Budgets([...]))."),
        (Session, "prompt", "Here it is `session.say(text)`, before the session is run."),
        (Session, "middleware", "Here it is Session(..., tools=Toolset([...], hooks=...))."),
        (Session, "deps_type", "Here it is Session(..., run=Run(deps=...))."),
        (Session, "usage_limits", "Here it is Session(..., run=Run(limits=CallLimits(total=...)))."),
        (Run, "max_turns", "Here it is session.run(max_rounds=...)."),
        (Run, "messages", "Here it is Session(..., transcript=...)."),
        (Session, "limits", "Here it is Session(..., run=Run(limits=...))."),
        (Session, "gates", "Here it is Session(..., run=Run(gates=...))."),
        (Session, "approvals", "Here it is Session(..., run=Run(approvals=...)), a store;"),
        (Session, "budgets", "Here it is Session(..., run=Run(gates=[Budgets([...])]))."),
        (serve, "port", ": it is one of HttpOptions. Write http=HttpOptions(port=...)."),
        (serve, "approvals", ": it is one of ServerOptions. Write options=ServerOptions(approvals=...)."),
        (serve, "transport", "Here it is serve(toolset) over stdio, or serve(toolset, http=HttpOptions(port=...))."),
        (connect, "args", "Here it is a part of the source: connect(['python', 'server.py'])"),
        (Session, "errors", ": it is one of Channel"),
        (Toolkit([]).execute, "timeout", "Here it is Toolkit(..., limits=SandboxLimits(wall_time=...)), in seconds."),
        (Toolkit([]).execute, "approver", "it is one of Run. Write run=Run(approver=...)."),
        (Toolkit([]).execute_async, "deps", "it is one of Run. Write run=Run(deps=...)."),
        (Toolkit([]).resume, "grant", "Did you mean `grants`?"),
        (
            Pipeline([]).run_sync,
            "approver",
            "pipeline.run() has no option `approver`: it is one of Run. Write",
        ),
        (Pipeline([]).run, "principal", "it is one of Run. Write run=Run(principal=...)."),
        (Session, "tool_choice", "Here it is `require=ToolRequirement."),
        (Session, "max_rounds", "Here it is session.run(max_rounds=...)."),
        (
            Session,
            "temperature",
            "a setting of the model: Session(client_model('openai:gpt-5', temperature=",
        ),
        (DurableAgent.put, "id", "DurableAgent.put() has no option `id`. Here it is `turn.id = str(uuid4())`"),
        (Agent.put, "id", "Agent.put() has no option `id`. Here it is `turn.id = str(uuid4())`"),
        (Agent.run, "approver", "Agent.run() has no option `approver`: it is one of Run. Write run=Run(approver=...)."),
        (Turn.returning, "approver", "Turn.returning() has no option `approver`: it is one of Run. Write run=Run("),
        (Turn.yielding, "deps", "Turn.yielding() has no option `deps`: it is one of Run. Write run=Run(deps=...)."),
        (DurableToolkit.start, "id", "it is one of Placement. Write placement=Placement(id=...)."),
        (HttpOptions, "cors", ". Did you mean `allowed_origins`?"),
    ],
)
def test_the_error_names_what_has_the_option(target: Callable[..., Any], option: str, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        call(target, {option: 1})

    assert said in str(raised.value)


def test_an_agent_of_the_name_of_a_model_is_told_what_it_is_here() -> None:
    wrong: Any = Agent

    with pytest.raises(TypeError, match=r"Agent needs its `description`\. .* `Session\(model, system="):
        wrong("openai:gpt-5", tools=[])
    with pytest.raises(TypeError, match="Agent needs its `tools`"):
        wrong("shop", description="Sells things.")
    with pytest.raises(ValueError, match=r"'openai:gpt-5', which names a model\. .* `Session\(model, system="):
        Agent("openai:gpt-5", "Sells things.", [])
    Agent("shop:5", "Sells things.", [], register=False)


@pytest.mark.parametrize("given", [[], Session(ScriptedModel())], ids=["tools", "session"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (DurableAgent, r"as in DurableAgent\(Agent\(.*a session is kept in a store: Session\(\.\.\., store="),
        (DurableToolkit, r"as in DurableToolkit\(Toolkit\(tools\)\)"),
    ],
)
def test_durable_work_of_something_else_is_told_what_it_is_made_of(make: Any, said: str, given: Any) -> None:
    with pytest.raises(TypeError, match=said):
        make(given)


def test_a_file_in_the_place_of_true_is_told_where_a_file_goes() -> None:
    with pytest.raises(TypeError, match=r"record is 'r.db'; give True or False; a file .* is sinks=\[SqliteSink\("):
        Engine("app.db", record="r.db")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("sinks", ["app.db", Path("app.db"), 1, ["app.db"], [object]], ids=repr)
@pytest.mark.parametrize(
    "make",
    [Run, Engine, partial(Pipeline, []), partial(Toolkit, []), partial(Agent, "shop", "Sells.", [], register=False)],
    ids=["run", "engine", "pipeline", "toolkit", "agent"],
)
def test_what_is_no_list_of_sinks_is_told_with_the_sink_of_a_file(make: Any, sinks: Any) -> None:
    with pytest.raises(TypeError, match=r"^\w+: sinks .*as in sinks=\[ListSink\(\)\], or sinks=\[SqliteSink\("):
        make(sinks=sinks)


def test_what_is_right_is_called_as_it_is() -> None:
    @explain_options()
    @dataclass(frozen=True, slots=True)
    class Limits:
        most: int = 1

    @explain_options()
    async def wait(seconds: float, /, *, again: bool = False) -> tuple[float, bool]:
        return seconds, again

    assert (Limits(), Limits(2), Limits(most=3)) == (Limits(1), Limits(most=2), Limits(3))
    assert inspect.iscoroutinefunction(wait)
    assert asyncio.run(wait(1.0, again=True)) == (1.0, True)
    assert str(inspect.signature(wait)) == "(seconds: 'float', /, *, again: 'bool' = False) -> 'tuple[float, bool]'"
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        asyncio.run(wait())  # pyright: ignore[reportCallIssue]  # what Python says of all else stays
