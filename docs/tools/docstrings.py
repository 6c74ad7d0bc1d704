"""Docstrings for the site: what Sphinx would read as a role or a literal block, as Markdown has it."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|class|meth|mod):`~?([\w.]+)`")


class Markdown(griffe.Extension):
    """Rewrites each docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Turn roles into code, and the two colons before an indented block into one."""
        if obj.docstring:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"::$", ":", text, flags=re.MULTILINE)
