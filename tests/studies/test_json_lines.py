"""Events written as JSON lines and read back."""

from __future__ import annotations

import pytest

from tidings.studies.workloads.json_lines import parse_lines, schema_of_lines
from tidings.studies.workloads.workloads import RECIPES, make_workload


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_lines_are_parsed_to_the_batch_they_were_written_from(name: str) -> None:
    workload = make_workload(name, 1, 300)
    text = b"\n".join(workload.event_lines())
    (whole,) = workload.batches()
    assert parse_lines(text, whole.schema).to_pylist() == whole.to_pylist()
    assert schema_of_lines(text).equals(whole.schema)
