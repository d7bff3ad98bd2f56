"""The relations of a channel at its rendezvous point.

    Ask with related=0.7 ──related_interests──> an exact node, and a related node above it
    attributes ──channel_relations──> related nodes of a notification, reasons, its context

    related_interests.py   the nodes of the channel, including related nodes
    channel_relations.py   finds related nodes, and writes the bytes about them for frames
    related_chains.py      the related nodes above each filter
    publication_merits.py  the merits of publications, for a queue in the order of merit

Used by broker, for channels with `[relations]` in their file. Start at related_interests.py.
"""

from tidings.channel.related.channel_relations import ChannelRelations
from tidings.channel.related.publication_merits import PublicationMerits
from tidings.channel.related.related_interests import RelatedArrayInterests

__all__ = ["ChannelRelations", "PublicationMerits", "RelatedArrayInterests"]
