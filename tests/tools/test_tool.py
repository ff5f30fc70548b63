"""`@tool`: what it takes, and what the host's own call does."""

from typing import Any

import pytest

from toolcrib.errors import DuplicateNameError, InvalidArguments, UnregisteredToolError
from toolcrib.tools import Tool, ToolRegistry, ToolType, as_tool, ez_tool, tool


async def test_a_decorated_function_is_a_registered_tool_and_still_callable() -> None:
    @tool()
    async def double(x: int) -> int:
        """Double a number."""
        return x * 2

    assert await double(4) == 8
    assert ToolRegistry.get("double") is double
    assert (double.name, double.__name__, double.description) == ("double", "double", "Double a number.")


async def test_the_decorator_is_used_bare_too() -> None:
    @tool
    async def double(x: int) -> int:
        return x * 2

    assert await double(4) == 8


def test_a_sync_function_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"`plain` is a sync function.*async def plain.*@ez_tool"):

        @tool()
        def plain() -> None: ...

    assert "plain" not in ToolRegistry


def test_what_is_not_a_function_is_told_what_to_write() -> None:
    class Pay: ...

    name: Any = "weather"

    with pytest.raises(TypeError, match=r"`Pay` is a class, and @tool takes async functions.*`BaseTool`"):
        tool()(Pay)
    with pytest.raises(TypeError, match=r"'weather' is a text; its name is an option: name='weather'"):
        tool(name)
    with pytest.raises(TypeError, match=r"'weather' is a text; its name is an option: name='weather'"):
        ez_tool(name)


@pytest.mark.parametrize("make", [tool, ez_tool, as_tool], ids=["tool", "ez_tool", "as_tool"])
def test_a_method_of_a_class_is_a_type_error_with_the_mend(make: Any) -> None:
    class Files:
        async def read(self, path: str) -> str:
            return path

    with pytest.raises(TypeError, match=r"`read` is a method.*Toolset\.from_object\(\.\.\.\), or derive"):
        make(Files.read)
    assert make(Files().read).parameters["required"] == ["path"]


def test_a_sync_generator_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="sync"):

        @tool()
        def plain() -> Any:
            yield 1


def test_a_name_is_registered_once() -> None:
    @tool(name="find")
    async def first() -> None: ...

    with pytest.raises(ValueError, match=r"`find`.*first.*second") as raised:

        @tool(name="find")
        async def second() -> None: ...

    assert isinstance(raised.value, DuplicateNameError)
    assert ToolRegistry.get("find") is first


def test_a_tool_is_replaced_when_asked() -> None:
    @tool(name="find")
    async def first() -> None: ...

    @tool(name="find", replace=True)
    async def second() -> None: ...

    assert ToolRegistry.get("find") is second


async def test_a_factory_may_make_a_tool_of_one_name_more_than_once() -> None:
    def make(user: str) -> Tool[..., Any]:
        @tool(register=False)
        async def whoami() -> str:
            return user

        @whoami.subtool()
        async def shout() -> str:
            return user.upper()

        return whoami

    ann, ben = make("ann"), make("ben")

    assert (await ann(), await ben(), await ben.subtools[0]()) == ("ann", "ben", "BEN")
    assert ToolRegistry.names() == []


def test_two_tools_of_one_name_are_told_the_ways_out() -> None:
    tool(name="find")(_nothing)

    with pytest.raises(DuplicateNameError, match=r"replace=True where a cell .* register=False where a factory"):
        tool(name="find")(_nothing)


async def _nothing() -> None: ...


def test_an_unknown_tool_is_a_key_error() -> None:
    with pytest.raises(UnregisteredToolError) as raised:
        ToolRegistry.get("nothing")

    assert isinstance(raised.value, KeyError)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"max_concurrency": 0}, ValueError, "max_concurrency"),
        ({"max_retries": -1}, ValueError, "max_retries"),
        ({"max_result_chars": 0}, ValueError, "max_result_chars"),
        ({"tags": "io"}, TypeError, "tags"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
@pytest.mark.parametrize("make", [tool, ez_tool])
def test_an_option_that_does_not_fit_is_refused(make: Any, options: Any, error: type[Exception], said: str) -> None:
    async def find(query: str) -> None: ...

    with pytest.raises(error, match=said):
        make(**options)(find)


def test_options_are_kept() -> None:
    @tool(
        tags=["io"], timeout=3, max_retries=1, max_result_chars=10, idempotent=True, default=False, description="Finds."
    )
    async def find(query: str) -> str: ...

    options = find.options
    assert (options.timeout, options.max_retries, options.max_result_chars, options.idempotent) == (3, 1, 10, True)
    assert (find.tags, options.default, find.description) == (frozenset({"io"}), False, "Finds.")


@pytest.mark.parametrize("type", [ToolType.COMPLETION_CHECK, "completion_check"])
def test_a_completion_check_is_a_coroutine_that_says_bool(type: Any) -> None:
    @tool(type=type)
    async def done() -> bool: ...

    with pytest.raises(TypeError, match="-> bool"):

        @tool(type=type)
        async def unsure() -> str: ...

    with pytest.raises(TypeError, match="coroutine"):

        @tool(type=type)
        async def streaming() -> Any:
            yield True

    assert done.options.type == "completion_check"


async def test_extra_arguments_are_left_out() -> None:
    @tool()
    async def double(x: int) -> int:
        return x * 2

    assert await double(4, 5, colour="red") == 8


async def test_a_missing_argument_is_a_type_error_when_it_runs() -> None:
    @tool()
    async def double(x: int) -> int:
        return x * 2

    with pytest.raises(TypeError, match=r"`double`.*x"):
        await double()  # type: ignore[call-arg]


async def test_the_hosts_arguments_are_not_converted() -> None:
    @tool()
    async def show(x: int) -> Any:
        return x

    assert await show("4") == "4"  # type: ignore[arg-type]


async def test_approval_is_not_for_the_host() -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        return "paid"

    assert await pay() == "paid"


async def test_a_streaming_tool_is_iterated() -> None:
    @tool()
    async def count(to: int) -> Any:
        for n in range(to):
            yield n

    assert [n async for n in count(3)] == [0, 1, 2]


async def test_a_call_that_is_never_awaited_is_warned_of_by_the_name_of_the_tool() -> None:
    @tool
    async def pay(cents: int) -> None:
        """Pay."""

    forgotten = pay(1)

    assert forgotten.__qualname__ == "pay"
    await forgotten


async def test_what_a_call_from_python_ignores_is_named_where_something_is_missing() -> None:
    @tool
    async def pay(cents: int) -> None:
        """Pay."""

    with pytest.raises(InvalidArguments, match="cents: missing, it is required; cnts: unknown, it is ignored"):
        await pay(cnts=1)  # type: ignore[call-arg]
