"""Ontologies in files."""

from __future__ import annotations

from pathlib import Path

from tidings.filters.values import Ontology, read_ontology
from tidings.model import AttributesError, EnvironmentProblem

EXTENSIONS = {
    ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv", ".ttl": "turtle",
}  # fmt: skip


def load_ontology(path: str | Path) -> Ontology:
    """Load an ontology from a .json, .yaml, .csv or .ttl file. Errors name the file."""
    path = Path(path)
    form = EXTENSIONS.get(path.suffix.lower())
    if form is None:
        known = ", ".join(EXTENSIONS)
        raise AttributesError(
            f"{path}: found the extension '{path.suffix}', expected one of {known}"
        )
    try:
        return read_ontology(path.read_bytes().decode("utf-8-sig"), form)
    except UnicodeDecodeError as bad:
        raise AttributesError(
            f"{path}: found the byte 0x{bad.object[bad.start]:02x} at {bad.start}, "
            "expected text in UTF-8"
        ) from None
    except OSError as problem:
        raise EnvironmentProblem(f"{path}: the file can't be read: {problem.strerror}") from None
    except AttributesError as problem:
        raise AttributesError(f"{path}: {problem}") from None
