"""`toolcrib new`: a project that runs at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolcrib.cli._app import app

FILES = ["README.md", "main.py", "policy.toml", "test_tools.py", "tools.py"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new project."""
    folder = tmp_path / "deep" / "shop"
    made = CliRunner().invoke(app, ["new", str(folder)])
    assert made.exit_code == 0, made.output
    return folder


def run(folder: Path, *command: str, said: str = "") -> str:
    """Return what a Python command prints in the project, without a key of any provider."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, input=said, capture_output=True, text=True, env=kept, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_has_tools_a_session_a_policy_and_tests(project: Path) -> None:
    assert sorted(path.name for path in project.iterdir()) == FILES
    assert (project / "README.md").read_text("utf-8").startswith("# shop\n")


@pytest.mark.parametrize(
    ("answer", "shown"), [("y\n", "129.0 euros go back to ann"), ("n\n", "not this time"), ("", "not this time")]
)
def test_its_session_asks_the_person_at_the_terminal(project: Path, answer: str, shown: str) -> None:
    printed = run(project, "main.py", said=answer)

    assert "refund needs approval" in printed
    assert ("129.0 euros go back to ann" in printed) is (answer == "y\n")
    assert shown in printed


def test_its_session_is_shown_as_a_person_reads_it(project: Path) -> None:
    printed = run(project, "main.py", said="y\n")

    assert printed.partition("[y/N] ")[2].splitlines() == [
        "user: Order 1001 came broken. Please refund 129.00 euros.",
        'call: find_order {"number": "1001"}',
        'tool: {"number": "1001", "customer": "ann@example.org", "total": 129.0, "note": "The lamp came broken."}',
        'call: refund {"number": "1001", "amount": 129.0}',
        "tool: 129.0 euros go back to ann@example.org",
        "assistant: That is all I can do for order 1001.",
    ]


def test_its_tests_pass(project: Path) -> None:
    assert "6 passed" in run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_its_tools_are_called_from_the_command_line(project: Path) -> None:
    printed = run(project, "-m", "toolcrib", "call", "tools.py", "find_order", '{"number": "1001"}')

    assert "ann@example.org" in printed


@pytest.mark.systems
@pytest.mark.timeout(1200)  # mypy reads every library anew: minutes on a busy machine
def test_its_code_is_formatted_and_typed(project: Path) -> None:
    run(project, "-m", "ruff", "check", "--isolated", "--line-length", "120", "--extend-select", "I", ".")
    run(project, "-m", "ruff", "format", "--isolated", "--line-length", "120", "--check", ".")
    run(project, "-m", "mypy", "--strict", "--cache-dir", os.devnull, ".")


def test_nothing_of_the_user_s_is_written_over(project: Path) -> None:
    again = CliRunner(env={"COLUMNS": "500"}).invoke(app, ["new", str(project)])
    on_file = CliRunner(env={"COLUMNS": "500"}).invoke(app, ["new", str(project / "main.py")])

    assert (again.exit_code, on_file.exit_code) == (2, 2)
    assert "has files already" in again.output
    assert "is a file" in on_file.output
    assert sorted(path.name for path in project.iterdir()) == FILES
