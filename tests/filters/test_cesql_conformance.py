"""CloudEvents SQL against the conformance tests of the specification, all of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.filters.conformance import cases, folder

from tidings import FilterError, parse
from tidings.filters.dialects.cesql.machine import run
from tidings.filters.dialects.cesql.parser import read

CASES = list(cases("cesql_tck"))
EVENT = {"specversion": "1.0", "id": "1", "source": "/here", "type": "com.example"}

if folder("cesql_tck") is None:
    pytest.skip(
        "no conformance tests of CloudEvents SQL here; TIDINGS_CONFORMANCE names their folder",
        allow_module_level=True,
    )


def test_all_of_them_were_read() -> None:
    assert len(CASES) == 275


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_conformance(name: str, case: dict[str, Any]) -> None:
    text = case["expression"]
    event: dict[str, Any] = case.get("event") or {**EVENT, **case.get("eventOverrides", {})}
    if case.get("error") == "parse":
        with pytest.raises(FilterError):
            read(text, lenient=True)
        return
    value, error = run(read(text, lenient=True), event)
    assert error == case.get("error")
    assert value == case["result"]
    assert type(value) is type(case["result"])
    if isinstance(value, bool) and error != "missingFunction":
        passes = value and error is None
        assert parse({"sql": text}, "cloudevents").matches(event) is passes
        assert parse(text, "cesql").matches(event) is passes
        assert parse(text, "cesql").form.holds(event) is passes
