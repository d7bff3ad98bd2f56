"""Reads and checks pipeline files, in TOML.

    name = "flights"                the name of the pipeline
    checkpoint = "checkpoint"       the folder of Spark's checkpoint

    [source]                        where notifications come from
    extra = "keep"                  what happens to fields that are not declared
    [columns]                       names and types: the first declaration of a new channel
    [subscriptions]                 a channel, a log or a snapshot
    [outbox]                        where matched notifications go
    [trigger]                       how often a batch runs
    [[sinks]]                       further receivers of matched notifications
    [spark]                         master, settings

Paths in a pipeline file are relative to its folder.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from tidings.files import (
    address_of,
    find_problems,
    local_path,
    read_secret,
    read_toml,
    scheme_of,
)
from tidings.filters import Attributes
from tidings.model import AttributesError, Extra, Problem, TidingsError
from tidings.spark.feeds.feed_columns import FEED_COLUMNS

_log = logging.getLogger(__name__)
_MOST = 2**31 - 1  # Spark stores many of these numbers in 32 bits


class SettingsError(TidingsError):
    """A pipeline file can't be used; the message says where the problem is, and what was
    expected."""


class Files(msgspec.Struct, frozen=True, tag_field="kind", tag="files", forbid_unknown_fields=True):
    """Files that appear in a folder: JSON lines, CSV with a header, Parquet."""

    path: str
    format: Literal["json", "csv", "parquet"] = "json"
    files_per_trigger: int | None = None
    when_read: Literal["keep", "delete", "archive"] = "keep"
    archive: str | None = None  # the folder for files that were read, for `when_read = "archive"`


class Kafka(msgspec.Struct, frozen=True, tag_field="kind", tag="kafka", forbid_unknown_fields=True):
    """A Kafka topic whose values are JSON objects."""

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
    """A channel of the network or a log of changes, both of which the pipeline follows, or a
    snapshot, which is fixed."""

    log: str | None = None
    snapshot: str | None = None
    channel: str | None = None  # the address of the rendezvous point, or the channel folder
    name: str | None = None  # the name to which the token is bound, if it is bound to one
    # a file with the token for the owner; without it, the token is in TIDINGS_TOKEN
    token_file: str | None = None
    authorities: str | None = None  # a file of trusted certificate authorities
    rebuild_after: int = 1_000  # changes sent with tasks before a new snapshot is compiled


class OutboxSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    grain_minutes: int = 60
    # the column that determines grains; by default, the start of the batch determines them
    time: str | None = None


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


class ChannelSink(msgspec.Struct, frozen=True, tag_field="kind", tag="channel",
                  forbid_unknown_fields=True):  # fmt: skip
    """A sink for the channel from which the subscriptions come."""


Sink = ConsoleSink | KafkaSink | ChannelSink


class SparkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    master: str = "local[2,4]"  # up to 4 attempts per task; `local[2]` alone allows one
    remote: str | None = None
    settings: dict[str, str] = {}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    source: Source
    subscriptions: Subscriptions
    outbox: OutboxSettings
    checkpoint: str = "checkpoint"
    extra: Extra | None = None
    columns: dict[str, Any] = {}  # names with types, or tables of such names
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
        return Attributes(self.columns, extra=self.extra) if self.columns else None

    @property
    def extra_fields(self) -> Extra:
        """What happens to undeclared fields."""
        if self.extra is not None:
            return self.extra
        return "keep" if self.columns else "open"

    @property
    def hands_over(self) -> bool:
        """Whether committed batches are handed over to the channel."""
        return any(isinstance(one, ChannelSink) for one in self.sinks)

    @property
    def channel_place(self) -> str | Path | None:
        """The address or the folder of the channel that the subscriptions come from."""
        given = self.subscriptions.channel
        return given if given is None or scheme_of(given) else self.at(given)

    @property
    def token(self) -> str:
        """The token for the channel's owner. A token file takes precedence over the environment."""
        file = self.subscriptions.token_file
        if file is None:
            return os.environ.get("TIDINGS_TOKEN", "")
        token, warning = read_secret(self.at(file))
        if warning:
            _log.warning("%s", warning)
        return token


def is_json(settings: Settings) -> bool:
    """Whether the source is JSON, which may have undeclared fields."""
    source = settings.source
    return isinstance(source, Kafka) or (isinstance(source, Files) and source.format == "json")


