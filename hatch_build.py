"""What a package index shows: the README with links that work there, and the links of the project.

A checkout does not know where it is published. A build on a forge does (``GITHUB_REPOSITORY``), and any other one
is told by ``ONEOF_REPOSITORY=https:...``: links of the README then lead to the files of this version. Without it
they become plain text, since a relative link leads nowhere on an index.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)\n*")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


def repository() -> str:
    """Return the address of the repository, or nothing where it is not known."""
    name = os.environ.get("GITHUB_REPOSITORY", "")
    known = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}" if name else ""
    return os.environ.get("ONEOF_REPOSITORY", known).rstrip("/")


def readme(text: str, home: str, version: str) -> str:
    """Return the README with whole addresses, or without what has none."""
    if not home:
        return LINK.sub(r"\1", IMAGE.sub("", text))
    text = IMAGE.sub(lambda found: found[0].replace(f"]({found[1]}", f"]({home}/raw/v{version}/{found[1]}"), text)
    return LINK.sub(rf"[\1]({home}/blob/v{version}/\2)", text)


class CustomMetadataHook(MetadataHookInterface):  # type: ignore[misc]
    """The metadata that a build completes."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README and the links."""
        home, version = repository(), metadata["version"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text, home, version)}
        metadata["urls"] = (
            {
                "Source": home,
                "Issues": f"{home}/issues",
                "Documentation": f"{home}/blob/v{version}/docs/index.md",
                "Changelog": f"{home}/blob/v{version}/CHANGELOG.md",
            }
            if home
            else {}
        )
