from __future__ import annotations

import sys

import pytest

from toolcrib.code import Toolkit
from toolcrib.sandbox import HasDialect, MontySandbox, ProcessSandbox
from toolcrib.sandbox._worker_sandbox import worker_dialect


def test_the_modules_are_those_of_this_python() -> None:
    modules = worker_dialect().modules or frozenset()

    assert {"json", "os.path", "xml.etree.ElementTree", "statistics"} <= modules
    assert not {"socket", "subprocess", "ctypes", "annotationlib"} & modules
    assert "_strptime" in worker_dialect().unlisted


@pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
async def test_a_worker_has_what_is_said_and_nothing_more() -> None:
    dialect = worker_dialect()
    code = "\n".join(["import builtins", *(f"import {name}" for name in sorted(dialect.modules or ())), "parallel"])

    with ProcessSandbox() as sandbox:
        kit = Toolkit([], sandbox=sandbox)
        result = await kit.execute_async(f"{code}\nprint('all there')")

    assert (result.error, result.output) == (None, "all there\n")
    assert "`parallel(" in kit.prompt()


def test_every_engine_says_what_it_has(sandbox: MontySandbox) -> None:
    assert isinstance(sandbox, HasDialect)
    assert sandbox.dialect.streams is False
    assert "statistics" not in (sandbox.dialect.modules or ())
