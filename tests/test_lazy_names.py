"""Names of packages are loaded when they are asked for: a plain call loads what it passes, and no more."""

from __future__ import annotations

import ast
import inspect
import pydoc
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import toolcrib.errors
from toolcrib import _lazy_names

PACKAGE = Path(toolcrib.errors.__file__).parents[1]
LAZY = sorted(
    ".".join(file.parent.relative_to(PACKAGE.parent).parts)
    for file in PACKAGE.rglob("__init__.py")
    if "lazy_names(" in file.read_text("utf-8")
)
UNUSED = ("provenance", "results", "replay", "approvals", "serving", "rounds", "turns", "code", "sandbox", "telemetry")
UNASKED = {
    *(f"toolcrib.calls.{name}" for name in ("_approval", "_bounds", "_decision", "_grant", "_identity")),
    *("toolcrib.hooks._delivery", "toolcrib.hooks._feature", "toolcrib.toolsets._select"),
    *("toolcrib.jsonschema._repair", "toolcrib.jsonschema._well_formed", "toolcrib.schema._client"),
    *("toolcrib.database._tables", "sqlite3"),
}
"""What a call that nobody approves, of a tool that is a function, does without."""
CALL = """
import asyncio, sys
from toolcrib import Pipeline, ToolCall, Toolset, tool

@tool
async def add(a: int, b: int) -> int:
    return a + b

print(asyncio.run(Pipeline(Toolset([add])).run(ToolCall("add", {"a": 1, "b": 2}))).value)
print(*sys.modules)
"""


def declared(package: str) -> set[str]:
    """Return the names that a package imports for a type checker."""
    tree = ast.parse(Path(str(import_module(package).__file__)).read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name for node in imports for alias in node.names}


@pytest.mark.processes
def test_a_plain_call_loads_no_feature_and_no_database() -> None:
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=True)

    value, modules = done.stdout.splitlines()
    loaded = modules.split()
    assert value == "3"
    assert [
        name for name in loaded if name.startswith(tuple(f"toolcrib.{room}." for room in (*UNUSED, "record")))
    ] == []
    assert UNASKED.isdisjoint(loaded)


@pytest.mark.processes
def test_pydantic_loads_its_fields_with_the_first_schema() -> None:
    code = "import sys; from toolcrib import Pipeline, Toolset, tool; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = done.stdout.split()
    assert {"toolcrib.pipeline._pipeline", "toolcrib.tools._tool"} <= {*loaded}
    assert {"pydantic.fields", "pydantic.types"}.isdisjoint(loaded)


@pytest.mark.processes
def test_a_version_is_printed_without_the_commands() -> None:
    code = "import sys; from toolcrib.cli import main; main(); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)

    assert {"typer", "pydantic", "asyncio"}.isdisjoint(done.stdout.split())


@pytest.mark.processes
def test_a_command_loads_its_own_module_and_no_pipeline(tmp_path: Path) -> None:
    tmp_path.joinpath("tools.py").write_text(
        "from toolcrib import tool\n\n@tool\nasync def one() -> int:\n    return 1\n"
    )
    code = "import atexit, sys; from toolcrib.cli import main; atexit.register(lambda: print(*sys.modules)); main()"

    command = [sys.executable, "-c", code, "list", "tools.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    loaded = done.stdout.split()
    assert "toolcrib.cli._list" in loaded
    rooms = ("toolcrib.pipeline.", "toolcrib.record.", "toolcrib.database.", "toolcrib.turns.", "toolcrib.cli._approv")
    assert [name for name in loaded if name.startswith(rooms)] == []
    assert UNASKED.isdisjoint(loaded)
    assert "toolcrib.calls._outcome" not in loaded


@pytest.mark.processes
def test_a_signature_without_secrets_makes_no_model() -> None:
    code = """
import sys
from toolcrib import tool

@tool
async def book(city: str, nights: int = 1, seats: list[str] = ()) -> str: ...

@tool
async def find(city: str, most: int = 10) -> list[str]: ...

print(find.signature)
assert "pydantic.fields" not in sys.modules
print(book.signature)
assert "pydantic.fields" in sys.modules
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == (
        "find(city: str, most: int = 10) -> list[str]\nbook(city: str, nights: int = 1, seats: list[str] = ()) -> str\n"
    )


@pytest.mark.parametrize("package", LAZY)
def test_a_type_checker_and_python_know_the_same_names(package: str) -> None:
    module = import_module(package)

    missing = [name for name in module.__all__ if not hasattr(module, name)]

    assert missing == []
    assert declared(package) - {"__version__"} <= set(module.__all__)


@pytest.mark.parametrize("package", LAZY)
def test_the_names_and_modules_of_a_package_are_listed(package: str) -> None:
    module = import_module(package)

    assert set(module.__all__) <= set(dir(module))
    assert not [name for name in dir(module) if name.startswith("_")]


@pytest.mark.processes
def test_modules_are_reachable_from_the_package() -> None:
    code = "import toolcrib; print(toolcrib.approvals.Approver is not None, 'approvals' in dir(toolcrib))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "True True\n"


def test_an_unknown_name_is_no_attribute() -> None:
    load, _ = _lazy_names.lazy_names("toolcrib.calls", {})

    with pytest.raises(AttributeError, match=r"module 'toolcrib.calls' has no attribute 'Cal'"):
        load("Cal")


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of lazy names, one of which needs a module that is not installed, as does a module of the package."""
    files = {
        "__init__.py": (
            "from toolcrib._lazy_names import lazy_names\n"
            "__getattr__, __dir__ = lazy_names(__name__, {'._file': 'FileStore', '._server': 'ServerStore'})\n"
            "__all__ = ['FileStore', 'ServerStore']\n"
        ),
        "_file.py": "class FileStore:\n    pass\n",
        "_server.py": "import absent_driver\n\nclass ServerStore:\n    pass\n",
        "files.py": "",
        "servers.py": "import absent_driver\n",
    }
    tmp_path.joinpath("stores_of_test").mkdir()
    for name, text in files.items():
        tmp_path.joinpath("stores_of_test", name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("stores_of_test")
    for name in [name for name in sys.modules if name.partition(".")[0] == "stores_of_test"]:
        del sys.modules[name]


def test_what_lacks_its_dependency_is_left_out_of_a_star_import_and_of_the_lists(stores: ModuleType) -> None:
    found: dict[str, object] = {}

    exec("from stores_of_test import *", found)

    assert {name for name in found if name[0] != "_"} == {"FileStore"}
    assert stores.__all__ == ["FileStore"]
    assert dir(stores) == ["FileStore", "files"]
    assert [name for name, _ in inspect.getmembers(stores)] == ["FileStore", "files"]
    assert "ServerStore" not in pydoc.render_doc(stores)


def test_the_name_of_what_lacks_its_dependency_says_so(stores: ModuleType) -> None:
    with pytest.raises(ModuleNotFoundError, match="absent_driver"):
        _ = stores.ServerStore
    with pytest.raises(ModuleNotFoundError, match="absent_driver"):
        exec("from stores_of_test import ServerStore")
