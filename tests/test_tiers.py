"""What a run of one tier collects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiers import TIERS, may_hold, tier_of_file

_TESTS = Path(__file__).parent
_MARK = "@pytest.mark.{}\ndef test_it() -> None: ...\n"
_PLAIN = "def test_it() -> None: ...\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of tests that is taken for ours."""
    monkeypatch.setattr("tests.tiers._ROOT", tmp_path)
    (tmp_path / "tests/room").mkdir(parents=True)
    return tmp_path / "tests"


def tiers_of(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [tier for tier in TIERS if may_hold(path, tier)]


def test_each_file_is_collected_for_its_own_tier_and_for_none_before() -> None:
    for path in _TESTS.rglob("test_*.py"):
        own = TIERS.index(tier_of_file(path))
        assert [may_hold(path, tier) for tier in TIERS[: own + 1]] == [False] * own + [True]


@pytest.mark.parametrize(
    ("text", "later"),
    [
        (_PLAIN, []),
        (_MARK.format("processes"), ["processes"]),
        (_MARK.format("systems"), ["systems"]),
        ("def test_it(postgres: object) -> None: ...\n", ["systems"]),
        ("from tests.ways import WAYS\n", ["processes"]),
        ("from tests.room.helper import STORES\n", ["systems"]),
        ("from tests.room import helper\n", ["systems"]),
        ("from tests.room import (\n    other,\n    helper,\n)\n", ["systems"]),
        ("from tests.room import other\n", []),
    ],
)
def test_a_file_of_the_first_tier_is_collected_for_a_later_one_that_it_has_a_sign_of(
    tree: Path, text: str, later: list[str]
) -> None:
    (tree / "room/helper.py").write_text('STORES = ["sqlite", "postgres"]\n')
    assert tiers_of(tree / "room/test_a.py", text) == ["fast", *later]


def test_a_conftest_of_its_folder_is_read_too(tree: Path) -> None:
    (tree / "room/conftest.py").write_text("from tests.room.helper import STORES\n")
    (tree / "room/helper.py").write_text('STORES = ["sqlite", "postgres"]\n')
    assert tiers_of(tree / "room/test_a.py", _PLAIN) == ["fast", "systems"]
