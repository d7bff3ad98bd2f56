"""The columns of feeds, in a module of their own: a pipeline file is checked against them without
PySpark, which feeds.py needs.
"""

from __future__ import annotations

FEED_COLUMNS = {
    "feed": "string", "id": "string", "link": "string", "title": "string", "summary": "string",
    "author": "string", "categories": "array<string>", "published": "timestamp",
    "updated": "timestamp",
}  # fmt: skip
"""Names of columns, with their types in Spark."""
