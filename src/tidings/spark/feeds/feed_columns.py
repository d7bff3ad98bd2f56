"""The columns of feeds. The columns are in a separate module because feeds.py needs PySpark, and a
pipeline file is checked against the columns without PySpark.
"""

from __future__ import annotations

FEED_COLUMNS = {
    "feed": "string", "id": "string", "link": "string", "title": "string", "summary": "string",
    "author": "string", "categories": "array<string>", "published": "timestamp",
    "updated": "timestamp",
}  # fmt: skip
"""The names of the columns, with their Spark types."""
