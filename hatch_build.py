"""Writes into the package's metadata what depends on where the project is: its addresses, and links that lead there.

The project has no public address yet. A release names the repository's in TOOLCRIB_REPOSITORY, such as
`https://host/owner/name`, and the site's in TOOLCRIB_SITE. Where they are not set, the metadata names no address, and
the README's links between files become plain text, as they would lead nowhere.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<target>[^):#]+)\)")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>(?![a-z]+:|#)[^)]+)\)")


class Metadata(MetadataHookInterface):
    """Sets the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields in `metadata`, the project's table."""
        repository = os.environ.get("TOOLCRIB_REPOSITORY", "").rstrip("/")
        tag = os.environ.get("TOOLCRIB_TAG") or f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, repository, tag)}
        metadata["urls"] = urls(repository, os.environ.get("TOOLCRIB_SITE", "").rstrip("/"), tag)


def urls(repository: str, site: str, tag: str) -> dict[str, str]:
    """Return the project's addresses, by their well-known labels."""
    found = {"Documentation": site} if site else {}
    if repository:
        found |= {
            "Source": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Documentation": site or f"{repository}/tree/{tag}/docs",
        }
    return found


def absolute(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links to files lead to `repository` at `tag`; without one they are plain text."""
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else _absolute(part, repository, tag) for part in parts)


def _absolute(text: str, repository: str, tag: str) -> str:
    if not repository:
        return LINK.sub(r"\g<text>", PICTURE.sub("", text))
    shown = PICTURE.sub(rf"![\g<alt>]({repository}/raw/{tag}/\g<target>)", text)
    return LINK.sub(rf"[\g<text>]({repository}/blob/{tag}/\g<target>)", shown)
