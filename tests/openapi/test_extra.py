"""Without the extra `openapi`: the message names it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["httpx2", "yaml"])
def test_a_missing_extra_is_named(package: str) -> None:
    code = (
        f"import sys; sys.modules['{package}'] = None\n"
        "try:\n    import toolcrib.openapi\nexcept ImportError as error:\n    print(error)"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "pip install 'toolcrib[openapi]'" in said
