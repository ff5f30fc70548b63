"""Without its dependency, each optional part says which extra brings it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.public_api import RECORD, public_names
from toolcrib._extras import Extra
from toolcrib.errors import MissingExtraError

PARTS = {
    "toolcrib.adapters.ag_ui": "ag-ui",
    "toolcrib.adapters.agent_framework": "agent-framework",
    "toolcrib.adapters.claude_agent_sdk": "claude-agent-sdk",
    "toolcrib.adapters.dbos": "durable",
    "toolcrib.adapters.google_adk": "google-adk",
    "toolcrib.adapters.langchain": "langchain",
    "toolcrib.adapters.mcp_client": "mcp",
    "toolcrib.adapters.mcp_server": "mcp",
    "toolcrib.adapters.openai_agents": "openai-agents",
    "toolcrib.adapters.pydantic_ai": "models",
    "toolcrib.adapters.restate": "restate",
    "toolcrib.adapters.smolagents": "smolagents",
    "toolcrib.adapters.vercel_ai": "vercel-ai",
    "toolcrib.approvers.cedar": "cedar",
    "toolcrib.console": "console",
    "toolcrib.openapi": "openapi",
    "toolcrib.serving.oauth": "mcp",
    "toolcrib.telemetry": "otel",
    "toolcrib.toolsets.search": "search",
}
REQUIRED = {
    *("annotated-types", "griffelib", "pydantic", "pydantic_core", "toolcrib"),
    *("typing-inspection", "typing_extensions"),
}
"""What `pip install toolcrib` brings."""
WITHOUT = """
import importlib, sys
missing = ["bm25s", "dbos", "mcp", "mcp_types", "opentelemetry", "psycopg", "pydantic_ai", "sqlalchemy", "starlette"]
missing += ["agent_framework", "agents", "claude_agent_sdk", "google.adk", "langchain", "smolagents", "uvicorn"]
missing += ["ag_ui", "cedarpy", "jwt", "restate", "yaml"]
sys.modules.update(dict.fromkeys(missing))
"""
IMPORT = f"""
for part in {list(PARTS)}:
    try:
        importlib.import_module(part)
    except ImportError as error:
        print(error)
"""
BARE = f"""
import importlib, sys
from importlib.metadata import packages_distributions

REQUIRED = {REQUIRED}


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRA:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


EXTRA = {{module for module, names in packages_distributions().items() if not REQUIRED.intersection(names)}}
sys.meta_path.insert(0, Absent())
"""
NAMES = f"""{BARE}
for line in sys.stdin:
    module, _, name = line.strip().rpartition(".")
    try:
        getattr(importlib.import_module(module), name)
    except ImportError as error:
        if "Install it with: pip install " not in str(error):
            print(module, name, error)
"""
LISTS = f"""{BARE}
import inspect, pydoc
for name in sys.stdin.read().split():
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        assert "Install it with: pip install " in str(error), error
        continue
    try:
        exec(f"from {{name}} import *", {{}})
        inspect.getmembers(module)
        pydoc.render_doc(module)
    except Exception as error:
        print(name, repr(error))
    print(name, *dir(module))
"""
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
BROUGHT = {
    *("ag-ui", "cedar", "console", "durable", "mcp", "models", "openapi", "otel", "restate", "search", "vercel-ai"),
}
"""The extras of the environment of these tests: the others are of `make test-frameworks`."""
ALONE = """
import importlib, re, sys, tomllib
from importlib.metadata import packages_distributions, requires
from packaging.requirements import Requirement

part, extra, project = sys.argv[1:]


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def named(name):
    return re.sub("[-_.]+", "-", name).lower()


extras = tomllib.loads(project)["project"]["optional-dependencies"]
core = tomllib.loads(project)["project"]["dependencies"]
brought, later = {("toolcrib", "")}, [(line, "") for line in [*core, *extras[extra]]]
while later:
    line, of = later.pop()
    required = Requirement(line)
    if required.marker is not None and not required.marker.evaluate({"extra": of}):
        continue
    for one in {(named(required.name), extra) for extra in ["", *required.extras]} - brought:
        brought.add(one)
        later += [(line, one[1]) for line in (extras[one[1]] if one[0] == "toolcrib" else requires(one[0])) or ()]
