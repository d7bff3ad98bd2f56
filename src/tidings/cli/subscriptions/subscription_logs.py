"""Finds the log that a command refers to, and converts ids to the type of the log's ids."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import read_types
from tidings.files import local_path
from tidings.filters import Attributes, Filter, misfits_of
from tidings.filters.language import article, attributes_of
from tidings.model import Id

if TYPE_CHECKING:
    from tidings.store import ChangeLog


class LogPlace(msgspec.Struct, frozen=True):
    """The path of a log that perhaps does not exist yet, and what the filters in it are checked
    against.

    Nothing is written before `open` is called, so a filter that is refused leaves no files behind.
    """

    path: Path
    attributes: Attributes | None
    """The attributes that the channel declares; if it declares none yet, the attributes that were
    given."""
    columns: dict[str, str | None] | None = None
    """The columns of the source, with their families; None if the source does not define them."""
    given: Attributes | None = None
    """The attributes that the first change will declare, if the channel declares none yet."""

    def check(self, filter_: Filter, where: str) -> None:
        """Refuse a filter that would never match, because it tests a column that the source lacks,
        or because a test does not fit the type of its column."""
        if self.columns is None:
            return
        for path in sorted(attributes_of(filter_.expression)):
            if path[0] not in self.columns:
                near = difflib.get_close_matches(path[0], self.columns, n=3)
                hint = (
                    f"did you mean {' or '.join(near)}?"
                    if near
                    else "it has " + ", ".join(list(self.columns)[:8])
                )
                raise BadInput(f"{where}: the source has no column '{path[0]}'; {hint}")
        for one in misfits_of(filter_.form, self):
            found = f"the column '{one.path[0]}' is {article(self.columns[one.path[0]] or '')}"
            raise BadInput(f"{where}: {found}, but {one.describe(many=False)}")

    def type(self, path: tuple[str, ...]) -> str | None:
        """The family of a column; see `misfits_of`."""
        return (self.columns or {}).get(path[0]) if len(path) == 1 else None

    def open(self) -> ChangeLog:
        """Open the log; create it if it does not exist."""
        from tidings.store import ChangeLog  # loads NumPy, which other commands do not need

        return ChangeLog(self.path, self.given)


def open_log(where: str) -> ChangeLog:
    """Open the log of a folder or of a pipeline file; raise BadInput if there is none."""
    return find_log(where, make=False).open()


def find_log(
    where: str, types: str | None = None, others: bool = False, *, make: bool = True
) -> LogPlace:
    """Find the log of a folder or of a pipeline file. Raise BadInput if there can't be a log, or if
    there is none and `make` is false."""
    path = local_path(where, "a log of subscriptions")
    columns: dict[str, str | None] | None = None
    declared = read_types(types, others).attributes
    if path.is_file():
        if types is not None:
            raise BadInput(
                f"{where}: the channel of this pipeline declares the attributes; leave out --types"
            )
        from tidings.spark.pipeline import known_columns, load_settings

        settings = load_settings(path)
        columns = known_columns(settings)
        place = settings.channel_place
        if isinstance(place, str):
            raise BadInput(
                f"{where}: the pipeline has no log, because its subscriptions come from the "
                f"channel {place}; use `tidings subscribe` instead"
            )
        if place is not None:  # the rendezvous point of the channel checks filters
            path, declared, columns = place, None, None
        elif settings.subscriptions.log is None:
            raise BadInput(
                f"{where}: the pipeline uses a snapshot, which can't be changed; expected a log"
            )
        else:
            path, declared = settings.at(settings.subscriptions.log), settings.attributes
    elif path.suffix == ".toml" and not path.exists():
        raise BadInput(f"{where}: there is no such file")
    from tidings.store import LOCK

    if not (path / LOCK).exists():
        if not make:
            raise BadInput(
                f"{path}: there is no log of subscriptions; `subscriptions add` creates one"
            )
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BadInput(f"{path}: found other files, expected a log or an empty folder")
    elif make:  # without `make`, no filter is parsed, so no declaration is needed
        return _find_declared_place(path, declared, columns)
    return LogPlace(path, declared, columns, declared)


def _find_declared_place(
    path: Path, given: Attributes | None, columns: dict[str, str | None] | None
) -> LogPlace:
    """The place of an existing log. If an older release wrote the log, the attributes are those
    with which a pipeline last compiled the log."""
    from tidings.store import ChangeLog

    log = ChangeLog(path, given)
    found = log.attributes
    told = log.last_declaration
    if found is None and not told.had_root and (path / "snapshots").is_dir():
        from tidings.spark.loading import home_of, latest_attributes

        found = given = latest_attributes(home_of(path))
    return LogPlace(path, found, columns if told.declaration.types is None else None, given)


def convert_id(log: ChangeLog, who: str) -> Id:
    return convert_ids(log, [(who, "")])[0][0]


def convert_ids(log: ChangeLog, pairs: list[tuple[Id, str]]) -> list[tuple[Id, str]]:
    """Convert ids to the type of the log's ids, integer or text; an empty log accepts either."""
    kind = log.id_kind or _common_kind(id_ for id_, _ in pairs)
    numbers = all(re.fullmatch("-?[0-9]+", str(id_)) for id_, _ in pairs)
    if kind is str or (not numbers and not log.subscriptions()):
        return [(str(id_), text) for id_, text in pairs]
    made: list[tuple[Id, str]] = []
    for id_, text in pairs:
        # Python refuses to parse integers with thousands of digits.
        if not re.fullmatch("-?[0-9]{1,1000}", str(id_)):
            raise BadInput(f"found the id '{id_}', but the ids of {log.path} are integers")
        made.append((int(id_), text))
    return made


def _common_kind(ids: Iterable[Id]) -> type:
    return int if all(isinstance(id_, int) for id_ in ids) else str
