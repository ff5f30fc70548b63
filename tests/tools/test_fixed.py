"""Fixed arguments."""

import logging
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from toolcrib.calls import ToolCall
from toolcrib.hooks import ToolHook, hook
from toolcrib.pipeline import Pipeline
from toolcrib.schema import RunContext
from toolcrib.tools import BaseTool, ez_tool, prompt, tool, tool_input
from toolcrib.tools.from_schema import schema_tool
from toolcrib.toolsets import Toolset


async def test_fixed_arguments_are_merged_and_thunks_asked_anew() -> None:
    tokens = iter(["one", "two"])

    @tool(key=lambda: next(tokens), base="https://x", kind=dict)
    async def fetch(path: str, base: str, key: str, kind: type) -> str:
        return f"{base}/{path}?{key}&{kind.__name__}"

    assert [await fetch("a"), await fetch("b")] == ["https://x/a?one&dict", "https://x/b?two&dict"]


async def test_the_host_overrides_a_fixed_argument_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    @tool(base="https://x")
    async def fetch(path: str, base: str) -> str:
        return f"{base}/{path}"

    with caplog.at_level(logging.WARNING, "toolcrib"):
        assert await fetch("a", base="https://y") == "https://y/a"
    assert "fetch" in caplog.text
    assert "base" in caplog.text
    assert "https://y" not in caplog.text


async def test_a_fixed_argument_may_be_named_like_an_option() -> None:
    @tool(fixed={"timeout": 5}, timeout=60)
    async def fetch(timeout: int) -> int:
        return timeout

    assert await fetch() == 5  # type: ignore[call-arg]
    assert fetch.options.timeout == 60


def test_a_fixed_argument_that_the_function_does_not_take_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"`fetch` does not accept the fixed argument `key`"):

        @tool(key="x")
        async def fetch(path: str) -> None: ...


async def test_a_function_with_keywords_takes_any_fixed_argument() -> None:
    @tool(key="x")
    async def fetch(**rest: Any) -> Any:
        return rest

    assert await fetch(path="a") == {"key": "x", "path": "a"}


def test_fixed_arguments_are_not_in_the_schema() -> None:
    @tool(key="x")
    async def fetch(path: str, key: str) -> None: ...

    assert list(fetch.parameters["properties"]) == ["path"]
    assert "key" not in fetch.signature


# --- a mistake in an option's name


async def pay(cents: int, **meta: object) -> str:
    """Pay."""
    return f"paid {cents} {meta}"


class Bank:
    def pay(self, cents: int, **meta: object) -> str:
        """Pay."""
        return f"paid {cents} {meta}"


BEFORE = ["", "_", "always_", "ask_", "must_", "need_", "needs_", "require_", "requires_", "should_"]
HEADS = ["approval", "approve", "approved", "ask", "confirm", "confirmation", "consent", "hitl", "permission", "review"]
ALONE = ["approval", "approve", "approved", "confirm", "confirmation", "consent", "hitl", "signoff", "sign_off"]
AFTER = ["", "_", "_before_run", "_first", "_from_user", "_mode", "_needed", "_policy", "_required"]
DEMANDS = [before for before in BEFORE if before.strip("_")] + ["human_"]
FOREIGN = [
    "human_in_the_loop",
    "interrupt_on",
    "interrupt_after",
    "needsApproval",
    "requireConfirmation",
    "require_aproval",
    "HITLMode",
    "hitlEnabled",
    "requireHITL",
    "needs_ok",
    "needsHumanOK",
    "require_user_ok",
    "pause_for_approval",
    "asks_permission",
    "ask_user",
    "requires_sign_off",
    "must_be_approved",
    "request_confirmation",
    "requestConfirmation",
    "human_feedback",
    "needs_human_input",
    "approve_each",
    "confirmations",
    "confirm_execution",
    "confirm_each_call",
    "ask_every_time",
    "approval_handler",
    "human_oversight",
    "four_eyes",
    "requires_authorization",
    "user_must_confirm",
    "__approval",
    "confirm\u200b",
    "\uff43onfirm",
    "require\uff21pproval",
    "human",
]
HONEST = [
    "approval_id",
    "approval_code",
    "consent_id",
    "confirmation_code",
    "review",
    "review_of",
    "human_user",
    "is_human",
    "approved_by",
    "ask",
    "permission_mode",
    "user_review",
    "ok",
    "user_input",
    "pause",
    "authorization",
    "oversight",
    "needs_user",
    "needs_input",
    "sign_offer",
]


@pytest.mark.parametrize(
    "make",
    [
        lambda options: tool(register=False, **options)(pay),
        lambda options: ez_tool(**options)(pay),
        lambda options: ez_tool(name="bank")(pay).subtool(**options)(pay),
        lambda options: Toolset.from_object(Bank(), **options),
    ],
    ids=["tool", "ez_tool", "subtool", "from_object"],
)
def test_what_asks_for_approval_in_other_words_is_no_fixed_argument(make: Any) -> None:
    alone = [f"{before}{head}{after}" for before in BEFORE for head in ALONE for after in AFTER]
    demanded = [f"{before}{head}{after}" for before in DEMANDS for head in HEADS for after in AFTER]
    for name in {*alone, *demanded, *FOREIGN} - {"requires_approval"}:
        with pytest.raises(TypeError) as raised:
            make({name: True})

        said = str(raised.value)
        assert f"no option `{name}`. Did you mean `requires_approval`?" in said
        assert f"fixed={{{name!r}: ...}}" in said


