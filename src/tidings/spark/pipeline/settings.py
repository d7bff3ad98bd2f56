"""Reads and checks pipeline files, in TOML.

    name = "flights"                the name of the pipeline
    checkpoint = "checkpoint"       the folder of Spark's checkpoint

    [source]                        where notifications come from
    [columns]                       their names and types, if the source does not define them
    [subscriptions]                 a log or a snapshot
    [outbox]                        where matched notifications go
    [trigger]                       how often a batch runs
    [[sinks]]                       further receivers of matched notifications
    [spark]                         master, settings

Paths are relative to the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from tidings.files import address_of, local_path, scheme_of
from tidings.filters import Attributes
from tidings.model import AttributesError, TidingsError
from tidings.spark.feeds.feed_columns import FEED_COLUMNS

_MOST = 2**31 - 1  # Spark stores many of these numbers in 32 bits


class SettingsError(TidingsError):
    """A pipeline file can't be used; the message says where, and what was expected."""


class Files(msgspec.Struct, frozen=True, tag_field="kind", tag="files", forbid_unknown_fields=True):
    """Files that appear in a folder: JSON lines, CSV with a header, Parquet."""

    path: str
    format: Literal["json", "csv", "parquet"] = "json"
    files_per_trigger: int | None = None
    when_read: Literal["keep", "delete", "archive"] = "keep"
    archive: str | None = None  # the folder of files that were read, for `when_read = "archive"`


class Kafka(msgspec.Struct, frozen=True, tag_field="kind", tag="kafka", forbid_unknown_fields=True):
    """A topic whose values are JSON objects."""

    servers: str
    topic: str
    start: Literal["earliest", "latest"] = "earliest"
    rows_per_trigger: int | None = None
    options: dict[str, str] = {}


class Feeds(msgspec.Struct, frozen=True, tag_field="kind", tag="feeds", forbid_unknown_fields=True):
    """RSS and Atom feeds."""

    urls: list[str]
    spool: str = "spool"


class Rate(msgspec.Struct, frozen=True, tag_field="kind", tag="rate", forbid_unknown_fields=True):
    """Generated rows with a time and a number, at a fixed rate, for experiments."""

    rows_per_second: int = 10


Source = Files | Kafka | Feeds | Rate


class Subscriptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either a log of changes, which the pipeline follows, or a snapshot, which is fixed."""

    log: str | None = None
    snapshot: str | None = None
    rebuild_after: int = 1_000  # changes sent with tasks before a new snapshot is compiled


class OutboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    grain_minutes: int = 60
    time: str | None = None  # the column that determines grains; by default the batch's start


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    every_seconds: float = 1.0
    available_now: bool = False


class ConsoleSink(msgspec.Struct, frozen=True, tag_field="kind", tag="console",
                  forbid_unknown_fields=True):  # fmt: skip
    rows: int = 20


class KafkaSink(msgspec.Struct, frozen=True, tag_field="kind", tag="kafka",
                forbid_unknown_fields=True):  # fmt: skip
    servers: str
    topic: str
    options: dict[str, str] = {}


class RendezvousSink(msgspec.Struct, frozen=True, tag_field="kind", tag="rendezvous",
                     forbid_unknown_fields=True):  # fmt: skip
    host: str
    port: int


Sink = ConsoleSink | KafkaSink | RendezvousSink


class SparkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    master: str = "local[2,4]"  # up to 4 attempts per task; `local[2]` would allow only one
    remote: str | None = None
    settings: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    source: Source
    subscriptions: Subscriptions
    outbox: OutboxSettings
    checkpoint: str = "checkpoint"
    columns: dict[str, str] = {}
    trigger: Trigger = Trigger()
    sinks: list[Sink] = []
    spark: SparkSettings = SparkSettings()
    folder: Path = Path()

    def at(self, path: str) -> Path:
        """Resolve a path relative to the folder of the file."""
        return (self.folder / local_path(path, "a pipeline")).absolute()

    def place(self, path: str) -> str:
        """Like `at`, but an address such as s3://bucket/folder stays as it is."""
        return address_of(path) if scheme_of(path) else str(self.at(path))

    @property
    def attributes(self) -> Attributes | None:
        """The columns as declared attributes, if any are declared."""
        return Attributes(self.columns) if self.columns else None  # type: ignore[arg-type]


def known_columns(settings: Settings) -> list[str] | None:
    """The columns of a source that defines its own; None if the file declares the columns, or if
    they are not known yet."""
    source = settings.source
    if settings.columns:
        return None
    if isinstance(source, Rate):
        return ["timestamp", "value"]
    if isinstance(source, Feeds):
        return list(FEED_COLUMNS)
    if isinstance(source, Files):
        for path in sorted(settings.at(source.path).glob("*.parquet"))[:1]:
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
    return None


