"""Golden files: each stored form in each version that was ever written, `FORM-VERSION.json`.

A file is never changed. Who changes a form raises its version in `FORM_VERSIONS`, and runs the tests once with
`TOOLCRIB_WRITE_FORMS=1`, which writes the file of a version that has none.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from toolcrib.calls import FORM_VERSIONS

FOLDER = Path(__file__).parent
_ID = re.compile(r"[0-9a-f-]{16,}")


def golden_files() -> list[tuple[str, int]]:
    """Return the forms and versions of which there is a file."""
    names = (path.stem.rpartition("-") for path in sorted(FOLDER.glob("*.json")))
    return [(form, int(version)) for form, _, version in names]


def golden(form: str, version: int | None = None) -> Any:
    """Return a form as it was written in a version, the present one when None."""
    return json.loads(_path(form, version or FORM_VERSIONS[form]).read_text())


def require_golden(form: str, data: Any) -> None:
    """Require that a form as it is written now is in the shape of its golden file."""
    version, data = FORM_VERSIONS[form], json.loads(json.dumps(data))
    path = _path(form, version)
    if not path.exists() and "TOOLCRIB_WRITE_FORMS" in os.environ:
        path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    assert path.exists(), f"{path.name} is missing: run this test with TOOLCRIB_WRITE_FORMS=1, and add the file"
    assert shape(data) == shape(golden(form)), (
        f"the stored form {form} has changed: workers of the last release cannot read it. Raise its version in "
        "toolcrib.calls.FORM_VERSIONS, read the versions before with defaults, and add its golden file"
    )


def shape(value: Any) -> Any:
    """Return what of JSON shapes is the form: the names of fields, and the kinds of their values."""
    if isinstance(value, dict):
        return {_ID.sub("ID", name): shape(part) for name, part in sorted(value.items())}
    if isinstance(value, list):
        return [json.loads(text) for text in sorted({json.dumps(shape(part)) for part in value})]
    return "number" if type(value) in (int, float) else type(value).__name__


def _path(form: str, version: int) -> Path:
    return FOLDER / f"{form}-{version}.json"