def known_columns(settings: Settings) -> dict[str, str | None] | None:
    """For a source that defines its own columns, these columns with the families of their types,
    where known; None if the file declares the columns, or if they are not known yet."""
    source = settings.source
    if settings.columns:
        return None
    if isinstance(source, Rate):
        return {"timestamp": "time", "value": "number"}
    if isinstance(source, Feeds):
        return {name: _FEED_FAMILIES[kind] for name, kind in FEED_COLUMNS.items()}
    if isinstance(source, Files):
        for path in sorted(settings.at(source.path).glob("*.parquet"))[:1]:
            import pyarrow.parquet as pq

            return {field.name: _family_of(field.type) for field in pq.read_schema(path)}
    return None


# an address without a scheme; a folder with a colon is written ./a:1
_BARE = re.compile(r"[^/\\]+:[0-9]+(/|$)")
_FEED_FAMILIES = {"string": "string", "array<string>": "list", "timestamp": "time"}


def _family_of(kind: Any) -> str | None:
    """The family of an Arrow type; None for types that filters can't test."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _family_of(kind.value_type)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    if types.is_list(kind) or types.is_large_list(kind):
        return "list"
    return "boolean" if types.is_boolean(kind) else None


def load_settings(path: str | Path) -> Settings:
    """Read a pipeline file; raise SettingsError, with all problems, if it can't be used."""
    path = Path(path)
    file = read_toml(path, SettingsError)
    problems = list(find_problems(file.data, Settings, hidden=("folder",)))
    if not problems:
        found = msgspec.convert(file.data, Settings)
        found = msgspec.structs.replace(found, folder=path.parent.absolute())
        problems = list(_problems(found))
        if not problems:
            return _read_folder(found)
    elif isinstance(file.data.get("columns"), dict):  # report these too
        problems += _column_problems(file.data["columns"])
    raise SettingsError(file.describe(problems))


def _read_folder(found: Settings) -> Settings:
    """The settings, with the folder of a channel treated as a log. If batches are handed over, the
    settings stay as they are, because the pipeline then needs a rendezvous point. Whether the
    channel is treated as a log or not, the nodes have the same numbers."""
    given = found.subscriptions
    if given.channel is None or scheme_of(given.channel) or found.hands_over:
        return found
    given = msgspec.structs.replace(given, log=given.channel, channel=None)
    return msgspec.structs.replace(found, subscriptions=given)


def _column_problems(columns: dict[str, Any]) -> Iterator[Problem]:
    try:
        Attributes(columns)
    except AttributesError as problem:
        for place, sentence in problem.problems:
            yield Problem(("columns", *place), f"columns: {sentence}")


def _problems(found: Settings) -> Iterator[Problem]:
    """All problems that can't be found from the types of the settings alone."""
    for sentence in _sentences(found):
        place = sentence.partition(":")[0].replace("[", ".").replace("]", "").split(".")
        yield Problem(tuple(place), sentence)
    yield from _column_problems(found.columns)


def _sentences(found: Settings) -> Iterator[str]:
    """One sentence for each problem, which begins with the name of the setting."""
    source, subscriptions = found.source, found.subscriptions
    given = (subscriptions.log, subscriptions.snapshot, subscriptions.channel)
    if sum(one is not None for one in given) != 1:
        yield "subscriptions: expected one of channel, log and snapshot"
    elif subscriptions.channel is not None:
        yield from _channel_sentences(found, subscriptions.channel)
    else:
        yield from _secret_sentences(found, "without a channel")
    channels = [at for at, one in enumerate(found.sinks) if isinstance(one, ChannelSink)]
    if channels and subscriptions.log is not None:
        yield (
            f"sinks[{channels[0]}].kind: found 'channel' and subscriptions.log, expected "
            f"subscriptions.channel: write channel = {_quote(subscriptions.log)} instead of log, "
            "if it is the journal of a rendezvous point, or leave the sink out"
        )
    elif channels and subscriptions.channel is None:
        yield (
            f"sinks[{channels[0]}].kind: found 'channel' without subscriptions.channel, expected "
            f"another kind, because only a channel knows what its node numbers mean"
        )
    if len(channels) > 1:
        yield f"sinks[{channels[1]}].kind: found 'channel' again, expected it once"
    asks = subscriptions.channel is not None and (bool(channels) or _is_address(found))
    asks = asks or _is_declared(found)
    if not asks or found.columns:  # not if the channel declares the columns
        yield from find_column_problems(found)
    if found.extra is not None and not is_json(found):
        yield f'extra: found "{found.extra}", expected none, because the source is not JSON'
    is_declared = bool(found.columns) or asks
    if is_json(found) and not is_declared and found.extra_fields != "open":
        yield f'columns: found none, expected some with extra = "{found.extra}"'
    if isinstance(source, Files) and (source.when_read == "archive") != (
        source.archive is not None
    ):
        yield 'source: expected both when_read = "archive" and a folder for archive, or neither'
    if isinstance(source, Feeds) and not source.urls:
        yield "source.urls: found none, expected at least one"
    for name, number, least, most in _numbers(found):
        if number is not None and not least <= number <= most:  # this also catches NaN
            yield f"{name}: found {_show_number(number)}, expected {least} to {most:,}"
    for name, text in paths_of(found):
        if not text or "\0" in text:
            yield f"{name}: found {text!r}, expected a path"
        elif scheme_of(text) and name != "subscriptions.snapshot":
            yield (
                f"{name}: found '{text}', expected a local path: pipelines need locks "
                f"and renames, which {scheme_of(text)}:// does not support"
            )
    yield from _overlaps(found)


