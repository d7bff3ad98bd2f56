"""The channel of a pipeline: the subscriptions come from the channel, and the rows go to it.

    owner ──changes──> mirror ──a version──> tasks ──> outbox ──parts──> owner

    owner.py              asks the owner of a channel, and waits while it does not answer
    mirror.py             the channel's nodes by version, on disk
    followed_channel.py   the subscriptions of a pipeline that follows a channel
    row_parts.py          the committed rows of a batch as parts, with payloads
    handing_over.py       hands committed batches over, in order

The owner is the rendezvous point of the network; `tidings.channel` has the link to it. Only the
lowest nodes that match a row, at the version of its batch, are sent with the row. So the owner must
know every covering that the pipeline knows. The owner replaces nodes that have been removed since.

This folder is used by `pipeline` (docs/pipelines.md); studies call `read_handed` to find out which
batches were handed over. Start at followed_channel.py.
"""

from tidings.spark.channel.handing_over import HANDED, read_handed

__all__ = ["HANDED", "read_handed"]