@pytest.mark.parametrize(
    "name",
    [f"{word}_{head}" for word in ("get", "skip") for head in HEADS]
    + [f"{head}_{word}" for head in HEADS[3:] for word in ("code", "text", "url")]
    + [
        *HONEST,
        "user",
        "required",
        "mode",
        "tool_call",
        "loop",
        "user_id",
        "permissions",
        "reviewer",
        "humans",
        "asked_by",
    ],
)
def test_what_is_named_after_an_approval_is_a_fixed_argument(name: str) -> None:
    assert ez_tool(**{name: "x"})(pay).fixed == {name: "x"}


@pytest.mark.parametrize(
    ("name", "mend"),
    [("approver", r"Run\(approver=...\)"), ("max_calls", r"Run\(limits="), ("is_enabled", "available=")],
)
def test_what_is_an_option_of_a_run_is_no_fixed_argument(name: str, mend: str) -> None:
    with pytest.raises(TypeError, match=rf"no option `{name}`. Here it is .*{mend}.*fixed=\{{'{name}'"):
        ez_tool(**{name: 1})(pay)


def test_fixed_passes_what_is_named_like_an_option() -> None:
    tools = Toolset.from_object(Bank(), fixed={"require_approval": True})

    outcome = Pipeline(tools).run_sync(ToolCall("pay", {"cents": 5}))

    assert outcome.text() == "paid 5 {'require_approval': True}"


def test_a_parameter_that_is_written_out_may_be_near_an_option() -> None:
    @ez_tool(tag="x")
    def note(tag: str, **meta: object) -> str:
        return tag

    assert note.fixed == {"tag": "x"}


@pytest.mark.parametrize(
    "make",
    [
        lambda options: ez_tool(**options)(abs),
        lambda options: tool_input(**options)(BaseModel),
        lambda options: schema_tool("pay", {}, **options),
        lambda options: prompt(**options)(lambda: ""),
    ],
    ids=["ez_tool", "tool_input", "schema_tool", "prompt"],
)
@pytest.mark.parametrize("name", ["require_approval", "confirm", "hitl"])
def test_a_misspelt_option_is_named_where_there_are_no_keywords(make: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"`{name}`.*Did you mean `requires_approval`\?"):
        make({name: True})


async def call(self: BaseTool, ctx: RunContext[Any]) -> None: ...


def of_class(name: str, value: object) -> type[BaseTool]:
    return type("Pay", (BaseTool,), {name: value, "call": call, "__module__": __name__})


@pytest.mark.parametrize("value", [True, lambda self, arguments, ctx: True], ids=["switch", "policy"])
@pytest.mark.parametrize("name", ["require_approval", "needs_confirmation", "human_in_the_loop", "hitl"])
def test_a_misspelt_option_of_a_class_is_an_error(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"Pay has no option `{name}`. Did you mean `requires_approval`\?"):
        Toolset([of_class(name, value)])


@pytest.mark.parametrize("name", ["confirm", "ask_user", "review_first"])
def test_a_method_that_asks_is_none_of_its_options(name: str) -> None:
    assert Toolset([of_class(name, lambda self: None)]).names() == ["pay"]
    with pytest.raises(TypeError, match="Did you mean `requires_approval`"):
        Toolset([of_class(name, True)])


def test_another_attribute_of_a_class_is_its_own() -> None:
    class Fetch(BaseTool):
        headers: ClassVar[dict[str, str]] = {}

        async def call(self, ctx: RunContext[Any]) -> None: ...

    assert Toolset([Fetch]).names() == ["fetch"]


def test_a_misspelt_option_of_a_hook_is_no_fixed_argument() -> None:
    async def note(**about: object) -> None: ...

    with pytest.raises(TypeError, match=r"@hook has no option `tag`. Did you mean `tags`\?"):
        hook(ToolHook.AFTER_INVOKE, tag={"io"})(note)
    with pytest.raises(TypeError, match=r"@tool.after_invoke has no option `locks`. Did you mean `lock`\?"):
        ez_tool(pay).after_invoke(locks=True)(note)


@pytest.mark.parametrize(
    "option", ["approvals_needed", "max_concurrency", "max_retries", "max_result_chars", "timeout"]
)
@pytest.mark.parametrize("value", [True, "3"])
def test_an_option_that_is_a_number_takes_no_other_type(option: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"{option} must be a .*number( of seconds)?, and is"):
        ez_tool(**{option: value})(pay)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("timeout_seconds", "timeout"),
        ("max_attempts", "max_retries"),
        ("name_override", "name"),
        ("approvers", "approvals_needed"),
    ],
)
def test_an_option_by_its_name_elsewhere_is_told_by_ours(name: str, option: str) -> None:
    with pytest.raises(TypeError, match=rf"Did you mean `{option}`\?"):
        ez_tool(**{name: 1})(pay)
