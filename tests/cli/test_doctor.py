"""`tidings doctor`: what it finds, and that it finds nothing in a healthy file."""

from __future__ import annotations

import time

import pytest
from tests.cli.conftest import Run, Write

SICK = """id,filter,subscriber
1,origin = 'EWR' AND delay > 60,ana
2,origin = 'EWR' AND delay > 90,ana
3,NOT (delay <= 60) AND origin = 'EWR',ana
4,origin = 'EWR' AND delay > 60,ben
5,x > 5 AND x < 3,ben
6,name RLIKE 'a+',cy
7,x IS NULL OR x IS NOT NULL,cy
"""


def kinds(run: Run, path: str) -> dict[object, tuple[str, object]]:
    [record] = run("doctor", path, "--json").records
    return {
        found["id"]: (found["kind"], found["other"] and found["other"]["id"])
        for found in record["findings"]
    }


def test_programs_get_stable_fields(run: Run, write: Write) -> None:
    result = run("doctor", write("f.csv", SICK), "--json")
    assert result.code == 1
    [record] = result.records
    assert record["filters"] == 7
    assert record["subscribers"] == 3
    assert record["shared"] == 2
    assert record["counts"] == {
        "duplicate": 1,
        "covered": 1,
        "never-true": 1,
        "always-true": 1,
        "residual-only": 1,
    }
    assert record["findings"][0] == {
        "kind": "covered",
        "id": "2",
        "subscriber": "ana",
        "place": "line 3",
        "filter": "origin = 'EWR' AND delay > 90",
        "other": {"id": "1", "place": "line 2"},
    }


def test_people_see_both_lines(run: Run, write: Write) -> None:
    result = run("doctor", write("f.csv", SICK))
    assert result.code == 1
    assert "line 4, id 3" in result.out
    assert "line 2, id 1" in result.out
    assert "7 filters of 3 subscribers, 2 of them equal to another subscriber's: 5" in result.out


def test_a_healthy_file_ends_with_0(run: Run, write: Write) -> None:
    result = run("doctor", write("f.txt", "a = 1\na = 2\nb > 3\n"))
    assert (result.code, result.out) == (0, "3 filters: healthy\n")


def test_the_same_filter_of_two_subscribers_is_no_fault(run: Run, write: Write) -> None:
    path = write("f.csv", "id,filter,subscriber\n1,a = 1,ana\n2,a = 1,ben\n3,a >= 0,cy\n")
    assert run("doctor", path).code == 0


def test_filters_without_subscriber_are_one_subscribers(run: Run, write: Write) -> None:
    found = kinds(run, write("f.txt", "a = 1\n\na >= 0\na IN (1)\n"))
    assert found == {1: ("covered", 3), 4: ("duplicate", 1)}


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        # chains are told by their top
        (["a > 3", "a > 2", "a > 1"], {1: ("covered", 3), 2: ("covered", 3)}),
        (["a IN (1, 2, 3)", "a = 2 AND b = 1"], {2: ("covered", 1)}),
        (["a IN (1, 2, 3)", "a = 4 AND b = 1"], {}),
        (["a LIKE 'N1%'", "a LIKE 'N12%'"], {2: ("covered", 1)}),
        (["a = 1 OR b = 2", "b = 2 AND c = 3"], {2: ("covered", 1)}),
        (["a + b > 5", "a + b > 9 AND c = 1"], {2: ("covered", 1)}),
        (["a RLIKE 'x' AND b = 1", "b = 1"], {1: ("covered", 2)}),
        # equal, though their canonical forms differ
        (["a < 5 OR a >= 3 AND b = 1", "a < 5 OR a >= 5 AND b = 1"], {2: ("duplicate", 1)}),
        # what always or never matches is said once, and not of all the others
        (["true", "a = 1", "false"], {1: ("always-true", None), 3: ("never-true", None)}),
    ],
)
def test_findings(
    run: Run, write: Write, texts: list[str], found: dict[int, tuple[str, object]]
) -> None:
    assert kinds(run, write("f.txt", "\n".join(texts))) == found


def test_many_findings_are_cut_unless_all_are_wanted(run: Run, write: Write) -> None:
    path = write("f.txt", "\n".join(f"a > {n}" for n in range(30)))
    assert "and 9 more findings (--all shows them)" in run("doctor", path).out
    assert "--all" not in run("doctor", path, "--all").out


@pytest.mark.bench
def test_a_hundred_thousand_filters(run: Run, write: Write) -> None:
    """Half a minute, for one subscriber or for many."""
    lines = [f"{n},carrier = '{n % 50}' AND dest = '{n % 997}' AND delay > {n},s{{}}\n"
             for n in range(100_000)]  # fmt: skip
    for owners in (1, 1_000):
        rows = [line.format(n % owners) for n, line in enumerate(lines)]
        path = write("f.csv", "id,filter,subscriber\n" + "".join(rows))
        begin = time.perf_counter()
        assert run("doctor", path, "--json").code in (0, 1)
        assert time.perf_counter() - begin < 120
