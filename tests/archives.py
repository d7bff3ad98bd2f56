"""Files in older formats, which are kept in archives."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as file:
        # early versions of Python 3.11 have no filters, and later ones warn where none is named
        file.extraction_filter = getattr(tarfile, "data_filter", None)
        file.extractall(folder)