def find_column_problems(found: Settings) -> Iterator[str]:
    """The problems with the columns of a pipeline, one sentence each."""
    source, time = found.source, found.outbox.time
    if isinstance(source, Files) and source.format == "csv" and not found.columns:
        yield "columns: found none, expected names and types, because the source is text"
    if time is not None and found.columns and not _is_timestamp(found, time):
        yield f"outbox.time: found '{time}', expected a timestamp among the columns"


def _channel_sentences(found: Settings, address: str) -> Iterator[str]:
    if scheme_of(address) not in ("", "tidings", "tidings+tls") or _BARE.match(address):
        yield (
            f"subscriptions.channel: found {address!r}, expected an address such as "
            f"tidings://127.0.0.1:7400, or the folder of a channel"
        )
        return
    if not scheme_of(address):
        yield from _secret_sentences(found, "with the folder of a channel")


def _secret_sentences(found: Settings, when: str) -> Iterator[str]:
    for name in ("name", "token_file", "authorities"):
        if getattr(found.subscriptions, name) is not None:
            yield f"subscriptions.{name}: expected none {when}"


def _is_declared(found: Settings) -> bool:
    """Whether the channel of the subscriptions' folder already declares attributes."""
    place = found.subscriptions.log or found.subscriptions.channel
    if place is None or scheme_of(place) or not (found.at(place) / "lock").exists():
        return False
    from tidings.store import ChangeLog, LogError

    try:
        return ChangeLog(found.at(place)).last_declaration.declaration.types is not None
    except LogError:  # reported when the folder is opened
        return False


def _is_address(found: Settings) -> bool:
    return bool(scheme_of(found.subscriptions.channel or ""))


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _is_timestamp(found: Settings, name: str) -> bool:
    try:
        attributes = found.attributes
    except AttributesError:  # this problem is reported separately
        return True
    return attributes is not None and attributes.type((name,)) == "timestamp"


def _numbers(found: Settings) -> Iterator[tuple[str, float | None, int, int]]:
    """The names and values of all numeric settings, with the valid bounds of each."""
    source = found.source
    for name in ("files_per_trigger", "rows_per_trigger", "rows_per_second"):
        yield f"source.{name}", getattr(source, name, None), 1, _MOST
    yield "trigger.every_seconds", found.trigger.every_seconds, 0, _MOST
    yield "outbox.grain_minutes", found.outbox.grain_minutes, 1, _MOST
    yield "subscriptions.rebuild_after", found.subscriptions.rebuild_after, 1, _MOST
    for at, sink in enumerate(found.sinks):
        yield f"sinks[{at}].rows", getattr(sink, "rows", None), 0, _MOST


def paths_of(found: Settings) -> Iterator[tuple[str, str]]:
    """The names and values of all paths in a pipeline file."""
    given: list[tuple[str, str | None]] = [
        ("checkpoint", found.checkpoint),
        ("outbox.path", found.outbox.path),
        ("subscriptions.log", found.subscriptions.log),
        ("subscriptions.channel", None if _is_address(found) else found.subscriptions.channel),
        ("subscriptions.snapshot", found.subscriptions.snapshot),
        *((f"source.{at}", getattr(found.source, at, None)) for at in ("path", "archive", "spool")),
    ]
    return ((name, path) for name, path in given if path is not None)


def _overlaps(found: Settings) -> Iterator[str]:
    """Refuse folders of the pipeline inside the source's folder, because Spark reads every file
    there as rows, even in subfolders named like those of an outbox (`grain=...`)."""
    if not isinstance(found.source, Files) or scheme_of(found.source.path):
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
    # Python may refuse to print such a large number
    if isinstance(number, int) and abs(number) > 10**20:
        return "an integer of more than 20 digits"
    return f"{number}"
