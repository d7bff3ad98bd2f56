"""Contracts of import-linter that are our own. pyproject.toml names them, `make check` runs them.

The rule for doors:

    tidings/filters/__init__.py          a door, for users and for other rooms
    tidings/filters/values/__init__.py   a door, for other rooms
    tidings/filters/values/like.py       no door: only tidings.filters imports it

A room is a folder right under `tidings`. Other rooms enter it through a folder: they import what
its `__init__`, or that of a folder inside, exports. So a room's files can be moved and renamed
without a change anywhere else.
"""

from __future__ import annotations

import grimp
from importlinter import Contract, ContractCheck, fields, output


class DoorsContract(Contract):  # type: ignore[misc]  # it ships no types
    """Rooms are entered through folders. `namespaces` lists modules that are imported whole, for
    their names to be read with the module's: `messages.Publish`, `sets.union`."""

    type_name = "doors"

    namespaces = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        found = sorted(
            (importer, imported)
            for imported in graph.modules - {*self.namespaces}
            if imported.count(".") >= 2 and not graph.find_children(imported)
            for importer in graph.find_modules_that_directly_import(imported)
            if _room(importer) != _room(imported)
        )
        unknown = sorted({*self.namespaces} - graph.modules)
        found += [("pyproject.toml", f"{one}, which is not there") for one in unknown]
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["found"]:
            folder = imported.rpartition(".")[0]
            output.print_error(f"{importer} imports {imported}; expected an import from {folder}")


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])
