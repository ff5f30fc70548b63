"""A yes that was given before a call began, and is handed over again after its process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

FRAMEWORKS = {
    "openai_agents": ("named", "plain"),
    "langchain": ("named", "plain"),
    "pydantic_ai": ("named", "plain"),
    "google_adk": ("named", "plain"),
    "agent_framework": ("named", "plain"),
    "claude_agent_sdk": ("named",),
    "smolagents": ("named",),
}
"""The ways to say yes that each framework has: `plain` names no request."""


@pytest.mark.parametrize(("framework", "yes"), [(name, yes) for name, ways in FRAMEWORKS.items() for yes in ways])
def test_a_yes_from_before_is_no_answer_about_a_call_in_doubt(framework: str, yes: str, tmp_path: Path) -> None:
    taken(framework, yes, tmp_path, ended=-signal.SIGKILL)

    asked = taken(framework, "resume", tmp_path)
    settled = taken(framework, "settle", tmp_path)

    assert asked.startswith("['ask_")
    assert settled.startswith(asked)
    assert "booked by hand" in settled
    assert (tmp_path / "booked").read_text() == "Oslo\n"


def taken(framework: str, step: str, folder: Path, *, ended: int = 0) -> str:
    """Return what a process prints that takes a step."""
    command = [sys.executable, "-m", "tests.frameworks.killed", framework, step, str(folder)]
    environment = {**os.environ, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == ended, done.stderr
    return done.stdout
