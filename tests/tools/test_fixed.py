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


_APPROVAL_ELSEWHERE = ["approval", "needs_approval", "approval_mode", "human_in_the_loop", "interrupt_on"]


@pytest.mark.parametrize("name", ["require_approval", "require_confirmation", *_APPROVAL_ELSEWHERE])
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
def test_a_misspelt_option_is_no_fixed_argument(make: Any, name: str) -> None:
    with pytest.raises(TypeError, match=rf"no option `{name}`. Did you mean `requires_approval`\?.*fixed=\{{'{name}'"):
        make({name: True})


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
        lambda: ez_tool(require_approval=True)(abs),
        lambda: tool_input(require_approval=True)(BaseModel),
        lambda: schema_tool("pay", {}, require_approval=True),
        lambda: prompt(require_approval=True)(lambda: ""),  # type: ignore[call-arg] -- a mistake
    ],
    ids=["ez_tool", "tool_input", "schema_tool", "prompt"],
)
def test_a_misspelt_option_is_named_where_there_are_no_keywords(make: Any) -> None:
    with pytest.raises(TypeError, match=r"`require_approval`.*Did you mean `requires_approval`\?"):
        make()


def test_a_misspelt_option_of_a_class_is_an_error() -> None:
    class Pay(BaseTool):
        require_approval = True

        async def call(self, ctx: RunContext[Any]) -> None: ...

    with pytest.raises(TypeError, match=r"Pay has no option `require_approval`. Did you mean `requires_approval`\?"):
        Toolset([Pay])


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
