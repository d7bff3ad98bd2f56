"""Adaptive forwarding, measured: every shape and mode, and results that do not depend on the
machine."""

from __future__ import annotations

from tidings.routing.forwarding.ways import Mode
from tidings.studies.network.route_modes import measure_modes, shapes


def test_rows() -> None:
    rows = {(row.shape, row.mode): row for row in measure_modes(rounds=1)}
    assert set(rows) == {(shape, mode.value) for shape in shapes() for mode in Mode}
    for shape in shapes():
        assert rows[shape, "labels"].ratio == 1
        assert rows[shape, "labels"].bytes_out <= rows[shape, "lists"].bytes_out
    alone = [rows["one alone", mode.value] for mode in Mode]
    assert all(row.ratio > 0 and row.microseconds > 0 for row in alone)