names = {name for name, _ in brought}
absent = {module for module, dists in packages_distributions().items() if not names.intersection(map(named, dists))}
absent -= {name.partition(".")[0] for name in sys.modules}
sys.meta_path.insert(0, Absent())
module = importlib.import_module(part)
for name in module.__all__:
    getattr(module, name)
print(len(absent))
"""
COMMAND = f"""{WITHOUT}
from toolcrib.cli import main
sys.argv[0] = "toolcrib"
main()
"""


def test_each_public_name_is_there_or_names_the_extra_that_it_needs() -> None:
    names = re.findall(r"^(toolcrib(?:\.[a-z_]\w*)*\.\w+)(?=[ (].*# )", RECORD.read_text("utf-8"), re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", NAMES], input="\n".join(names), capture_output=True, text=True, check=True
    )

    assert len(names) > 500
    assert done.stdout == ""


def test_without_any_extra_each_room_can_be_imported_by_a_star_and_listed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS], input="\n".join(public_names()), capture_output=True, text=True, check=True
    )
    listed = {name: set(names) for name, *names in map(str.split, done.stdout.splitlines())}

    assert "MemoryApprovalStore" in listed["toolcrib.approvals"]
    assert "PostgresApprovalStore" not in listed["toolcrib.approvals"]
    assert ("code" in listed["toolcrib"], "console" in listed["toolcrib"]) == (True, False)
    assert len(listed) > 25
    assert len(listed) == len(done.stdout.splitlines())


@pytest.mark.parametrize("without", [WITHOUT, BARE], ids=["without one package of each", "without any"])
def test_each_part_names_its_extra(without: str) -> None:
    done = subprocess.run([sys.executable, "-c", without + IMPORT], capture_output=True, text=True, check=True)

    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == [
        f"pip install 'toolcrib[{extra}]'" for extra in PARTS.values()
    ]


@pytest.mark.parametrize("part", [part for part, extra in PARTS.items() if extra in BROUGHT])
def test_each_part_needs_no_more_than_its_extra_brings(part: str) -> None:
    command = [sys.executable, "-c", ALONE, part, PARTS[part], PROJECT.read_text("utf-8")]
    done = subprocess.run(command, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 50


def test_the_live_view_names_its_extra() -> None:
    code = f"{WITHOUT}\nsys.modules['typer'] = None\nfrom toolcrib.cli import LiveView"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert "`LiveView` needs an optional dependency. Install it with: pip install 'toolcrib[cli]'" in done.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["serve", "examples/shop/tools.py"], "the Model Context Protocol needs"),
        (["console"], "the console needs"),
        (["workers", "list"], "durable work needs"),
        (["approvals", "list", "--database", "postgresql://localhost/x"], "a Postgres database needs"),
    ],
)
def test_a_command_without_its_extra_ends_with_one_sentence(command: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, "-c", COMMAND, *command], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_a_server_with_tokens_says_which_extra_checks_them() -> None:
    code = f"import sys\nsys.modules['jwt'] = None\n{COMMAND.removeprefix(WITHOUT)}"
    command = ["serve", "examples/shop/tools.py", "--http", "--token", "ann=0123456789abcdef"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stderr.startswith("checking tokens of an authorization server needs an optional dependency")
    assert done.stderr.endswith("pip install 'toolcrib[mcp]'\n")


def test_an_error_about_a_module_of_no_extra_passes_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'absent'"), Extra("a feature", "mcp", ("mcp",)):
        importlib.import_module("absent")


def test_a_part_of_a_package_that_is_too_old_counts_as_missing() -> None:
    with pytest.raises(MissingExtraError, match=r"toolcrib\[mcp\]"), Extra("a feature", "mcp", ("mcp",)):
        importlib.import_module("mcp.absent")
