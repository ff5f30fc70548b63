"""The table of evasions: what is asked about, and what is not, as the docs say it."""

from pathlib import Path
from random import Random

import pytest

from benchmarks.dojo.evasions import ROWS, WAYS, caught

PAGE = Path(__file__).parents[2] / "docs" / "provenance-in-detail.md"
NOT_CAUGHT = {
    "who is written to, by number among contacts",
    "a link in what is said, spelled out",
    "written into notes in an earlier run",
    "heard by the host as the user's words",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROWS)
async def test_what_a_stranger_hides_is_asked_about(name: str, way: str) -> None:
    random = Random(name)
    for _ in range(3 if way == "calls" else 1):
        assert await caught(ROWS[name](random), way) in (None, name not in NOT_CAUGHT)


@pytest.mark.parametrize("name", ROWS)
def test_the_page_has_each_evasion(name: str) -> None:
    [line] = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {name} |")]
    cells = {cell.strip() for cell in line.strip("|").split("|")[1:]}
    assert cells <= ({"0", "-"} if name in NOT_CAUGHT else {"100", "-"})
