"""`tidings doctor`: finds faults in a file of filters."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import MOST_ROWS, count_of, cut, emit, show, show_rest, table, track
from tidings.cli.common.subscription_files import FileSubscription, parse_all, read_subscriptions
from tidings.cli.filters.findings import (
    COVERED,
    KINDS,
    MANY,
    Finding,
    Parsed,
    count_shared,
    examine,
)
from tidings.filters import ODDITIES, RESIDUAL_ONLY, oddities_of, parse
from tidings.filters.dialects import DIALECTS, OwnWords


def examine_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The filters.", hidden=True)],
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    every: options.All = False,
    json: options.Json = False,
) -> int:
    """Find filters that are duplicates, redundant, or odd.

    FILE has the format that `tidings match --filters` reads. Reports duplicates, and filters that
    another filter of the same subscriber covers. Also reports filters that never match or always
    match, and filters with an alternative for which no index can be used. Filters without a
    subscriber are treated as those of one subscriber.

    With --json, one object: filters, subscribers, shared (filters that another subscriber also
    has, which is not a fault), counts by kind, and findings (kind, id, subscriber, place, filter,
    other: the id and place of the filter that causes the finding; fields: the fields of an event
    pattern that cause the finding; note: why a filter can never match, or that it always matches).

    Exit code: 0 when nothing is found, 1 when something is found, 2 on bad input.
    """
    declared = read_types(types, others)
    listed = track(read_subscriptions(file, filters_format), "reading filters")
    parsed: list[Parsed] = parse_all(listed, dialect, declared)
    findings = examine(parsed)
    words = DIALECTS[dialect].words
    if words is not None:
        findings = _in_own_words(dialect, words, parsed, findings)
    if json:
        _emit_report(parsed, findings)
    else:
        _show_report(parsed, findings, None if every else MOST_ROWS)
    return 1 if findings else 0


AcceptedValues = dict[tuple[str, ...], frozenset[str]]  # the values that a filter accepts, by field


def _in_own_words(
    dialect: str, words: OwnWords, parsed: list[Parsed], findings: list[Finding]
) -> list[Finding]:
    """For filters that consist of fields, add to each finding the fields that cause it. Also
    compare filters field by field, and add a finding for each filter that another one covers in
    this way."""
    known = {str(one.subscription.id) for one in findings if one.kind != RESIDUAL_ONLY}
    own: dict[str | None, list[tuple[FileSubscription, AcceptedValues]]] = {}
    for one, _ in parsed:
        if str(one.id) not in known:
            wanted = {field.path: field.values for field in words.fields(one.text)}
            own.setdefault(one.subscriber, []).append((one, wanted))
    more = [
        Finding(COVERED, one, other)
        for mine in own.values()
        if len(mine) <= MANY
        for at, (one, _) in enumerate(mine)
        if (other := _covering(mine, at)) is not None
    ]
    place = {str(one.id): at for at, (one, _) in enumerate(parsed)}
    found = [*(_name_fields(dialect, words, one) for one in findings), *more]
    return sorted(found, key=lambda finding: place[str(finding.subscription.id)])


def covers(wanted: AcceptedValues, other: AcceptedValues) -> bool:
    """Whether the filter `wanted` covers the filter `other`, compared field by field: `other` has
    all fields of `wanted`, and in each of them `wanted` accepts every value that `other`
    accepts."""
    return all(path in other and other[path] <= values for path, values in wanted.items())


def _covering(
    mine: list[tuple[FileSubscription, AcceptedValues]], at: int
) -> FileSubscription | None:
    """The first filter that covers the filter at index `at`; of two equal filters, only the later
    one counts as covered."""
    wanted = mine[at][1]
    for place, (other, values) in enumerate(mine):
        if place != at and covers(values, wanted) and (place < at or not covers(wanted, values)):
            return other
    return None


def _name_fields(dialect: str, words: OwnWords, finding: Finding) -> Finding:
    """Add to a finding the names of those fields that have the same fault on their own."""
    if finding.kind not in ODDITIES:
        return finding
    odd = [
        field.label
        for field in words.fields(finding.subscription.text)
        if finding.kind in oddities_of(parse(field.text, dialect).form)
    ]
    return msgspec.structs.replace(finding, fields=tuple(odd))


def _emit_report(parsed: list[Parsed], findings: list[Finding]) -> None:
    counts = Counter(finding.kind for finding in findings)
    emit(
        {
            "filters": len(parsed),
            "subscribers": _subscribers(parsed),
            "shared": count_shared(parsed),
            "counts": {kind: counts[kind] for kind in KINDS},
            "findings": [_record(finding) for finding in findings],
        }
    )


def _record(finding: Finding) -> dict[str, object]:
    one, other = finding.subscription, finding.other
    return {
        "kind": finding.kind,
        "id": one.id,
        "subscriber": one.subscriber,
        "place": one.place,
        "filter": one.text.strip(),
        "other": None if other is None else {"id": other.id, "place": other.place},
        **({"fields": finding.fields} if finding.fields else {}),
        **({"note": finding.note} if finding.note else {}),
    }


def _show_report(parsed: list[Parsed], findings: list[Finding], most: int | None) -> None:
    counts = Counter(finding.kind for finding in findings)
    if findings:
        found = [(kind, f"{counts[kind]:,}", KINDS[kind]) for kind in KINDS if counts[kind]]
        show(table(["finding", "filters#", "what it means"], found), "")
        rows = []
        for finding in findings[:most]:
            one, other = finding.subscription, finding.other
            by = ", ".join(finding.fields) or finding.note
            if other is not None:
                by = f"{other.spot}: {cut(other.text.strip(), 120)}"
            rows.append((one.spot, finding.kind, cut(one.text.strip(), 120), by))
        show(table(["where", "finding", "filter", "because of"], rows), "")
        show_rest(len(findings) - len(rows), "more finding")
    verdict = count_of(len(findings), "finding") if findings else "healthy"
    owners = _subscribers(parsed)
    whose = f" of {count_of(owners, 'subscriber')}" if owners else ""
    shared = count_shared(parsed)
    equal = f", {shared:,} of them equal to another subscriber's" if shared else ""
    show(f"{count_of(len(parsed), 'filter')}{whose}{equal}: {verdict}")


def _subscribers(parsed: list[Parsed]) -> int:
    return len({one.subscriber for one, _ in parsed if one.subscriber is not None})
