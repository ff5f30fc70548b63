"""Without the extra `mcp`: the message names it."""

import subprocess
import sys


def test_a_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "try:\n    import toolcrib.adapters.mcp_client\nexcept ImportError as error:\n    print(error)"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "pip install 'toolcrib[mcp]'" in said
