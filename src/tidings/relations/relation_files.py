"""Loads the semantic store from files. This is the only module of this room that reads files.

    places.csv      name, inside, lat, lon, altitude, also (other names, separated by |)
    calendar.toml   [[holiday]] and [[season]]; the example explains the rules
    tags.toml       [words]: each word with the broader words
    people.toml     [people] and [[link]]

A folder need not have all of these files. The folder `tidings.relations.EXAMPLES` has all of these
files.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tidings.files import find_problems, read_toml
from tidings.model import AttributesError, EnvironmentProblem
from tidings.relations.semantic import (
    WEEKDAYS,
    Context,
    Entry,
    Place,
    SemanticStore,
    TableDictionary,
    Thesaurus,
    Words,
    YearlyRule,
)

EXAMPLES = Path(__file__).parent / "examples"
FILES = ("places.csv", "calendar.toml", "tags.toml", "people.toml")
COLUMNS = ("name", "inside", "lat", "lon", "altitude", "also")

Count = Annotated[int, msgspec.Meta(ge=1)]
LEAP = 2024  # a leap year, so it has every day of the calendar


class HolidayTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    also: list[str] = []
    date: str | None = None
    easter: int | None = None
    weekday: str | None = None
    month: Annotated[int, msgspec.Meta(ge=1, le=12)] | None = None
    days: Count = 1


class SeasonTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    date: str
    until: str
    also: list[str] = []


class CalendarFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    holiday: list[HolidayTable] = []
    season: list[SeasonTable] = []


class WordTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    under: list[str] = []
    also: list[str] = []


class TagsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: dict[str, list[str] | WordTable]


class PersonTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    also: list[str] = []


class LinkTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["family", "friend", "classmate", "colleague"]
    between: Annotated[list[str], msgspec.Meta(min_length=2, max_length=2)]


class PeopleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    people: dict[str, PersonTable]
    link: list[LinkTable] = []


def load_relations(folder: str | Path = EXAMPLES, *, language: str | None = "english"
                   ) -> SemanticStore:  # fmt: skip
    """Load a semantic store from a folder with some of the files. Tags are stemmed as words of
    `language`; if it is None, they are not stemmed, and no package is needed."""
    folder = Path(folder)
    there = [name for name in FILES if (folder / name).exists()]
    if not there:
        raise EnvironmentProblem(
            f"{folder}: found none of the files {', '.join(FILES)}, expected at least one"
        )
    store = SemanticStore(Thesaurus(None if language is None else Words(language)))
    store.digest = _digest([folder / name for name in there])
    for name in there:
        {"places.csv": _load_places, "calendar.toml": _load_calendar, "tags.toml": _load_tags,
         "people.toml": _load_people}[name](store, folder / name)  # fmt: skip
    return store


def _digest(paths: Iterable[Path]) -> bytes:
    """A digest of the names and the bytes of files; empty if one can't be read."""
    found = blake2b(digest_size=16)
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError:  # the error is reported when the file is loaded
            return b""
        found.update(f"{path.name} {len(data)} ".encode() + data)
    return found.digest()


def load_dictionary(context: Context, path: str | Path) -> TableDictionary:
    """A dictionary with the rows of a CSV file that has the columns of places.csv. `inside` may
    list several names, separated by |."""
    return TableDictionary(context, (entry for _, entry in _entries(Path(path))))


def _load_places(store: SemanticStore, path: Path) -> None:
    for line, entry in _entries(path):
        if len(entry.inside) > 1:
            raise AttributesError(
                f"{path}, line {line}: found {len(entry.inside)} places that contain {entry.name}, "
                "expected at most one"
            )
        place = Place(entry.name, entry.lat, entry.lon, entry.altitude)
        try:
            store.places.add(place, next(iter(entry.inside), None), entry.also)
        except AttributesError as problem:
            raise AttributesError(f"{path}, line {line}: {problem}") from None


