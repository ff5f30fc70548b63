"""The public names and their signatures are a recorded file: a change to them shows in the diff."""

from __future__ import annotations

import difflib

import pytest

from tests.public_api import RECORD, exports, public_modules, public_names, render, without_reason
from toolcrib.errors import MissingExtraError

NAMES = public_names()


@pytest.mark.processes
def test_public_names_and_signatures_are_as_recorded() -> None:
    recorded = RECORD.read_text(encoding="utf-8").splitlines()

    now = render().splitlines()

    changes = "\n".join(difflib.unified_diff(recorded, now, "recorded", "now", lineterm="", n=0))
    if changes:
        pytest.fail(f"The public names changed. If that is meant, run `make api`.\n{changes}", pytrace=False)


def test_every_public_name_has_a_reason() -> None:
    assert without_reason() == []


def test_each_public_module_is_tried() -> None:
    assert [*public_modules()] == NAMES


@pytest.mark.parametrize("path", NAMES)
def test_every_public_name_can_be_imported(path: str) -> None:
    module = pytest.importorskip(path, exc_type=MissingExtraError)

    missing = [name for name in exports(public_modules()[path]) if not hasattr(module, name)]

    assert missing == []


def test_every_public_module_says_what_is_public() -> None:
    silent = [path for path, module in public_modules().items() if module.exports is None]

    assert silent == []


@pytest.mark.parametrize("path", NAMES)
def test_every_public_name_has_a_docstring_for_the_reference(path: str) -> None:
    module = public_modules()[path]
    members = {name: module.members[name] for name in exports(module)}

    silent = [name for name, member in members.items() if not member.has_docstring]

    assert module.has_docstring
    assert silent == []
