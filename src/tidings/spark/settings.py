"""What a pipeline is made of: a TOML file, read and checked.

    name = "flights"                what it is called
    checkpoint = "checkpoint"       where Spark keeps its place

    [source]                        where notifications come from
    [columns]                       their names and types, where the source does not know them
    [subscriptions]                 who wants what
    [outbox]                        what they are to be told
    [trigger]                       how often
    [[sinks]]                       who else gets it
    [spark]                         master, settings

Paths are relative to the file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

from tidings.filters import Attributes
from tidings.model import AttributesError, TidingsError


class SettingsError(TidingsError):
    """A pipeline file that can't be used; the sentence says where and what was expected."""


class Files(msgspec.Struct, frozen=True, tag_field="kind", tag="files", forbid_unknown_fields=True):
    """Files that are put into a folder: JSON lines, CSV with a header, Parquet."""

    path: str
    format: Literal["json", "csv", "parquet"] = "json"
    files_per_trigger: int | None = None
    when_read: Literal["keep", "delete", "archive"] = "keep"
    archive: str | None = None  # where files go when they are read, with `when_read = "archive"`


class Kafka(msgspec.Struct, frozen=True, tag_field="kind", tag="kafka", forbid_unknown_fields=True):
    """A topic whose values are JSON objects."""

    servers: str
    topic: str
    start: Literal["earliest", "latest"] = "earliest"
    rows_per_trigger: int | None = None
    options: dict[str, str] = {}


class Feeds(msgspec.Struct, frozen=True, tag_field="kind", tag="feeds", forbid_unknown_fields=True):
    """RSS and Atom."""

    urls: list[str]
    spool: str = "spool"


class Rate(msgspec.Struct, frozen=True, tag_field="kind", tag="rate", forbid_unknown_fields=True):
    """Rows of a time and a number, so many each second: to try things out."""

    rows_per_second: int = 10


Source = Files | Kafka | Feeds | Rate


class Subscriptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either a log of changes, which is live, or a snapshot, which stays as it is."""

    log: str | None = None
    snapshot: str | None = None
    rebuild_after: int = 1_000  # changes that ride along before a new snapshot is compiled


class OutboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    grain_minutes: int = 60
    time: str | None = None  # the column that grains go by; when the batch began, if not given


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
    master: str = "local[2,4]"  # a task is tried up to 4 times; with `local[2]` it is tried once
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
        """A path of the file, from where the file is."""
        return (self.folder / path).absolute()

    @property
    def attributes(self) -> Attributes | None:
        """The columns as declared attributes, if any are declared."""
        return Attributes(self.columns) if self.columns else None  # type: ignore[arg-type]


def load_settings(path: str | Path) -> Settings:
    """Read a pipeline file; SettingsError in one sentence where it can't be used."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise SettingsError(f"{path} can't be read: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{path} is not TOML: {problem}") from None
    try:
        found = msgspec.convert(raw, Settings)
    except msgspec.ValidationError as problem:
        raise SettingsError(f"{path}: {_told(str(problem))}") from None
    found = msgspec.structs.replace(found, folder=path.parent.absolute())
    _check(path, found)
    return found


def _told(problem: str) -> str:
    """msgspec's sentence with the place as TOML has it: `$.source.path` is source.path."""
    sentence, _, place = problem.partition(" - at `$")
    sentence = sentence[0].lower() + sentence[1:].replace("Object ", "").replace("`", "'")
    place = place.rstrip("`").removeprefix(".")
    return f"{place}: {sentence}" if place else sentence


def _check(path: Path, found: Settings) -> None:
    subscriptions = found.subscriptions
    if (subscriptions.log is None) == (subscriptions.snapshot is None):
        raise SettingsError(f"{path}: subscriptions: expected either log or snapshot")
    try:
        _ = found.attributes
    except AttributesError as problem:
        raise SettingsError(f"{path}: columns: {problem}") from None
    needed = isinstance(found.source, Kafka) or (
        isinstance(found.source, Files) and found.source.format != "parquet"
    )
    if needed and not found.columns:
        raise SettingsError(
            f"{path}: columns: the source is text, expected the names and types of its columns"
        )
    source = found.source
    if isinstance(source, Files) and (source.when_read == "archive") != bool(source.archive):
        raise SettingsError(
            f'{path}: source: expected when_read = "archive" and archive, a folder, or neither'
        )
    for name, least, value in (
        ("trigger.every_seconds", 0, found.trigger.every_seconds),
        ("outbox.grain_minutes", 1, found.outbox.grain_minutes),
        ("subscriptions.rebuild_after", 1, subscriptions.rebuild_after),
    ):
        if value < least:
            raise SettingsError(f"{path}: {name}: found {value}, expected {least} or more")
    time = found.outbox.time
    if time is not None and found.columns and found.columns.get(time) != "timestamp":
        raise SettingsError(f"{path}: outbox.time: '{time}' is no timestamp among the columns")
