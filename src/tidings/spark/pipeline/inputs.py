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
    extra_of,
    is_read_by_class,
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
from tidings.spark.pipeline.settings import Settings, declared_problems, is_json
from tidings.spark.pipeline.streams import has_column
from tidings.spark.pipeline.subscription_source import FixedSubscriptions, FollowedSubscriptions
from tidings.spark.tagging.column_checks import check_columns, check_declared_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED = (
    NOTIFICATION, "version", NODES, NUMBERS, TOLD, "grain", PAYLOAD, PLACE, PLACES
)  # fmt: skip
Subscriptions = FixedSubscriptions | FollowedSubscriptions | FollowedChannel


def open_subscriptions(settings: Settings, folder: Path, *, patient: bool = True) -> Subscriptions:
    """The subscriptions that a pipeline file names. What is known about a channel is stored in
    `folder`. Without `patient`, a channel that does not answer is an error."""
    given = settings.subscriptions
    if given.snapshot is not None:
        return FixedSubscriptions(settings.place(given.snapshot))
    if given.channel is None:
        return FollowedSubscriptions(
            settings.at(given.log or ""), settings.attributes, given.rebuild_after
        )
    trusted = None if given.authorities is None else settings.at(given.authorities)
    place = settings.channel_place
    assert place is not None
    token = settings.token if isinstance(place, str) else ""
    owner = ChannelOwner(
        place, name=given.name, token=token, authorities=trusted, folder=folder,
        patient=patient,
    )  # fmt: skip
    return FollowedChannel(owner, folder, given.rebuild_after)


def declare_columns(settings: Settings, said: Description | None) -> Settings:
    """The settings with the columns that a channel declares, if the subscriptions come from a
    channel."""
    if said is None:
        return settings
    is_read = is_read_by_class(said)
    columns = {} if is_read else dict(said.attributes or {})
    if "subject" in columns and not has_column(settings, "subject"):
        del columns["subject"]  # a channel always declares this attribute
    found = msgspec.structs.replace(
        settings, columns=columns, extra="open" if is_read else extra_of(said)
    )
    for sentence in declared_problems(found):
        channel = settings.subscriptions.channel
        raise TidingsError(f"{sentence} (the channel {channel} declares the columns)")
    return found


def load_checked_view(settings: Settings, schema: StructType, wanted: Subscriptions) -> View:
    """The current view of the subscriptions, after checking that it fits the source's columns.

    The check also covers filters that were dropped since the last compilation. So if the check
    fails, the latest version is compiled and checked again.
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
        # Anybody may subscribe to anything, so a filter that does not fit must not end the
        # pipeline.
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
