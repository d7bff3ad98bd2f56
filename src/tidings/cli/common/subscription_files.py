"""Reads subscriptions from a file: an id, a filter and optionally a subscriber.

format        a line or row
text          a filter; its id is the number of the line; blank lines and # comments are skipped
json          {"id": ..., "filter": ..., "subscriber": ...}; in dialects that are written in JSON,
              the filter may be an object, and a file may have filters alone
csv, parquet  the columns id, filter and optionally subscriber
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from tidings import Filter, FilterError, parse
from tidings.cli.common import arrow, input_files
from tidings.cli.common.command_errors import BadInput, filter_refusal, remark, report
from tidings.cli.common.declared_types import DeclaredTypes
from tidings.filters.dialects import DIALECTS

FORMATS = ("text", "json", "csv", "parquet")
_EXPECTED = "expected id, filter and optionally subscriber"
MOST_REPORTED = 20  # refused filters
MOST_NOTED = 5  # how many filters that can never match, or always match, are reported


class FileSubscription(msgspec.Struct, frozen=True):
    """One subscription, and where it was found: `file` and `place` (such as `line 3`)."""

    id: int | str
    text: str
    subscriber: str | None = None
    file: str = ""
    place: str = ""
    shape: Literal["text", "object", "bare"] = "text"
    """How a JSON file gave the filter: as text, as an object, or without `id` and `filter`."""

    @property
    def where(self) -> str:
        return ", ".join(filter(None, (self.file, self.place)))

    @property
    def spot(self) -> str:
        """The place, and the id if it is not the line number."""
        return self.place if self.place.endswith(f" {self.id}") else f"{self.place}, id {self.id}"

    @property
    def named(self) -> str:
        """Where the subscription was found, with its id."""
        return f"{self.file}, {self.spot}" if self.file and self.place else self.where

    def parse(self, dialect: str, declared: DeclaredTypes) -> Filter:
        """Parse the filter; raise BadInput, with the place and the id, if it is refused."""
        if self.shape != "text":
            self._need_json(dialect)
        try:
            return parse(self.text, dialect, attributes=declared.attributes)
        except FilterError as problem:
            raise filter_refusal(problem, self.named) from None

    def _need_json(self, dialect: str) -> None:
        """Refuse a filter that is an object, unless its dialect is written in JSON."""
        found = DIALECTS.get(dialect)
        if found is None or found.takes_json:  # the parser refuses an unknown dialect
            return
        if self.shape == "bare":
            names = ", ".join(msgspec.json.decode(self.text)) or "nothing"
            raise BadInput(f"{self.where}: found {names}; {_EXPECTED}")
        dialects = " or ".join(name for name, one in sorted(DIALECTS.items()) if one.takes_json)
        raise BadInput(
            f"{self.where}: the filter is an object, expected text; objects are for --dialect "
            f"{dialects}"
        )


Check = Callable[[FileSubscription, Filter], None]


def parse_all(
    listed: Iterable[FileSubscription],
    dialect: str,
    declared: DeclaredTypes,
    check: Check = lambda _one, _filter: None,
) -> list[tuple[FileSubscription, Filter]]:
    """Parse all subscriptions. If the parser or `check` refuses filters, report at most
    MOST_REPORTED of them, each with its place and id, and raise BadInput."""
    parsed: list[tuple[FileSubscription, Filter]] = []
    bad: list[BadInput] = []
    count = 0
    for one in listed:
        try:
            found = one.parse(dialect, declared)
            check(one, found)
            parsed.append((one, found))
        except BadInput as problem:
            count += 1
            if len(bad) < MOST_REPORTED:
                bad.append(problem)
    if count == 1:
        raise bad[0]
    if count:
        for listed_one in bad:
            report(listed_one)
        more = f"; the first {MOST_REPORTED} are listed" if count > MOST_REPORTED else ""
        raise BadInput(f"{count:,} of {count + len(parsed):,} filters are refused{more}")
    return parsed


def note_odd(parsed: Iterable[tuple[FileSubscription, Filter]]) -> list[FileSubscription]:
    """Print a note on each filter that can never match, or always matches. At most MOST_NOTED notes
    are printed, and then the number of filters without a printed note. Return the subscriptions
    that can never match."""
    odd = [(one, filter_) for one, filter_ in parsed if filter_.note]
    odd.sort(key=lambda pair: not pair[1].never)
    for one, filter_ in odd[:MOST_NOTED]:
        remark(f"{one.named}: {filter_.note}" if one.named else filter_.note)
    rest = len(odd) - MOST_NOTED
    if rest > 0:
        filters = "filter is" if rest == 1 else "filters are"
        remark(f"{rest:,} more {filters} never true or always true; `tidings doctor` lists them")
    return [one for one, filter_ in odd if filter_.never]


def refuse_never(filter_: Filter, force: bool, where: str = "") -> None:
    """Refuse a filter from the command line that can never match; with `force`, print a note
    instead. A filter that always matches only gets a note."""
    sentence = f"{where}: {filter_.note}" if where else filter_.note
    if filter_.never and not force:
        raise BadInput(f"{sentence}; --force accepts the filter")
    if filter_.note:
        remark(sentence)


def read_subscriptions(path: str, given: str | None = None) -> Iterator[FileSubscription]:
    """Yield the subscriptions of a file; raise BadInput if it has none or repeats an id."""
    form = input_files.format_of(path, given, FORMATS, "--filters-format")
    seen: dict[str, str] = {}
    for one in _READERS[form](path):
        first = seen.setdefault(str(one.id), one.place)
        if first != one.place:
            raise BadInput(f"{one.where}: the id '{one.id}' is already used by {first}")
        yield one
    if not seen:
        raise BadInput(f"{input_files.name_of(path)}: found no filter, expected at least one")


def _read_text(path: str) -> Iterator[FileSubscription]:
    for line, text in input_files.read_lines(path):
        bare = text.strip()
        if bare and not bare.startswith("#"):
            # Keep leading spaces, so that the positions in errors are positions in the line.
            yield FileSubscription(
                line, text.rstrip(), None, input_files.name_of(path), f"line {line}"
            )


def _read_json(path: str) -> Iterator[FileSubscription]:
    for place, record in input_files.read_objects(path):
        yield _subscription(record, path, place)


def _read_parquet(path: str) -> Iterator[FileSubscription]:
    for row, record in enumerate(arrow.read_parquet(path), 1):
        yield _subscription(record, path, f"row {row}")


def _read_csv(path: str) -> Iterator[FileSubscription]:
    # pyarrow is not used here: an id such as 007 must stay text, and errors must name lines.
    csv.field_size_limit(1 << 30)
    reader = csv.reader((line for _, line in input_files.read_lines(path)), strict=True)
    name = input_files.name_of(path)
    header: list[str] | None = None
    line = 1
    try:
        for fields in reader:
            if header is None:
                header = [field.strip() for field in fields]
                _need_columns(header, f"{name}, line {line}")
            elif fields:
                if len(fields) != len(header):
                    raise BadInput(
                        f"{name}, line {line}: found {len(fields)} fields, expected {len(header)}"
                    )
                record = {key: value or None for key, value in zip(header, fields, strict=True)}
                yield _subscription(record, path, f"line {line}")
            line = reader.line_num + 1
    except csv.Error as problem:
        raise BadInput(f"{name}, line {line}: this is not CSV: {problem}") from None


_READERS = {"text": _read_text, "json": _read_json, "csv": _read_csv, "parquet": _read_parquet}


def _subscription(record: Mapping[str, Any], path: str, place: str) -> FileSubscription:
    name = input_files.name_of(path)
    if record and "filter" not in record and isinstance(record.get("id", []), list | dict):
        # a filter without an id; its id is the number of the line or the element
        return FileSubscription(
            int(place.rpartition(" ")[2]), _json_text(record), None, name, place, "bare"
        )
    _need_columns(record, f"{name}, {place}")
    number, text, subscriber = record["id"], record["filter"], record.get("subscriber")
    if not isinstance(number, (int, str)) or isinstance(number, bool):
        raise BadInput(
            f"{name}, {place}: the id is {input_files.kind_of(number)}, expected text or an integer"
        )
    who = None if subscriber is None else str(subscriber)
    if isinstance(text, dict | list):
        return FileSubscription(number, _json_text(text), who, name, place, "object")
    if not isinstance(text, str):
        raise BadInput(f"{name}, {place}: the filter is {input_files.kind_of(text)}, expected text")
    return FileSubscription(number, text, who, name, place)


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _need_columns(names: Collection[str], where: str) -> None:
    for column in ("id", "filter"):
        if column not in names:
            found = ", ".join(names) or "nothing"
            raise BadInput(f"{where}: found {found}; {_EXPECTED}")
