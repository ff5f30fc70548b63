"""What a release says of itself: versions, addresses, links, and the workflows that make it."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import toolcrib

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HERE = "https://example.org/somebody/toolcrib"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    interface = "hatchling.metadata.plugin.interface"  # the build has it, and this environment has not
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", interface):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    vars(sys.modules[interface])["MetadataHookInterface"] = object
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_version_is_the_one_of_the_distribution() -> None:
    assert toolcrib.__version__ == version("toolcrib") == PROJECT["version"]


def test_extra_of_the_server_brings_what_checks_its_tokens() -> None:
    assert any(line.startswith("pyjwt[crypto]") for line in PROJECT["optional-dependencies"]["mcp"])


def test_links_of_the_readme_lead_to_the_repository_at_the_tag(hook: dict[str, Any]) -> None:
    text = hook["absolute"]((ROOT / "README.md").read_text("utf-8"), HERE, "v9")

    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
    assert [target for target in targets if not target.startswith("https://")] == []
    assert f"{HERE}/raw/v9/docs/pictures/console-program.png" in targets
    assert f"{HERE}/blob/v9/docs/tools.md" in targets


def test_without_an_address_nothing_leads_nowhere(hook: dict[str, Any]) -> None:
    text = hook["absolute"]("![a](b.png) see [the page](docs/tools.md) and [that](https://example.org).", "", "v9")

    assert text == " see the page and [that](https://example.org)."
    assert hook["urls"]("", "", "v9") == {}


def test_code_keeps_its_brackets(hook: dict[str, Any]) -> None:
    block = "```python\nvalue = names[0](docs)\n```"

    assert hook["absolute"](block, HERE, "v9") == block


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_few_rights_and_a_limit_of_time(path: Path) -> None:
    made = yaml.safe_load(path.read_text("utf-8"))

    assert made["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job or job.get("environment") == "release" for job in made["jobs"].values())


def test_pythons_of_the_classifiers_are_those_that_are_tested() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    named = re.findall(r":: (3\.\d+)", "\n".join(PROJECT["classifiers"]))

    assert jobs["elsewhere"]["strategy"]["matrix"]["python"] == named


def test_folders_that_the_workflows_test_are_there() -> None:
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)

    assert [name for name in set(re.findall(r"\btests/[\w/.]+", text)) if not (ROOT / name).exists()] == []


def test_actions_of_workflows_are_pinned_to_a_commit() -> None:
    used = re.findall(r"uses: (\S+)@(.*)", "".join(path.read_text("utf-8") for path in WORKFLOWS))

    loose = {action for action, at in used if not re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", at)}
    assert len(used) > 10
    assert loose == {"pypa/gh-action-pypi-publish"}  # whose page says to follow this branch


def test_what_a_version_changed_is_read_in_minutes() -> None:
    """A merge that takes both sides of the file brings back what was folded."""
    newest = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1]

    assert len(newest.split()) < 2_000, "fold it: what a user gains, changes, and no longer meets"
