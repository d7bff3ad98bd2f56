"""The diagrams of a matcher on disk: a folder inside the folder of the matcher, mapped when opened.

    manifest.json    the format, the engine that chose the filters, and their number
    NAME.arrow       one file for each array: tests in the order of their ranks, groups, classes,
                     implication edges, gates, slots, and the units of groups
    terms.arrow      text and rank space of each term
    decided.arrow    filters that need no test
    seen.arrow       how many events were seen, by test; passed.arrow: how many of them passed

So a process that opens the matcher need not build diagrams or search for edges.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tidings.files import make_folder
from tidings.filters.canonical import Test
from tidings.filters.dialects import Context
from tidings.filters.values import ValueSet, sets
from tidings.matching.diagrams.diagram_arrays import CompiledDiagrams, DiagramArrays, Members
from tidings.matching.diagrams.measured_tests import Measured, PassCounts, name_counts, no_counts
from tidings.matching.disk.index_files import (
    pack,
    read_array,
    read_arrays,
    read_terms,
    write_array,
    write_arrays,
    write_terms,
)
from tidings.matching.disk.manifest import (
    MANIFEST,
    Manifest,
    SnapshotError,
    need_files,
    read_manifest,
    write_manifest,
)

DIAGRAMS = "diagrams"  # the name of the folder
FORMAT, VERSION = "tidings-diagrams", 2
MEASURED = 2  # earlier versions have no counts of tests


class SavedDiagrams(msgspec.Struct, frozen=True):
    """Diagrams, the engine that chose the filters for them, and the counts of their tests."""

    compiled: CompiledDiagrams
    engine: str
    counts: PassCounts

    def read_measured(self) -> Measured:
        """For each test, how many events were seen and how many passed."""
        return name_counts(self.compiled, self.counts)


def write_diagrams(folder: Path, saved: SavedDiagrams) -> None:
    """Write diagrams to a new folder; the edges of these diagrams must have been found before."""
    compiled = saved.compiled
    make_folder(folder)
    write_arrays(folder, compiled.arrays)
    write_arrays(folder, compiled.members)
    write_terms(folder / "terms.arrow", compiled.terms)
    write_array(folder / "decided.arrow", compiled.decided)
    write_arrays(folder, saved.counts)
    write_manifest(folder, FORMAT, VERSION, filters=len(compiled), engine=saved.engine)


def has_diagrams(matcher: Manifest) -> bool:
    """Whether the folder of a matcher has diagrams."""
    return f"{DIAGRAMS}/{MANIFEST}" in matcher.files


def need_diagram_files(folder: Path) -> Manifest:
    """Check every byte of a folder against its digest, and return the manifest; raise SnapshotError
    on a mismatch."""
    manifest = read_manifest(folder, FORMAT, VERSION, before=1)
    need_files(folder, manifest)
    return manifest


def read_diagrams(folder: Path, context: Context) -> SavedDiagrams:
    manifest = need_diagram_files(folder)
    terms, refused = read_terms(folder / "terms.arrow", context)
    for reason in refused.values():
        raise SnapshotError(
            f"snapshot '{folder}': a term is now refused: {reason}; rebuild the snapshot"
        )
    arrays, members = read_arrays(folder, DiagramArrays), read_arrays(folder, Members)
    decided = read_array(folder / "decided.arrow")
    compiled = CompiledDiagrams(terms, arrays, members, decided, is_linked=True)
    manifest.need(folder, filters=len(compiled))
    counts = no_counts(len(arrays.test_column))
    if manifest.version >= MEASURED:
        counts = read_arrays(folder, PassCounts)
    return SavedDiagrams(compiled, str(manifest.notes.get("engine")), counts)


def pack_measured(measured: Measured) -> bytes:
    """Counts of tests, in a form that another process can use."""
    return pack([(test.term, test.values.cuts, *some) for test, some in measured.items()])


def unpack_measured(data: bytes) -> Measured:
    """Undo `pack_measured`."""
    found: dict[Test, tuple[int, int]] = {}
    for term, cuts, seen, passed in msgspec.msgpack.decode(data) if data else ():
        values = ValueSet(tuple(sets.unpack_cuts([tuple(cut) for cut in cuts])))
        found[Test(term, values)] = seen, passed
    return found
