"""The runner of the examples notices what a page gets wrong, and names the line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docs.pages import Page, parse_blocks, read_docstrings
from tests.docs.running import PageError, run_page

AWAITS = """
```python
import asyncio
text = "shown"
```

Then:

```python
await asyncio.sleep(0)
print(text)
```

```output
shown
```
"""

HIDDEN = """
<!-- setup
answer = 42
-->

```python
print(f"the answer is {answer}, after {0.25} ms")
```

```output
the answer is 42, after ... ms
```
"""

FILES = """
```json file=prices.json
{"bolt": 3}
```

```python
import json
import os
from pathlib import Path

print(json.loads(Path("prices.json").read_text()))
```

```output
...
{'bolt': 3}
```
"""


def page(text: str, path: str = "docs/page.md") -> Page:
    return Page(Path(path), 1, tuple(parse_blocks(text)))


@pytest.mark.parametrize("text", [AWAITS, HIDDEN, FILES])
def test_a_right_page_passes(text: str, tmp_path: Path) -> None:
    run_page(page(text), tmp_path)


def test_a_block_that_stands_for_the_readers_code_is_compiled_and_not_run(tmp_path: Path) -> None:
    run_page(page("```python fixture\nclient = openai.OpenAI()\n```\n"), tmp_path)

    with pytest.raises(PageError, match=r"page\.md:2: SyntaxError"):
        run_page(page("```python fixture\nclient = = 1\n```\n"), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# A\n\n```python\nx = 1\nx.gone\n```\n", r"page\.md:5: AttributeError"),
        ("```python\nawait missing()\n```\n", r"page\.md:2: NameError"),
        ("```python\nraise SystemExit(2)\n```\n", r"page\.md:2: SystemExit: 2"),
        ("```python\nprint(1)\n```\n```output\n2\n```\n", r"page\.md:5: the page says\n2\n\nand this is shown\n1"),
        ("```python\nprint('a\\nb')\n```\n```output\na\n```\n", r"page\.md:5: the page says"),
        ("```text\n1\n```\n```output\n1\n```\n", r"page\.md:5: this output does not follow a block that was run"),
        ("```py\nx = 1\n```\n", r"page\.md:1: write `python` for `py`"),
        ("```python notest\nx = 1\n```\n", r"page\.md:1: unknown option `notest`"),
    ],
)
def test_a_wrong_page_fails_with_file_and_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=message):
        run_page(page(text), tmp_path)


def test_a_block_that_is_not_closed_is_named() -> None:
    with pytest.raises(ValueError, match="opens on line 3 is not closed"):
        page("# A\n\n```python\nx = 1\n")


def test_commands_run_with_the_environments_own_programs(tmp_path: Path, on_path: Path) -> None:
    (on_path / "toolcrib").write_text('#!/bin/sh\necho "ran $*"\nexit 3\n')
    (on_path / "toolcrib").chmod(0o755)

    commands = "$ pip install nothing\n$ toolcrib list \\\n    shop.py\nran list ...\n"

    run_page(page(f"```console exit=3\n{commands}```\n"), tmp_path)
    with pytest.raises(PageError, match=r"page\.md:2: `toolcrib list` exits with 3, not 0:\nran list"):
        run_page(page("```console\n$ toolcrib list\n```\n"), tmp_path)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    return folder


def test_docstrings_are_pages_with_the_lines_of_their_file(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('x = 1\n"""About x.\n\n```python\nprint(x)\n```\n"""\n\n\ndef f():\n    """No example."""\n')

    (found,) = read_docstrings(module)

    assert (found.line, found.blocks[0].line, found.blocks[0].text) == (2, 5, "print(x)\n")


def test_what_a_page_sets_in_the_environment_is_gone_after_it(tmp_path: Path) -> None:
    run_page(page("```python\nimport os\n\nos.environ['TOOLCRIB_PAGE'] = 'set'\n```\n"), tmp_path)

    assert "TOOLCRIB_PAGE" not in os.environ
