from __future__ import annotations

import subprocess
import sys

from toolcrib.code.sandboxes import MontySandbox, Sandbox, default_sandbox


def test_the_process_has_one_sandbox_of_its_own() -> None:
    sandbox: Sandbox = default_sandbox()

    assert isinstance(sandbox, MontySandbox)
    assert default_sandbox() is sandbox


WITHOUT = """
import sys
sys.modules["pydantic_monty"] = None  # as if it were not installed
import toolcrib.code
from toolcrib.code import Toolkit
toolkit = Toolkit([])
print(len(toolkit.prompt()) > 0)
try: toolkit.execute("1")
except RuntimeError as error: print(error)
try: toolcrib.code.sandboxes.MontySandbox
except ImportError as error: print(error)
"""


def test_without_an_engine_it_is_said_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=25)

    told, unavailable, missing = done.stdout.splitlines()
    assert told == "True"
    assert unavailable.endswith("Install Monty: pip install 'toolcrib[monty]'")
    assert missing == "MontySandbox needs an optional dependency. Install it with: pip install 'toolcrib[monty]'"
