"""A Restate server for the tests of its adapter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.npm.programs import NotInstalledError
from tests.npm.restate import RestateServer, restate_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestateServer]:
    try:
        with restate_server(tmp_path_factory.mktemp("restate")) as started:
            yield started
    except NotInstalledError as error:
        pytest.skip(str(error))
