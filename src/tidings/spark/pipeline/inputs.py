"""Opens the subscriptions of a pipeline, and checks that they fit the columns of its source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidings.channel import Description
from tidings.model import AttributesError, TidingsError
from tidings.snapshots import View
from tidings.spark.channel.followed_channel import (
    FollowedChannel,
    attributes_of,
    extra_of,
    is_read_by_class,
    read_description,
)
from tidings.spark.channel.owner import ChannelOwner
from tidings.spark.outbox.batches.batch_stages import EXTRA, PAYLOAD
from tidings.spark.outbox.batches.numbering import (
    NODES,
    NOTIFICATION,
    NUMBERS,
    PLACE,
    PLACES,
    TOLD,
)
from tidings.spark.pipeline.settings import Settings, find_column_problems, is_json
from tidings.spark.pipeline.source_streams import has_column
from tidings.spark.pipeline.subscription_source import (
    FixedSubscriptions,
    FollowedSubscriptions,
    describe_log,
)
from tidings.spark.tagging.column_checks import check_columns, check_declared_columns
from tidings.store import LOCK, ChangeLog
from tidings.store.declared import DeclarationError, find_difference

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED = (
    NOTIFICATION, "version", NODES, NUMBERS, TOLD, "grain", PAYLOAD, PLACE, PLACES
)  # fmt: skip
Subscriptions = FixedSubscriptions | FollowedSubscriptions | FollowedChannel


def open_subscriptions(settings: Settings, folder: Path, *, patient: bool = True) -> Subscriptions:
    """The subscriptions that a pipeline file names. The mirror of a channel is stored in `folder`.
    Without `patient`, a channel that does not answer is an error, and nothing is declared."""
    given = settings.subscriptions
    if given.snapshot is not None:
        return FixedSubscriptions(settings.place(given.snapshot))
    if given.channel is None:
        return FollowedSubscriptions(
            settings.at(given.log or ""), settings.attributes, given.rebuild_after,
            declares=patient,
        )  # fmt: skip
    trusted = None if given.authorities is None else settings.at(given.authorities)
    place = settings.channel_place
    assert place is not None
    token = settings.token if isinstance(place, str) else ""
    owner = ChannelOwner(
        place, name=given.name, token=token, authorities=trusted, folder=folder,
        patient=patient,
    )  # fmt: skip
    return FollowedChannel(owner, folder, given.rebuild_after)


def find_description(settings: Settings, folder: Path) -> Description | None:
    """The declaration of a pipeline's channel; None if only the owner of the channel knows it.
    `folder` means the same as in `open_subscriptions`."""
    given = settings.subscriptions
    if given.channel is not None:
        return read_description(folder)
    if given.log is None or not (settings.at(given.log) / LOCK).exists():
        return None
    return describe_log(ChangeLog(settings.at(given.log), settings.attributes))


def declare_columns(settings: Settings, said: Description | None) -> Settings:
    """The settings with the columns that a channel declares, if the subscriptions come from a
    channel. Raises DeclarationError if the columns in the file differ from the declared ones."""
    if said is None:
        return settings
    is_read = is_read_by_class(said)
    if not is_read:
        _need_declared(settings, said)
    columns = {} if is_read else dict(said.attributes or {})
    if "subject" in columns and not has_column(settings, "subject"):
        del columns["subject"]  # every channel declares `subject` by itself
    found = msgspec.structs.replace(
        settings, columns=columns, extra="open" if is_read else extra_of(said)
    )
    for sentence in find_column_problems(found):
        raise TidingsError(f"{sentence} (the channel {_place(settings)} declares the columns)")
    return found


def _need_declared(settings: Settings, said: Description) -> None:
    """Raise DeclarationError if the columns of the file are not those of the channel."""
    given, declared = settings.attributes, attributes_of(said)
    where = f"the channel {_place(settings)}"
    difference = None if given is None else find_difference(given, declared, where)
    if difference is None and declared is not None and settings.extra not in (None, said.extra):
        difference = f"extra is '{settings.extra}' here, but {where} has '{said.extra}'"
    if difference is not None:
        raise DeclarationError(
            f"columns: {difference}; correct the file, or change the channel with `tidings channel "
            "declare`"
        )


def _place(settings: Settings) -> str:
    return str(settings.subscriptions.channel or settings.subscriptions.log)


def load_checked_view(settings: Settings, schema: StructType, wanted: Subscriptions) -> View:
    """The current view of the subscriptions, after checking that it fits the source's columns.

    Filters that were dropped after the last compilation are checked too. So if the check fails, the
    latest version is compiled again and checked again.
    """
    view = wanted.view(wanted.version)
    try:
        check_schema(settings, schema, view, wanted)
    except AttributesError:
        wanted.compile_latest()
        view = wanted.view(wanted.version)
        check_schema(settings, schema, view, wanted)
    return view


def check_schema(settings: Settings, schema: StructType, view: View, wanted: Subscriptions) -> None:
    """Refuse a source whose columns don't fit the outbox or the filters."""
    names = schema.fieldNames()
    reserved = (*RESERVED, EXTRA) if keeps_extra(settings) else RESERVED
    for name in names:
        if name.lower() in reserved:  # Spark ignores case
            raise TidingsError(
                f"the source has a column '{name}', a name that the outbox uses; rename the column"
            )
    if settings.subscriptions.channel is not None:
        # Any client may subscribe with any filter, so a filter that does not fit the columns must
        # not end the pipeline.
        said = wanted.description
        if said is None or not is_read_by_class(said):
            check_declared_columns(schema, view.matcher.attributes)
    else:
        is_open = is_json(settings) and settings.extra_fields == "open"
        check_columns(schema, view, strict=not is_open)
    time_column = settings.outbox.time
    if time_column is None:
        return
    if time_column not in names:
        raise TidingsError(f"outbox.time: the source has no column '{time_column}'")
    kind = schema[time_column].dataType.simpleString()
    if kind not in ("timestamp", "timestamp_ntz", "date"):
        raise TidingsError(f"outbox.time: column '{time_column}' is {kind}, expected a timestamp")


def keeps_extra(settings: Settings) -> bool:
    """Whether the outbox has a column of undeclared fields."""
    return is_json(settings) and settings.extra_fields in ("open", "keep")
