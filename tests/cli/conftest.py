"""A file of tools, and the ways to run the command: in this process, in one of its own, at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from click.testing import Result
from typer.testing import CliRunner

from toolcrib._run_sync import run_sync
from toolcrib.approvals import SqliteApprovalStore
from toolcrib.calls import ApprovalRequest, Denial, Grant
from toolcrib.cli._app import app

TOOLS = '''
from pydantic import SecretStr

from toolcrib.tools import ez_tool, tool

RAN = []


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(requires_approval=True)
async def buy(item: str, price: float = 1.0) -> dict:
    """Buy something."""
    print("bought", item)
    return {"item": item, "price": price}


@buy.subtool(requires_approval=True)
async def back(item: str) -> str:
    """Send it back."""
    return f"{item} is back"


@tool
async def count(to: int):
    """Count."""
    for number in range(to):
        yield {"number": number}


@tool(requires_approval=True)
async def login(user: str, password: SecretStr) -> str:
    """Log in."""
    return f"{user}, {len(password.get_secret_value())} characters"


@ez_tool
def broken(text: str) -> str:
    """Fail."""
    raise ValueError(f"cannot read {text}") if text else ValueError


@ez_tool
def odd() -> object:
    """Return what has no JSON form."""
    return object()


@tool
async def forever() -> str:
    """Never return."""
    import asyncio

    await asyncio.Event().wait()
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """The path of a file with tools."""
    path = tmp_path / "tools.py"
    path.write_text(TOOLS, "utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget afterwards what a target imported, and work in a folder of the test's own."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


class Command(Protocol):
    def __call__(self, *args: str, stdin: str | bytes = "") -> Result: ...


@pytest.fixture
def toolcrib() -> Command:
    """Run the command in this process; stdin is no terminal."""

    def run(*args: str, stdin: str | bytes = "") -> Result:
        return CliRunner().invoke(app, list(args), input=stdin, catch_exceptions=False)

    return run


Keep = Callable[..., ApprovalRequest]


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Keep a request in the database of the folder; commands are ann's, by her token."""
    store = SqliteApprovalStore(tmp_path / "toolcrib.db")
    monkeypatch.setenv("TOOLCRIB_APPROVER_TOKEN", run_sync(store.issue_token("ann")))

    def put(id: str = "ask_1a", **fields: Any) -> ApprovalRequest:
        given: dict[str, Any] = {"arguments": {"item": "tea"}, "digest": "d" * 64, **fields}
        request = ApprovalRequest(id=id, call_id=f"call_{id}", tool="buy", **given)
        run_sync(store.put(request))
        return request

    return put


@pytest.fixture
def answer_to(tmp_path: Path) -> Callable[[str], Grant | Denial | None]:
    """What a request in the database of the folder was answered."""
    return lambda id: run_sync(SqliteApprovalStore(tmp_path / "toolcrib.db").show(id)).answer
