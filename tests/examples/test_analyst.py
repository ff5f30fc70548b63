"""The analyst's chart is a picture in the transcript, and the database says what the program left."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from toolcrib.record import ActivityFilter, sqlite_events

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes need Linux")
SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "analyst" / "analyst.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the example, and return its folder."""
    folder = tmp_path_factory.mktemp("analyst")
    subprocess.run([sys.executable, str(SCRIPT), str(folder)], check=True, capture_output=True)
    return folder


def _colours(png: bytes) -> int:
    """Return how many colours a picture has."""
    pixels: Any = matplotlib.image.imread(io.BytesIO(png), format="png")
    return len({tuple(pixel) for row in pixels.tolist() for pixel in row})


def test_the_files_that_the_program_left_are_written_down(folder: Path) -> None:
    assert _colours((folder / "figure-1.png").read_bytes()) > 4
    assert (folder / "regions.csv").read_text().startswith("region,sold,target\neast,369")


def test_the_chart_is_a_picture_in_the_transcript(folder: Path) -> None:
    transcript = json.loads((folder / "transcript.json").read_text())
    [result] = transcript[2]["content"]

    said, shown, files = result["content"]

    assert "50000 sales" in said["text"]
    assert files["text"] == "[text/csv: regions.csv, 145 bytes]"
    assert shown["source"]["media_type"] == "image/png"
    assert base64.b64decode(shown["source"]["data"]) == (folder / "figure-1.png").read_bytes()


def test_the_console_finds_the_picture(folder: Path) -> None:
    log = sqlite_events(folder / "events.db")
    [program] = log.activities(ActivityFilter(sources=("program",)))
    closed = log.latest(program, "closed")
    assert closed is not None

    left = closed.data["data"]["artifacts"]

    assert base64.b64decode(left["figure-1.png"]["data"]) == (folder / "figure-1.png").read_bytes()
    assert left["regions.csv"] == {"kind": "media", "mime_type": "text/csv", "size": 145, "name": "regions.csv"}