def load_settings(path: str | Path) -> Settings:
    """Read a pipeline file; raise SettingsError if it can't be used."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise SettingsError(f"{path} can't be read: {problem.strerror}") from None
    except RecursionError:
        raise SettingsError(f"{path} can't be read: its lists are nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{path} is not TOML: {problem}") from None
    except ValueError:  # Python limits the digits of integers
        raise SettingsError(f"{path} can't be read: an integer has too many digits") from None
    try:
        found = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as problem:
        raise SettingsError(f"{path}: {_rephrase(str(problem))}") from None
    found = msgspec.structs.replace(found, folder=path.parent.absolute())
    _check(path, found)
    return found


def _rephrase(problem: str) -> str:
    """Rewrite a message of msgspec with the key as in TOML: `$.source.path` becomes source.path."""
    sentence, _, place = problem.partition(" - at `$")
    sentence = sentence[0].lower() + sentence[1:].replace("Object ", "").replace("`", "'")
    place = place.rstrip("`").removeprefix(".")
    return f"{place}: {sentence}" if place else sentence


def _check(path: Path, found: Settings) -> None:
    for problem in _problems(found):
        raise SettingsError(f"{path}: {problem}")


def _problems(found: Settings) -> Iterator[str]:
    """All problems that the file alone reveals."""
    source, subscriptions = found.source, found.subscriptions
    if (subscriptions.log is None) == (subscriptions.snapshot is None):
        yield "subscriptions: expected either log or snapshot"
    try:
        _ = found.attributes
    except AttributesError as problem:
        yield f"columns: {problem}"
    needed = isinstance(source, Kafka) or (isinstance(source, Files) and source.format != "parquet")
    if needed and not found.columns:
        yield "columns: found none, expected names and types, because the source is text"
    if isinstance(source, Files) and (source.when_read == "archive") != (
        source.archive is not None
    ):
        yield 'source: expected both when_read = "archive" and a folder for archive, or neither'
    if isinstance(source, Feeds) and not source.urls:
        yield "source.urls: found none, expected at least one"
    for name, number, least, most in _numbers(found):
        if number is not None and not least <= number <= most:  # also true for NaN
            yield f"{name}: found {_show_number(number)}, expected {least} to {most:,}"
    for name, text in paths_of(found):
        if not text or "\0" in text:
            yield f"{name}: found {text!r}, expected a path"
        elif scheme_of(text) and name != "subscriptions.snapshot":
            yield (
                f"{name}: found '{text}', expected a folder of this machine: pipelines need locks "
                f"and renames, which {scheme_of(text)}:// does not have"
            )
    yield from _overlaps(found)
    time = found.outbox.time
    if time is not None and found.columns and found.columns.get(time) != "timestamp":
        yield f"outbox.time: found '{time}', expected a timestamp among the columns"


def _numbers(found: Settings) -> Iterator[tuple[str, float | None, int, int]]:
    """The names and values of all numeric settings, with the least and the greatest valid value."""
    source = found.source
    for name in ("files_per_trigger", "rows_per_trigger", "rows_per_second"):
        yield f"source.{name}", getattr(source, name, None), 1, _MOST
    yield "trigger.every_seconds", found.trigger.every_seconds, 0, _MOST
    yield "outbox.grain_minutes", found.outbox.grain_minutes, 1, _MOST
    yield "subscriptions.rebuild_after", found.subscriptions.rebuild_after, 1, _MOST
    for at, sink in enumerate(found.sinks):
        yield f"sinks[{at}].rows", getattr(sink, "rows", None), 0, _MOST
        yield f"sinks[{at}].port", getattr(sink, "port", None), 1, 65_535


def paths_of(found: Settings) -> Iterator[tuple[str, str]]:
    """The names and values of all paths in a pipeline file."""
    given: list[tuple[str, str | None]] = [
        ("checkpoint", found.checkpoint),
        ("outbox.path", found.outbox.path),
        ("subscriptions.log", found.subscriptions.log),
        ("subscriptions.snapshot", found.subscriptions.snapshot),
        *((f"source.{at}", getattr(found.source, at, None)) for at in ("path", "archive", "spool")),
    ]
    return ((name, path) for name, path in given if path is not None)


def _overlaps(found: Settings) -> Iterator[str]:
    """Refuse folders of the pipeline inside the source's folder: Spark reads every file there as
    rows, even in subfolders named like those of an outbox (`grain=...`)."""
    if not isinstance(found.source, Files):
        return
    read = _normalise(found.at(found.source.path))
    for name, path in paths_of(found):
        if scheme_of(path):
            continue
        own = _normalise(found.at(path))
        below = name in ("outbox.path", "source.archive") and own.is_relative_to(read)
        above = name == "source.archive" and read.is_relative_to(own)
        if name != "source.path" and (own == read or below or above):
            yield f"{name}: found {own}, expected a folder outside source.path, {read}"


def _normalise(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _show_number(number: float) -> str:
    if isinstance(number, int) and abs(number) > 10**20:  # Python may refuse to print it
        return "an integer of more than 20 digits"
    return f"{number}"
