"""event-ruler as the judge of event patterns: the library that EventBridge is built on.

It is fetched and built as a peer (benchmarks/peers/event-ruler), which needs Java, Maven and a
network. Where tidings differs on purpose, as docs/dialects.md says, it is not asked.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.filters import eventbridge_oracle
from tests.filters.aws_examples import read_examples
from tests.filters.eventbridge_draws import draw_event, draw_pattern

from tidings import FilterError, parse
from tidings.filters.dialects.eventbridge import complexity
from tidings.studies.compare.peers import peers_folder, prepare, read_peers
from tidings.studies.host.driver import Unavailable

pytestmark = pytest.mark.slow
CASES = Path(__file__).parent / "cases"
# what event-ruler takes and tidings does not, and cases where the two differ
TAKEN = {'{"a":[1]} x', '{"":[1]}', '{"a":[1],"a":[2]}', '{"a":[1e400]}', '{"a":["\\ud800"]}',
         '{"\\ud800":["x"]}', '{"a":[{"wildcard":"*a*a*a*a*a*"}]}'}  # fmt: skip
DIFFERENT: list[Any] = [
    {"a": [{"cidr": "0.0.0.0/0"}]},
    {"a": {"b": {"c": ["x"]}}},
    {"a": ["x"], "$or": [{"a": [{"prefix": "x"}]}, {"b": [1]}]},
]


@pytest.fixture(scope="module")
def classes() -> Path:
    folder = peers_folder()
    try:
        return prepare("event-ruler", read_peers(folder)["event-ruler"], folder / "event-ruler")
    except Unavailable as problem:
        pytest.skip(f"event-ruler can't be had: {problem}")


def judged(classes: Path, asked: list[tuple[str, list[Any]]]) -> list[str]:
    lines = [
        json.dumps({"pattern": pattern, "events": [json.dumps(event) for event in events]})
        for pattern, events in asked
    ]
    return ask(classes, lines)


def ask(classes: Path, lines: list[str]) -> list[str]:
    path = f"{classes}/target/classes:{classes}/target/lib/*"
    ran = subprocess.run(
        ["java", "-cp", path, "Judge"], input="\n".join(lines), capture_output=True, check=True,
        text=True, encoding="utf-8",
    )  # fmt: skip
    return ran.stdout.splitlines()


def test_cases(classes: Path) -> None:
    cases = [
        case
        for case in json.loads((CASES / "eventbridge.json").read_text())
        if case["pattern"] not in DIFFERENT
    ]
    asked = [(json.dumps(case["pattern"]), case["matches"] + case["others"]) for case in cases]
    for case, found in zip(cases, judged(classes, asked), strict=True):
        assert found == "1" * len(case["matches"]) + "0" * len(case["others"]), case


def test_examples_of_aws(classes: Path) -> None:
    examples = read_examples()
    asked = [(json.dumps(one.pattern), one.matches + one.others) for one in examples]
    for one, found in zip(examples, judged(classes, asked), strict=True):
        assert found == "1" * len(one.matches) + "0" * len(one.others), one


def test_refusals(classes: Path) -> None:
    texts = [case["text"] for case in json.loads((CASES / "eventbridge_refused.json").read_text())]
    found = judged(classes, [(text, []) for text in texts])
    assert {t for t, one in zip(texts, found, strict=True) if one != "refused"} == TAKEN


def test_patterns_and_events_at_random(classes: Path, seed: int) -> None:
    dice = random.Random(seed)
    asked: list[tuple[dict[str, Any], list[Any]]] = []
    while len(asked) < 5000:
        pattern = draw_pattern(dice)
        if not _confuses(pattern):
            asked.append((pattern, [draw_event(dice) for _ in range(12)]))
    answers = judged(classes, [(json.dumps(pattern), events) for pattern, events in asked])
    matched = 0
    for (pattern, events), answer in zip(asked, answers, strict=True):
        text = json.dumps(pattern)
        if answer == "refused":
            with pytest.raises(FilterError):
                parse(text, "eventbridge")
            continue
        one = parse(text, "eventbridge")
        for event, found in zip(events, answer, strict=True):
            wanted = found == "1"
            matched += wanted
            assert eventbridge_oracle.matches(pattern, event) is wanted, (text, event)
            assert one.matches(event) is wanted, (text, event)
            assert one.form.holds(event) is wanted, (text, event)
    assert matched > 1000


def test_complexity_of_wildcards(classes: Path, seed: int) -> None:
    dice = random.Random(seed)

    def draw_wildcard() -> str:
        return re.sub(r"\*+", "*", "".join(dice.choices("aab*/*", k=dice.randint(1, 20))))

    fields: list[list[Any]] = []
    for _ in range(1500):
        some = sorted({draw_wildcard() for _ in range(dice.choice((1, 1, 1, 2, 3)))})
        but = {"anything-but": {"wildcard": some if len(some) > 1 else some[0]}}
        fields.append([but] if dice.random() < 0.2 else [{"wildcard": one} for one in some])
    lines = [
        json.dumps({"pattern": json.dumps({"a": one}), "complexity": complexity.MOST + 1})
        for one in fields
    ]
    answers = list(map(int, ask(classes, lines)))
    for field, found in zip(fields, answers, strict=True):
        but = field[0].get("anything-but")
        values = [_listed(but["wildcard"])] if but else [(one["wildcard"],) for one in field]
        # for a list in anything-but, event-ruler depends on the order of a hash table
        slack = len(values[0]) - 1 if but else 0
        assert abs(complexity.measure(values) - found) <= slack, field
    assert 20 < sum(one > complexity.MOST for one in answers) < 1480


def _listed(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _confuses(value: Any) -> bool:
    """Version 2.1.0 errs on a field with both a wildcard and letters of any case: it finds that
    [{"wildcard": "*x*y*"}, {"equals-ignore-case": "x"}] matches "true"."""
    if isinstance(value, dict):
        return any(map(_confuses, value.values()))
    text = json.dumps(value)
    return "wildcard" in text and "equals-ignore-case" in text
