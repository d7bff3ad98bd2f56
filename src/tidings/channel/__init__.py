"""A channel as a pipeline uses it: its filters by version, and a link that hands over tagged
batches.

    pipeline ──describe, changes──> owner (the rendezvous point)      the filters, at a version
             ──hand_over(parts)──>        numbers, writes, forwards    each part once

    changes.py    the description of a channel, and the changes to its nodes
    tagged_part.py  a part of a tagged batch, as columns
    channel_declaration.py  what the owner declares: its attributes and its kind of interest
    renumbering.py    replaces nodes whose interests have changed their meaning
    interests/    the filters of the channel, by the million, at its rendezvous point
    related/      the relations of the channel, at its rendezvous point
    owner_link.py the link to the owner, for code without `async`
    link_work.py  a question or a hand-over, which may take several connections
    owner_connection.py    one connection of the link

Used by spark, and by programs that tag notifications themselves (docs/network.md). Start at
owner_link.py.
"""

from tidings.channel.changes import Changes, Description, NodeChange
from tidings.channel.channel_declaration import Declaration
from tidings.channel.owner_connection import UNOWNED
from tidings.channel.owner_link import ChannelLink
from tidings.channel.renumbering import renumber
from tidings.channel.tagged_part import MOST_BYTES, Part
from tidings.network import Outdated

__all__ = [
    "MOST_BYTES",
    "UNOWNED",
    "Changes",
    "ChannelLink",
    "Declaration",
    "Description",
    "NodeChange",
    "Outdated",
    "Part",
    "renumber",
]
