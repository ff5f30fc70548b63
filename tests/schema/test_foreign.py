"""Parameters that another framework fills, which a model would fill here."""

from collections.abc import Callable
from typing import Annotated, Any, Optional

import pytest

from toolcrib import RunContext, Toolset, ez_tool, tool
from toolcrib.errors import SchemaError
from toolcrib.schema import Injected
from toolcrib.tools import BaseTool

FOREIGN = [
    ("agents.run_context", "RunContextWrapper", "the OpenAI Agents SDK"),
    ("agents.tool_context", "ToolContext", "the OpenAI Agents SDK"),
    ("agent_framework._middleware", "FunctionInvocationContext", "Agent Framework"),
    ("fastmcp.server.context", "Context", "FastMCP"),
    ("google.adk.agents.context", "Context", "ADK"),
    ("langchain_core.runnables.config", "RunnableConfig", "LangChain"),
    ("langchain_core.tools.base", "InjectedToolArg", "LangChain"),
    ("langgraph.prebuilt.tool_node", "ToolRuntime", "LangGraph"),
    ("mcp.server.fastmcp.server", "Context", "the MCP SDK"),
    ("mcp.server.mcpserver.context", "Context", "the MCP SDK"),
    ("pydantic_ai._run_context", "RunContext", "Pydantic AI"),
]
each_foreign = pytest.mark.parametrize(
    ("kind", "framework"),
    [(type(name, (), {"__module__": module}), framework) for module, name, framework in FOREIGN],
    ids=[f"{module}.{name}" for module, name, _ in FOREIGN],
)
WRITTEN: list[Callable[[Any], Any]] = [
    lambda kind: kind,
    lambda kind: Optional[kind],  # noqa: UP045 -- of a class that is known at run time
    lambda kind: type("Own", (kind,), {}),
    lambda kind: Annotated[dict[str, Any], kind],
    lambda kind: Annotated[dict[str, Any], kind()],
]


def taking(annotation: Any, name: str = "given") -> Callable[..., Any]:
    """Return a function with a parameter of this annotation."""

    scope: dict[str, Any] = {"kind": annotation}
    exec(f"def fn(x: int, {name}: kind) -> int:\n    '''Do it.'''\n    return x", scope)
    return scope["fn"]


@each_foreign
@pytest.mark.parametrize("written", WRITTEN, ids=["class", "optional", "subclass", "note", "note_object"])
def test_a_parameter_of_another_framework_is_refused_where_the_tool_is_made(
    kind: type, framework: str, written: Callable[[Any], Any]
) -> None:
    with pytest.raises(SchemaError, match=rf"`given` is one that {framework} fills .* write `ctx: RunContext`"):
        ez_tool(taking(written(kind)))


@each_foreign
def test_a_parameter_of_another_framework_whose_annotation_is_text_is_no_argument(kind: type, framework: str) -> None:
    fn = taking(kind)
    fn.__globals__["Kind"], fn.__annotations__["given"] = kind, "Kind"

    with pytest.raises(SchemaError, match=f"is one that {framework} fills"):
        _ = ez_tool(fn).parameters


@each_foreign
def test_a_parameter_of_another_framework_may_be_the_hosts(kind: type, framework: str) -> None:
    marked, fixed = ez_tool(taking(Annotated[kind, Injected])), ez_tool(fixed={"given": 1})(taking(kind))

    assert [*marked.parameters["properties"]] == ["x"]
    assert [*fixed.parameters["properties"]] == ["x"]


def test_a_class_of_a_users_own_with_such_a_name_is_an_argument() -> None:
    own = type("Context", (dict,), {"__module__": "shop.context"})

    with pytest.raises(SchemaError, match="pydantic cannot describe"):
        _ = ez_tool(taking(own)).parameters


@pytest.mark.parametrize("name", ["ctx", "run_context", "tool_context"])
def test_a_bare_first_context_is_refused(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"async def fn({name}, x: int) -> int:\n    '''Do it.'''\n    return x", scope)

    for make in (ez_tool, tool, lambda fn: Toolset([fn])):
        with pytest.raises(SchemaError, match=f"`{name}` has no annotation, so that a model would fill it"):
            make(scope["fn"])


def test_a_context_of_ours_is_no_argument() -> None:
    @ez_tool
    def look(ctx: RunContext, x: int) -> int:
        """Look."""
        return x

    class Find(BaseTool):
        """Look."""

        async def call(self, ctx, x: int) -> int:  # type: ignore[no-untyped-def]
            """Look."""
            return x

    assert [[*one.parameters["properties"]] for one in Toolset([look, Find]).tools()] == [["x"]] * 2
