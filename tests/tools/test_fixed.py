"""Fixed arguments."""

import logging
from typing import Any

import pytest

from toolcrib.tools import tool


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
