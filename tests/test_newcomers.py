"""What somebody writes who knows other frameworks: the error says what is meant here."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from toolcrib.approvals import MemoryApprovalStore, SqliteApprovalStore
from toolcrib.approvers import ApproverRule, ApproverRules, Groups
from toolcrib.budgets import Budgets, Limit
from toolcrib.calls import ApprovalRequest, Ask, Reject, ToolCall
from toolcrib.code import Toolkit
from toolcrib.errors import DatabaseError, ToolConstraintError, UnknownTool
from toolcrib.hooks import GlobalHooks, HookSet
from toolcrib.pipeline import CallLimits, Pipeline, Run
from toolcrib.rounds import Session, decode
from toolcrib.sandbox import SandboxLimits
from toolcrib.schema import RunContext
from toolcrib.serving import GuardPolicy
from toolcrib.serving.frameworks import FrameworkRuns, GuardedTools
from toolcrib.testing import FakeSandbox, ScriptedModel
from toolcrib.tools import Cost, FoundValues, ez_tool, tool
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset
from toolcrib.turns import Agent, ContextQueue, Turn


async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


async def with_context(ctx, cents: int) -> str:  # type: ignore[no-untyped-def]
    """Pay."""
    return str(ctx)


def message() -> dict[str, Any]:
    return {"role": "assistant", "content": "Hi.", "tool_calls": None}


@pytest.mark.parametrize(
    ("write", "mend"),
    [
        (
            lambda: tool(register=False)(staticmethod(pay)),
            r"`pay` is a staticmethod, .* write @staticmethod above @tool",
        ),
        (lambda: tool(register=False)(with_context), "for the run write `ctx: RunContext`"),
        (lambda: ez_tool(with_context), "for the run write `ctx: RunContext`"),
        (lambda: Turn(ez_tool(pay), args={"cents": 1}), r"`args` of a turn of `pay` is a list; .* kwargs=\{\.\.\.\}"),
        (lambda: Turn(ez_tool(pay), args="1"), r"is a list; .* kwargs=\{\.\.\.\}"),
        (lambda: decode([pay], message()), "is a part of a reply: give the whole of what the client returned"),
        (lambda: decode([pay], '{"choices": []}'), r"`json\.loads\(text\)`"),
        (lambda: decode({"choices": []}, Toolset([pay])), "the toolset comes first: decode\\(tools, reply\\)"),
    ],
    ids=["staticmethod", "ctx", "ctx of ez_tool", "dict of args", "text of args", "message", "JSON", "order"],
)
def test_what_is_written_for_another_framework_is_refused_with_what_is_meant(
    write: Callable[[], Any], mend: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=mend):
        write()


TOOLS = Toolset([ez_tool(pay)])
AGENT = Agent("newcomers", "Pays.", [pay], register=False)
CALL = ToolCall("pay", {"cents": 1})
REQUEST = ApprovalRequest("ask_1", "1", "pay", {"cents": 1}, "d")


class Unopened:
    """A source whose tools are not known before it is opened."""

    def open_source(self, ctx: RunContext[Any]) -> Any:
        raise AssertionError("nothing opens it")


@pytest.mark.parametrize(
    ("write", "mend"),
    [
        (lambda: ToolCall({"cents": 1}, "pay"), "the name comes first"),
        (lambda: ToolCall(ez_tool(pay), {"cents": 1}), "give the name of the tool: 'pay'"),
        (lambda: ToolCall("pay", None), "give the arguments by name, as a dict or as its JSON"),
        (lambda: ToolCall("pay", [1]), "give the arguments by name, as a dict or as its JSON"),
        (lambda: ToolCall("pay", {}, 7), "id is 7; give a text"),
        (lambda: ToolCall("pay", {}, origin="user"), "origin is 'user'; give 'model' or 'host'"),
        (lambda: ToolCall("pay", args={"cents": 1}), "Did you mean `arguments`"),
        (lambda: ToolCall(tool_name="pay", tool_args={}), "Did you mean `name`"),
        (lambda: ToolCall("pay", cents=1), "ToolCall has no option `cents`. There are: `arguments`"),
        (lambda: Pipeline(TOOLS, hooks=[print]), r"Pipeline: hooks is .* give a HookSet\(\)"),
        (lambda: Pipeline(TOOLS).run_sync(CALL, CallLimits(1)), r"give a run, as in run=Run\(limits=CallLimits\("),
        (lambda: Pipeline(TOOLS).run_sync(CALL, {"deps": 1}), r"give a run, as in run=Run\("),
        (lambda: Pipeline(TOOLS).run_sync(CALL, "ann"), r"give a run, as in run=Run\(principal='ann'"),
        (lambda: Run(limits={"total": 3}), r"CallLimits\(total=3\)"),
        (lambda: Run(limits={"per_tool": {"pay": 1}}), r"CallLimits\(per_tool=\{'pay': 1\}\)"),
        (lambda: Session(ScriptedModel("Hi."), system=5), "Session: system is 5; give a text"),
        (lambda: Session(ScriptedModel("Hi."), system=["Be kind."]), r"system is \['Be kind.'\]; give a text"),
        (
            lambda: Session(ScriptedModel("Hi."), output=[int, str]),
            r"of a session must be a type, .* int \| str",
        ),
        (lambda: Session(ScriptedModel("Hi."), output={"type": "object"}), "`output` of a session must be a type"),
        (
            lambda: Session(ScriptedModel("Hi.")).run_sync(output={"type": "object"}),
            "must be a type, such as",
        ),
        (lambda: Session(ScriptedModel("Hi."), store="postgresql://h/a", id="a"), r"PostgresApprovalStore\(url\)"),
        (lambda: SqliteApprovalStore("postgresql://u:pw@h/a"), "this is the URL of a server. Use the Postgres store"),
        (lambda: TOOLS.prefixed("my "), "prefixed: the prefix is 'my '; give 1 to 128 characters without spaces"),
        (lambda: TOOLS.prefixed(5), "prefixed: the prefix must be a text, and not 5"),
        (lambda: TOOLS.renamed({"pay": "pay now"}), "renamed: a name is 'pay now'"),
        (
            lambda: TOOLS.definitions(provider="openai"),
            r"definitions\(\) has no option `provider`. Did you mean `format`",
        ),
        (lambda: TOOLS.definitions(strct=True), "Did you mean `strict`"),
        (
            lambda: TOOLS.with_approval(names="pay"),
            r"names of tools must be a list, as in names=\['pay'\], and not 'pay'",
        ),
        (lambda: TOOLS.with_gates(lambda call: None, names="pay"), r"as in names=\['pay'\], and not 'pay'"),
        (lambda: TOOLS.with_deliveries(lambda call, value: value, names="pay"), "names of tools must be a list"),
        (lambda: TOOLS.subset("pay"), "names of tools must be a list"),
        (lambda: TOOLS.hiding("pay"), "names of tools must be a list"),
        (lambda: TOOLS.subset(lambda entry: True), r"a condition is for toolset.filtered\(fn\)"),
        (lambda: ez_tool(idempotent="no")(pay), "`pay`: idempotent is 'no'; give True or False"),
        (lambda: ez_tool(lock=5)(pay), "`pay`: lock is 5; give True, False, a text or a function"),
        (lambda: ez_tool(timeout="3s")(pay), "`pay`: timeout must be a number of seconds"),
        (lambda: ez_tool(tags="reads")(pay), r"`pay`: tags must be a list .* write tags=\['reads'\]"),
        (lambda: ez_tool(tags=[5])(pay), r"`pay`: tags must be a list of words, as in tags=\['reads'\]"),
        (lambda: ez_tool(type="check")(pay), "`pay`: type is 'check'; give action or completion_check"),
        (lambda: ez_tool(provider={"strict": True})(pay), r"`pay`: provider is .* give ProviderOptions\(...\)"),
        (lambda: ez_tool(fixed="eu")(pay), r"`pay`: fixed is 'eu'; give arguments by name, as in fixed=\{"),
        (lambda: schema_tool("pay", {"type": "object"}, pay, description=5), "`pay`: description is 5; give a text"),
        (lambda: tool(register="no")(pay), r"tool\(\): register is 'no'; give True or False"),
        (lambda: TOOLS.renamed("pay"), r"renamed: names is 'pay'; give"),
        (lambda: TOOLS.with_scopes("pay"), "with_scopes: scopes is 'pay'; give scopes by the name of a tool"),
        (lambda: TOOLS.with_scopes({"pay": 5}), "with_scopes: the scopes of `pay` are 5; give a scope, or a list"),
        (lambda: Run(gates=5), r"Run: gates is 5; give a list of them, as in gates=\["),
        (lambda: Run(deliveries="mask"), r"Run: deliveries is 'mask'; give a list of them"),
        (lambda: Run(features=5), r"Run: features is 5; give a list of them, as in features=\[Provenance\(\)\]"),
        (lambda: Run(provide=["shop"]), r"Run: provide is not \['shop'\]; give values by their types"),
        (lambda: HookSet("pay"), r"HookSet: tools is 'pay'; give a list of them, as in tools=\[pay\]"),
        (lambda: Turn(ez_tool(pay), args=5), r"is a list; .* kwargs=\{...\}"),
        (lambda: Turn(ez_tool(pay), metadata=5), "a turn: metadata is 5; give values by name"),
        (lambda: ContextQueue().replace("abc"), r"holds ContextItem objects, not str; write ContextItem\("),
        (lambda: Toolkit(TOOLS, sandbox=5), r"Toolkit: sandbox is 5; give a sandbox, as in ProcessSandbox\(\)"),
        (lambda: Toolkit(TOOLS, sandbox=FakeSandbox), "Toolkit: sandbox is <class .*; give a sandbox"),
        (lambda: Toolkit(TOOLS).as_tool(budgt=5), r"as_tool\(\) has no option `budgt`. Did you mean `budget`"),
        (lambda: Toolkit(TOOLS).as_tool(on_result=5), r"as_tool\(\): on_result is 5; give a function"),
        (lambda: Toolkit(TOOLS).extract_code(None), "takes the text of a reply, and this is None"),
        (lambda: SandboxLimits(timeout=5), "SandboxLimits has no option `timeout`. Did you mean `wall_time`"),
        (lambda: ez_tool(readers=5)(pay), r"`pay`: readers is 5; give a list of texts, as in readers=\['ann'\]"),
        (lambda: ez_tool(content=5)(pay), "`pay`: content is 5; give a list of texts"),
        (lambda: ez_tool(listing="Pay")(pay), "`pay`: listing is 'Pay'; give fields by name"),
        (lambda: Ask("large", metadata="order A7"), "Ask: metadata is 'order A7'; give values by name"),
        (lambda: Ask(5), "Ask: reason is 5; give a text"),
        (lambda: Reject(5), "Reject: reason is 5; give a text"),
        (lambda: FoundValues("Oslo"), r"FoundValues: values is 'Oslo'; write values=\['Oslo'\]"),
        (lambda: Toolset([pay], global_hooks=print), r"a toolset: global_hooks is .* give GlobalHooks\(pre=..., post="),
        (
            lambda: Toolset([pay], pre_hooks={"pay": "x"}),
            r"the middleware is 'x'; give a function \(ctx, args, metadata",
        ),
        (lambda: GlobalHooks(post=5), r"the middleware is 5; give a function \(ctx, tool_name, result, metadata"),
        (lambda: Run(available={ez_tool(pay)}), r"give a set of names, as in available=\{'pay'\}"),
        (lambda: CallLimits(per_tool={ez_tool(pay): 1}), r"the name of a tool before each number, as in per_tool="),
        (lambda: REQUEST.deny(message=5), r"deny\(\): message is 5; give a text"),
        (lambda: Turn(ez_tool(pay), {"cents": 1}), r"arguments are given as in Turn\(tool, kwargs=\{...\}\)"),
        (lambda: Turn(ez_tool(pay), kwargs=[1]), r"a turn: kwargs is \[1\]; give arguments by name"),
        (lambda: Turn(ez_tool(pay), cents=1), r"Here it is `kwargs=\{'cents': ...\}`, an argument of the tool"),
        (lambda: Session(ScriptedModel("Hi."), cache="yes"), "a session: cache is 'yes'; give True or False"),
        (lambda: Session(ScriptedModel("Hi."), retry=3), r"a session: retry is 3; give Retry\(\)"),
        (lambda: Session(ScriptedModel("Hi."), require="pay"), r"give ToolRequirement.specific\('pay'\)"),
        (lambda: Session(ScriptedModel("Hi."), on_text="x"), "`on_text` is 'x': give a function"),
        (lambda: Session(ScriptedModel("Hi."), full_results="all"), "full_results must be a whole number"),
        (lambda: Session(ScriptedModel("Hi.")).run_sync(max_round=3), "Did you mean `max_rounds`"),
        (lambda: Toolkit(TOOLS, run=Run()), r"Here it is toolkit.execute\(..., run=...\)"),
        (lambda: Pipeline(TOOLS, run=Run()), r"Here it is pipeline.run\(..., run=...\)"),
        (lambda: TOOLS.filtered(["pay"]), r"give a function \(ctx, entry\); .*toolset.subset\(\[...\]\)"),
        (lambda: TOOLS.filtered(lambda entry: True), r"called with \(ctx, entry\)"),
        (lambda: TOOLS.filtered(lambda ctx, entry: True, names="pay"), "names of tools must be a list"),
        (lambda: ez_tool(return_direct=True)(pay), r"Here it is a loop over `await session.step\(\)`"),
        (lambda: ez_tool(approver=print)(pay), r"Here it is Run\(approver=...\)"),
        (lambda: tool("pay", "Pay.", {"cents": int}), "whose annotations are the schema .* name=..., description=..."),
        (lambda: ez_tool(pay, "Pay."), "whose annotations are the schema"),
        (lambda: ez_tool(input_schema={})(pay), "Here it is the annotations of the function's parameters"),
        (lambda: ez_tool(infer_schema=True)(pay), "Here it is the annotations of the function's parameters"),
        (lambda: ez_tool(exclude_args=["cents"])(pay), r"Here it is fixed=\{...\}, or a parameter `Annotated\[T, Inj"),
        (lambda: ez_tool(strict=True)(pay), r"Here it is toolset.definitions\(format=..., strict=True\)"),
        (lambda: ez_tool(failure_error_function=None)(pay), r"Here it is `raise ModelRetry\(text\)`"),
        (lambda: ez_tool(annotations={})(pay), r"Here it is listing=\{'annotations': ...\}"),
        (lambda: ez_tool(meta={})(pay), r"Here it is listing=\{'_meta': ...\}"),
        (lambda: ez_tool(enabled=False)(pay), r"Here it is Run\(available=...\)"),
        (lambda: ez_tool(prepare=print)(pay), r"Here it is Run\(available=...\), or `@hooks.on\(tool\).description`"),
        (lambda: ez_tool(defer_loading=True)(pay), r"Here it is searchable\(toolset\)"),
        (lambda: ez_tool(takes_ctx=True)(pay), "Here it is a parameter `ctx: RunContext`"),
        (lambda: ez_tool(sequential=True)(pay), "Did you mean `lock`"),
        (lambda: ez_tool(output_schema={})(pay), "Did you mean `return_schema`"),
        (lambda: ez_tool(docstring_format="google")(pay), "Here it is the docstring, which is read without it"),
        (lambda: REQUEST.grant({"cents": 2}), r"grant\('ann', override_args=\{...\}\)"),
        (lambda: ez_tool(requires_approval="always")(pay), "requires_approval is 'always'; give True, False, or a"),
        (lambda: ez_tool(lambda cents: cents), "give one, as in name='add'"),
        (lambda: TOOLS.with_approval("pay"), r"with_approval\(names=\[...\]\)"),
        (lambda: TOOLS.with_approval(["pay"]), r"with_approval\(names=\[...\]\)"),
        (lambda: TOOLS.with_approval(lambda: True), r"is called with \(arguments, ctx\)"),
        (lambda: TOOLS.with_hooks(print), r"with_hooks: hooks is .* give a HookSet\(\)"),
        (lambda: Toolset([pay], hooks=print), r"a toolset: hooks is .* give a HookSet\(\)"),
        (lambda: Toolset([pay], pre_hooks=[print]), r"as in pre_hooks=\{'refund': fn\}"),
        (lambda: Toolset([pay], post_hooks=print), r"as in post_hooks=\{'refund': fn\}"),
        (lambda: Toolset(pay, pay), r"Toolset\(\[first, second\]\)"),
        (lambda: Toolset([Unopened()]).names(), "open it: `async with toolset.open"),
        (lambda: Toolset([Unopened()]).definitions(), "open it: `async with toolset.open"),
        (lambda: Run(approver=lambda: True), r"approver is not .* a function of the request"),
        (lambda: Session(ScriptedModel("Hi."), run=Run), r"give a run, as in run=Run\("),
        (lambda: Session(ScriptedModel("Hi."), store="a.db", id=5), "Session: id is 5; give a text"),
        (
            lambda: FrameworkRuns("x", lambda ctx: {"user": 1}, None).find("k", None),
            r"return the run, as in `return Run\(",
        ),
        (lambda: GuardPolicy(approve=ez_tool(pay)), r"is called with \(arguments, ctx\)"),
        (lambda: GuardPolicy(approve=lambda: True), r"is called with \(arguments, ctx\)"),
        (lambda: GuardPolicy(["pay"], CallLimits(total=1)), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run="ann"), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run=pay), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(run=Run), r"run=lambda ctx: Run\("),
        (lambda: GuardPolicy(sinks=[print]), r"sinks=\[ListSink\(\)\]"),
        (lambda: GuardPolicy(hooks=print), r"GuardPolicy: hooks is .* give a HookSet\(\)"),
        (lambda: GuardPolicy(limits=3), r"CallLimits\(total=3\)"),
        (lambda: GuardPolicy(limits={"pay": 1}), r"CallLimits\(per_tool=\{'pay': 1\}\)"),
        (lambda: Run(limits={"pay": 1}), r"CallLimits\(per_tool=\{'pay': 1\}\)"),
        (lambda: CallLimits({"pay": 1}), r"per_tool=\{'pay': 1\}"),
        (lambda: CallLimits(per_tool=["pay"]), r"give numbers by name, as in per_tool=\{'pay': 1\}"),
        (lambda: Run(durability=MemoryApprovalStore()), r"Durability\(store=...\)"),
        (lambda: Run(gates=[Limit(calls=1)]), r"Budgets\(\[Limit\(...\)\]\)"),
        (lambda: Run(gates=[CallLimits(total=1)]), r"Run\(limits=CallLimits\(...\)\)"),
        (lambda: Run(gates=[ApproverRule(name="x")]), r"ApproverRules\(\[ApproverRule\(...\)\], groups\)"),
        (lambda: Run(approver=lambda ctx, args: True), "it must be a function of the request"),
        (lambda: GuardPolicy(approve=lambda ctx, args: args["cents"] > 3), r"write \(arguments, ctx\)"),
        (lambda: TOOLS.with_approval(lambda context, arguments: True), r"write \(arguments, ctx\)"),
        (lambda: ez_tool(requires_approval=lambda run_context, _: True)(pay), "and not the `ctx`"),
        (lambda: Toolset([pay], pre_hooks={"pay": lambda args, ctx, metadata: args}), "is given the `ctx`"),
        (lambda: Budgets([Limit(calls=1)], store="u.db"), r"SqliteUsageStore\('usage.db'\)"),
        (lambda: Budgets([Limit(calls=1)], store=MemoryApprovalStore()), r"SqliteUsageStore\('usage.db'\)"),
        (lambda: Budgets([], costs=[Cost(1, "EUR")]), r"costs=\{'pay': Cost\(30, 'EUR'\)\}"),
        (lambda: Limit(3), "Limit takes its options by name: calls=..., spend=..."),
        (lambda: ApproverRule("x", ["pay"]), "ApproverRule takes its options by name: name=..., of=..."),
        (lambda: CallLimits(1, 2, 3, (), 5), "CallLimits takes total, per_tool, concurrency, requirements by position"),
        (lambda: ApproverRule(name="x", of=["finance"]), r"of=\{'finance': 1\}"),
        (lambda: ApproverRule(name="x", over=1000), r"over=\{'amount': 1000\}"),
        (lambda: Groups(["ann"]), r"Groups\(\{'finance': \['ann'\]\}\)"),
        (lambda: ApproverRules([ApproverRule(name="x")], {"f": ["ann"]}), r"give Groups\(\{'finance': \['ann'\]\}\)"),
        (lambda: Toolkit(TOOLS, limits=CallLimits(total=1)), r"run=Run\(limits=CallLimits\(...\)\)"),
        (
            lambda: Session(print, "gpt-5", tools=[pay]),
            r"by position, .* Session\(client, model_name='gpt-5', tools",
        ),
        (lambda: Session(print, model="gpt-5"), r"`model` twice, .* Session\(client, model_name='gpt-5', tools"),
        (lambda: Session("openai:gpt-5", base_url="http://h"), r"Session\(AsyncOpenAI\(base_url=...\), model_name="),
        (lambda: Session("openai:gpt-5", api_key="k"), r"Session\(AsyncOpenAI\(api_key=...\), model_name="),
        (lambda: Session("openai:gpt-5", handoffs=[]), r"a tool that runs a session of its own"),
        (lambda: Session("openai:gpt-5", input_guardrails=[]), r"Session\(..., run=Run\(gates=\[...\]\)\)"),
        (lambda: AGENT.approve(True), r"agent.approve\(agent.requests\[0\], 'ann'\), and not about True"),
        (
            lambda: AGENT.approve(AGENT.requests, "ann"),
            r"approve\(agent.requests\[0\], 'ann'\), and not about \[\]",
        ),
        (lambda: AGENT.deny(True), r"agent.approve\(agent.requests\[0\], 'ann'\), and not about True"),
        (lambda: AGENT.run("hi"), r"`await agent.put\(Turn\(tool\)\)`. With a text it is `Session\("),
    ],
)
def test_a_value_of_another_kind_is_refused_where_it_is_given(write: Callable[[], Any], mend: str) -> None:
    with pytest.raises((TypeError, ValueError, DatabaseError), match=mend):
        write()


@pytest.mark.parametrize(
    "opened",
    [
        Run(),
        TOOLS,
        Pipeline(TOOLS),
        Session(ScriptedModel("Hi.")),
        Agent("trips", "Plans trips.", [], register=False),
        Toolkit(TOOLS),
        MemoryApprovalStore(),
        Toolset([Unopened()]),
    ],
    ids=lambda opened: type(opened).__name__,
)
async def test_what_needs_no_with_says_what_to_write(opened: Any) -> None:
    with pytest.raises(AttributeError, match="Here it is"), opened:
        pass
    with pytest.raises(AttributeError, match="Here it is"):
        async with opened:
            pass


@pytest.mark.parametrize(
    ("read", "mend"),
    [
        (lambda: Session(ScriptedModel("Hi.")).tool(pay), r"Here it is Session\(..., tools=\[...\]\)"),
        (lambda: Toolset.from_functions([pay]), r"Here it is `Toolset\(\[fn\]\)`"),
    ],
)
def test_what_is_a_method_elsewhere_says_what_to_write(read: Callable[[], Any], mend: str) -> None:
    with pytest.raises(AttributeError, match=mend):
        read()


def test_a_tool_in_the_place_of_its_name_is_told_by_its_name() -> None:
    with pytest.raises(UnknownTool, match=r"there is no tool `<Tool pay .*>`\. Did you mean `pay`\?"):
        _ = TOOLS[ez_tool(pay)]  # type: ignore[index]


def test_the_file_of_a_store_may_be_a_url(tmp_path: Path) -> None:
    Session(ScriptedModel("Hi."), store=f"sqlite:///{tmp_path / 'app.db'}", id="a")

    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_toolsets_are_added_by_combined() -> None:
    with pytest.raises(AttributeError, match=r"`Toolset\.combined\(first, second\)`"):
        _ = TOOLS + TOOLS  # type: ignore[operator]


def test_a_parameter_without_a_type_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    @ez_tool
    def add(a, b=1, *, c: int = 2):  # type: ignore[no-untyped-def]
        """Add."""

    properties = add.parameters["properties"]

    assert properties == {"a": {}, "b": {"default": 1}, "c": {"default": 2, "type": "integer"}}
    assert "`add` takes any value for `a`, `b`, which have no type annotation" in caplog.text


def test_a_policy_of_two_guards_knows_the_tools_of_each() -> None:
    policy = GuardPolicy(approve=["pay"])
    first, second = GuardedTools("x", policy, None), GuardedTools("x", policy, None)
    first.check_names(["pay"], are_all=True)

    with pytest.raises(ToolConstraintError):
        second.check_names(["play"], are_all=True)


def test_what_is_meant_is_taken() -> None:
    class Shop:
        @staticmethod
        @tool(register=False)
        async def pay(ctx: RunContext, cents: int) -> str:
            """Pay."""
            return f"paid {cents}"

    assert [entry.name for entry in Toolset([Shop.pay])] == ["pay"]


async def test_a_coroutine_among_tools_is_to_be_awaited() -> None:
    async def tools() -> list[object]:
        return [pay]

    for wrong in (tools(), [tools()]):
        with pytest.raises(TypeError, match="await it first"):
            Toolset(wrong)  # pyright: ignore[reportArgumentType]
        (wrong if isinstance(wrong, Coroutine) else wrong[0]).close()
