"""Without the extra `models`: the message names it."""

import subprocess
import sys


def said(code: str) -> str:
    """Return what a program prints where Pydantic AI is not installed."""
    hidden = f"import sys; sys.modules['pydantic_ai'] = None\n{code}"
    return subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=True).stdout


def test_a_missing_extra_is_named() -> None:
    code = "try:\n    import toolcrib.adapters.pydantic_ai\nexcept ImportError as error:\n    print(error)"

    assert "pip install 'toolcrib[models]'" in said(code)