def _entries(path: Path) -> Iterator[tuple[int, Entry]]:
    """The rows of a CSV file, with their line numbers."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as problem:
        raise EnvironmentProblem(f"{path} can't be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise AttributesError(f"{path}: found bytes that are not UTF-8, expected UTF-8") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(rows, [])
        unknown = [name for name in header if name not in COLUMNS]
        if "name" not in header or unknown:
            raise AttributesError(
                f"{path}, line 1: found the columns {', '.join(header) or 'nothing'}, expected "
                f"name and some of {', '.join(COLUMNS[1:])}"
            )
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise AttributesError(
                    f"{path}, line {rows.line_num}: found {len(row)} fields, expected {len(header)}"
                )
            yield rows.line_num, _entry(dict(zip(header, row, strict=True)), path, rows.line_num)
    except csv.Error as problem:
        raise AttributesError(f"{path}, line {rows.line_num}: this is not CSV: {problem}") from None


def _entry(row: Mapping[str, str], path: Path, line: int) -> Entry:
    numbers: dict[str, float | None] = {}
    for name in ("lat", "lon", "altitude"):
        text = row.get(name, "").strip()
        try:
            numbers[name] = float(text) if text else None
        except ValueError:
            raise AttributesError(
                f"{path}, line {line}: found the {name} '{text}', expected a number"
            ) from None
    inside, also = (
        tuple(one.strip() for one in row.get(name, "").split("|") if one.strip())
        for name in ("inside", "also")
    )
    lat, lon, altitude = numbers.values()
    return Entry(row["name"].strip(), inside, also, lat, lon, altitude or 0.0)


def _load_toml(path: Path, kind: Any) -> Any:
    file = read_toml(path, AttributesError)
    problems = list(find_problems(file.data, kind))
    if problems:
        raise AttributesError(file.describe(problems))
    return msgspec.convert(file.data, kind)


def _load_calendar(store: SemanticStore, path: Path) -> None:
    found: CalendarFile = _load_toml(path, CalendarFile)
    tables: list[HolidayTable | SeasonTable] = [*found.holiday, *found.season]
    for one in tables:
        try:
            store.calendar.add(_rule(one), one.also)
        except AttributesError as problem:
            raise AttributesError(f"{path}: {problem}") from None


def _rule(table: HolidayTable | SeasonTable) -> YearlyRule:
    if isinstance(table, SeasonTable):
        return YearlyRule(
            table.name,
            _month_day(table.name, table.date),
            until=_month_day(table.name, table.until),
        )
    given = [name for name in ("date", "easter", "weekday") if getattr(table, name) is not None]
    if len(given) != 1:
        raise AttributesError(
            f"{table.name}: found {' and '.join(given) or 'no rule'}, expected one of date, easter "
            "and weekday"
        )
    if table.weekday is None:
        date = None if table.date is None else _month_day(table.name, table.date)
        return YearlyRule(table.name, date, table.easter, days=table.days)
    day, _, which = table.weekday.partition(" ")
    if day not in WEEKDAYS or which not in ("1", "2", "3", "4", "-1") or table.month is None:
        raise AttributesError(
            f"{table.name}: found weekday = '{table.weekday}' and month = {table.month}, expected "
            "a weekday with 1 to 4 or -1, such as 'thursday 4', and a month"
        )
    weekday = WEEKDAYS.index(day), int(which)
    return YearlyRule(table.name, weekday=weekday, month=table.month, days=table.days)


def _month_day(name: str, text: str) -> tuple[int, int]:
    try:
        day = dt.date.fromisoformat(f"{LEAP}-{text}")
    except ValueError:
        day = dt.date(LEAP, 2, 29)
    if day == dt.date(LEAP, 2, 29):
        raise AttributesError(
            f"{name}: found the date '{text}', expected a month and a day of every year, such as "
            "'12-24'"
        )
    return day.month, day.day


def _load_tags(store: SemanticStore, path: Path) -> None:
    found: TagsFile = _load_toml(path, TagsFile)
    for name, given in found.words.items():
        table = WordTable(given) if isinstance(given, list) else given
        try:
            store.tags.add(name, table.under, table.also)
        except AttributesError as problem:
            raise AttributesError(f"{path}: {problem}") from None


def _load_people(store: SemanticStore, path: Path) -> None:
    found: PeopleFile = _load_toml(path, PeopleFile)
    try:
        for name, person in found.people.items():
            store.people.add(name, person.also)
        for link in found.link:
            store.people.link(link.between[0], link.between[1], link.kind)
    except AttributesError as problem:
        raise AttributesError(f"{path}: {problem}") from None
