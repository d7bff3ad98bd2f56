"""Dead letters: the rows that a pipeline refused. Dead letters can be read, corrected and replayed.

    dead/ ──list, show──> reasons, texts ──correct the columns or the texts──> replay ──> the source

A letter is identified by its batch and its row. A replay takes the letters that now fit the
columns, writes their raw text to one file, and moves it into the folder of the source. Each letter
is replayed once:

    1. source/.NAME             the file, synced, under a name that Spark ignores
    2. _tidings/replayed/NAME   its letters, synced
    3. source/NAME              the file is renamed

If the process is killed before step 2 is done, the letters do not count as replayed. If the process
is killed after step 2, the next replay does step 3.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from tidings.files import release_lock, replace_file, sync, take_lock
from tidings.model import TidingsError
from tidings.notifications import Decoded, decode_json, decode_text_columns
from tidings.spark.outbox.outbox import Outbox
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.outbox.sealed_files import read_sealed, write_sealed
from tidings.spark.pipeline.inputs import declare_columns, find_description
from tidings.spark.pipeline.settings import Files, Kafka, Settings
from tidings.spark.pipeline.source_streams import read_declared_schema

REPLAYED = "replayed"
_BREAKS = re.compile(r"[\r\n]+")
Name = tuple[int, int]  # the batch and the row of a letter


class Letter(msgspec.Struct, frozen=True):
    """A refused row."""

    batch: int
    row: int  # the index of the row among the refused rows of its batch, from 0
    reason: str
    raw: str

    @property
    def name(self) -> Name:
        return self.batch, self.row


class LetterReplay(msgspec.Struct, frozen=True):
    """The result of a replay."""

    replayed: int
    file: str | None  # the file that was written
    refused: list[Letter]  # letters that still don't fit, with the reason


class _Record(msgspec.Struct, frozen=True):
    source: str
    letters: list[Name]


def read_letters(reader: OutboxReader, first: int = 0, end: int | None = None) -> Iterator[Letter]:
    """The letters of an outbox, batch by batch. The files are read one at a time, and in pieces."""
    for commit in reader.commits(first, end):
        row = 0
        for file in reader.files(commit, dead=True):
            for batch in reader.batches(file, ["reason", "raw"]):
                for reason, raw in zip(*(one.to_pylist() for one in batch.columns), strict=True):
                    yield Letter(commit.batch, row, reason or "", raw or "")
                    row += 1


def list_replayed(outbox: str | Path) -> set[Name]:
    """The letters that were replayed; the outbox must be local."""
    return {name for one in _records(Outbox(outbox)).values() for name in one.letters}


def _records(outbox: Outbox) -> dict[str, _Record]:
    found = dict[str, _Record]()
    for path in sorted((outbox.home / REPLAYED).glob("*.json")):
        data = read_sealed(path)
        if data is not None:
            found[path.stem] = msgspec.json.decode(data, type=_Record)
    return found


def replay_letters(
    settings: Settings, letters: Iterable[Letter], to: Path | None = None
) -> LetterReplay:
    """Write the letters that fit the columns to a new file of the source, except those that were
    replayed before. With `to`, write them to that file and record nothing."""
    source = settings.source
    form = source.format if isinstance(source, Files) else "json"
    if not isinstance(source, Files | Kafka):
        raise TidingsError("source: expected files or Kafka; other sources have no dead letters")
    if isinstance(source, Kafka) and to is None:
        raise TidingsError(
            "source: found Kafka, expected files: rows are not replayed to Kafka; write the "
            "letters to a file with --to, and publish its lines to the topic"
        )
    outbox = Outbox(settings.at(settings.outbox.path))
    if not outbox.home.is_dir():
        raise TidingsError(f"outbox.path: there is no outbox in {outbox.path}")
    settings = declare_columns(settings, find_description(settings, outbox.channel_folder))
    try:
        lock = take_lock(outbox.home / "replay.lock")
    except BlockingIOError:
        raise TidingsError(f"another process is replaying dead letters of {outbox.path}") from None
    try:
        before = {name for one in _finish(outbox).values() for name in one.letters}
        waiting = [one for one in letters if one.name not in before]
        good, refused = _sort_out(settings, form, waiting)
        if not good:
            return LetterReplay(0, None, refused)
        data = _file_of(settings, form, [one.raw for one in good])
        if to is not None:
            replace_file(to, data)
            return LetterReplay(len(good), str(to), refused)
        assert isinstance(source, Files)
        folder = settings.at(source.path)
        ending = "csv" if form == "csv" else "jsonl"
        names = msgspec.json.encode([one.name for one in good])
        name = f"replayed-{hashlib.sha256(names + data).hexdigest()[:16]}.{ending}"
        replace_file(folder / f".{name}", data)
        record = _Record(str(folder), [one.name for one in good])
        write_sealed(outbox.home / REPLAYED / f"{name}.json", msgspec.json.encode(record))
        _finish(outbox)
        return LetterReplay(len(good), str(folder / name), refused)
    finally:
        release_lock(lock)


def _finish(outbox: Outbox) -> dict[str, _Record]:
    """Rename the files of replays that were killed before the rename."""
    found = _records(outbox)
    for name, one in found.items():
        hidden = Path(one.source, f".{name}")
        if hidden.exists():
            hidden.rename(Path(one.source, name))
            sync(Path(one.source))
    return found


def _sort_out(
    settings: Settings, form: str, letters: list[Letter]
) -> tuple[list[Letter], list[Letter]]:
    """The letters that now fit the columns, and the other letters with the reasons why they do not
    fit."""
    if not letters:
        return [], []
    decoded = _decode(settings, form, [one.raw for one in letters])
    why = dict(zip(decoded.bad_rows.tolist(), decoded.reasons, strict=True))
    good = [one for at, one in enumerate(letters) if at not in why]
    bad = [msgspec.structs.replace(letters[at], reason=why[at]) for at in sorted(why)]
    return good, bad


def _decode(settings: Settings, form: str, texts: list[str]) -> Decoded:
    schema = read_declared_schema(settings)
    if form == "json":
        return decode_json(pa.array(texts, pa.string()), schema, extra=settings.extra_fields)
    rows = [_fields(text, schema.names) for text in texts]
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(schema.names))]
    wrong = [
        None if len(row) == len(schema.names) else text
        for row, text in zip(rows, texts, strict=True)
    ]
    names = [*schema.names, "_wrong"]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(wrong, pa.string())], names=names)
    return decode_text_columns(batch, schema, "_wrong")


def _fields(text: str, names: list[str]) -> list[str | None]:
    """The fields of a CSV row. A dead letter contains the line, or a JSON object if the line could
    be split."""
    try:
        found = msgspec.json.decode(text, type=dict[str, str | None])
        return [found.get(name) for name in names]
    except msgspec.DecodeError:
        line = next(csv.reader([text]), [])
        fields: list[str | None] = [one or None for one in line]
        return fields if len(line) == len(names) else [*fields, *([None] * (len(names) + 1))]


def _file_of(settings: Settings, form: str, texts: list[str]) -> bytes:
    if form == "json":
        # In JSON, a line break is white space, except in strings, where it is not allowed.
        return "".join(_BREAKS.sub(" ", text) + "\n" for text in texts).encode()
    names = read_declared_schema(settings).names
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(_fields(text, names) for text in texts)
    return made.getvalue().encode()
