"""Telemetry without its extra, and the rest of the package without telemetry."""

import subprocess
import sys


def told(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_without_opentelemetry_the_error_names_the_extra() -> None:
    done = told("import sys; sys.modules['opentelemetry.trace'] = None; import toolcrib.telemetry")

    assert "MissingExtraError: telemetry needs an optional dependency" in done.stderr
    assert "pip install 'toolcrib[otel]'" in done.stderr


def test_nothing_of_opentelemetry_is_loaded_until_it_is_asked_for() -> None:
    done = told(
        "import sys; from toolcrib import Agent, Pipeline, Toolkit; print([m for m in sys.modules if 'telemetry' in m])"
    )

    assert done.stdout == "[]\n"


def test_only_the_api_is_needed() -> None:
    done = told(
        "import sys; sys.modules['opentelemetry.sdk'] = None; from toolcrib.telemetry import OtelSink; OtelSink()"
    )

    assert done.returncode == 0, done.stderr
