"""Keys and strings of TOML files, as text."""

from __future__ import annotations

import json
import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")  # a key that needs no quotes


def toml_key(name: str) -> str:
    """A key, in quotes if it needs them."""
    return name if _BARE.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """A TOML string: the same as in JSON, except that DEL must be escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
