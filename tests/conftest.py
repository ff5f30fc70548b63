"""What every test gets: empty registries, and property tests that do not watch the clock."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from toolcrib.registry import registry_scope

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def own_registries() -> Iterator[None]:
    """Set the process's registries aside, so that a test finds in them only what it made itself."""
    with registry_scope():
        yield
