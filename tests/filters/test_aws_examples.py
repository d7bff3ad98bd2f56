"""Every event pattern of the public AWS documentation does what the documentation says."""

from __future__ import annotations

import json

import pytest
from tests.filters import eventbridge_oracle
from tests.filters.aws_examples import AwsExample, read_examples

from tidings import parse
from tidings.matching import Matcher

EXAMPLES = read_examples()


def test_there_are_examples_of_every_kind() -> None:
    text = json.dumps([one.pattern for one in EXAMPLES])
    for word in ("prefix", "suffix", "wildcard", "equals-ignore-case", "numeric", "exists", "cidr",
                 "anything-but", "$or", "null", '[""]'):  # fmt: skip
        assert word in text, word
    sources = {source for one in EXAMPLES for source in one.pattern.get("source", ())}
    assert sources >= {"aws.ec2", "aws.s3", "aws.guardduty"}
    assert all(one.matches and one.others for one in EXAMPLES)
    assert len(EXAMPLES) >= 50


@pytest.mark.parametrize("one", EXAMPLES, ids=lambda one: json.dumps(one.pattern)[:70])
def test_an_example(one: AwsExample) -> None:
    filter_ = parse(one.pattern, "eventbridge")
    again = parse(filter_.sql())
    for event, wanted in one.events:
        assert filter_.matches(event) is wanted, event
        assert filter_.form.holds(event) is wanted, event
        assert again.matches(event) is wanted, event
        assert eventbridge_oracle.matches(one.pattern, event) is wanted, event


def test_all_examples_in_one_matcher() -> None:
    matcher = Matcher(background=False)
    matcher.add_many((n, parse(e.pattern, "eventbridge")) for n, e in enumerate(EXAMPLES))
    matcher.merge()
    for one in EXAMPLES:
        for event, _ in one.events:
            wanted = {
                n for n, e in enumerate(EXAMPLES) if eventbridge_oracle.matches(e.pattern, event)
            }
            assert set(matcher.match(event)) == wanted, event
            assert set(matcher.match(json.dumps(event))) == wanted, event
