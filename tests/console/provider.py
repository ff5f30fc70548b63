"""An OpenID provider of npm, which runs for a console of the tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.npm.programs import MODULES, node
from toolcrib.console.openid import OpenIDProvider

PEOPLE: dict[str, dict[str, Any]] = {
    "bob": {"email": "bob@example.org", "email_verified": True, "groups": ["finance", "staff"]},
    "sam": {"email": "sam@example.org", "email_verified": True, "groups": ["staff"]},
    "vic": {"email": "vic@example.org", "email_verified": True, "groups": ["auditors"]},
    "eve": {"email": "bob@example.org", "email_verified": False, "groups": ["finance"]},
    "adm": {"email": "adm@example.org", "email_verified": True, "groups": ["admins"]},
    "out": {"email": "out@example.org", "email_verified": True, "groups": []},
}
SECRET = "a-secret-of-the-console-for-its-provider"


@contextmanager
def provider_of(port: int, back: str) -> Generator[OpenIDProvider]:
    """Run the provider for a console that is reached at an address."""
    ours = {"client_id": "console", "client_secret": SECRET, "redirect_uris": [back]}
    given = json.dumps({"people": PEOPLE, "clients": [ours, {**ours, "client_id": "other"}]})
    script, package = Path(__file__).with_name("provider.mjs"), MODULES / "oidc-provider/lib/index.js"
    command = [node(), str(script), str(package), str(port), given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield OpenIDProvider(f"http://127.0.0.1:{port}", "console", SECRET, id_claim="email")
        finally:
            process.kill()
