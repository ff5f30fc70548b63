"""Serving without an extra: starlette and uvicorn are loaded by `serving.http` alone."""

import subprocess
import sys

PROBE = """
import sys
import toolcrib.serving
print(sorted({"mcp", "starlette", "uvicorn"} & sys.modules.keys()))
"""


def test_the_state_of_a_server_needs_no_extra() -> None:
    found = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True).stdout

    assert found == "[]\n"
