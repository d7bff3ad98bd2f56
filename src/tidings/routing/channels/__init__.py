"""Many channels over the links of one router.

                     hop "east"            hop "west"         a hop: a node above, which is the next
                   Open 1 "fx"           Open 1 "tea"         one on the way to a rendezvous point
                          \\               /
                          [   channels   ]                    one state machine for each channel
                          /              \\
            Open 1 "fx", 2 "tea"      Open 1 "tea"            links to neighbours below

    channels.py     the channels of a node: made when a neighbour opens them, and dropped when no
                    neighbour has them any more
    channel.py      one channel: its state machine, and its numbers on links
    node_links.py   the links of a node: what is sent over them, and what waits
    channel_link.py the channels of one link
    credit.py       how much data of each channel may be in flight on a link
    routes.py       a table from channel to hop
    repeats.py      pulses: one message for each link repeats the last message of each channel
    sleeping.py     channels without traffic, of which only a few values are kept

A channel has its own number on each link. The lower end of a link chooses the number, because a
channel is always opened from below, for a subscriber or a publisher. So neither end waits for an
answer, and the two ends never choose the same number. A number is never reused on the same link.

The state machine of a channel (forwarding/router.py) has no data of other channels. So as long as
numbers are translated correctly, no message of one channel can reach another. Nothing here does I/O
or reads a clock. Used by network, broker and studies. Users need only `Route`, to run routers in
their own programs. Start at channels.py.
"""

from tidings.routing.channels.channel import Channel
from tidings.routing.channels.channel_link import Out
from tidings.routing.channels.channels import KEEP_ALIVE, Channels
from tidings.routing.channels.credit import WINDOW, Flow, Frames
from tidings.routing.channels.node_links import ABOVE, Links
from tidings.routing.channels.repeats import ReceivedMessages, Repeats
from tidings.routing.channels.routes import Route, Routes

__all__ = [
    "ABOVE",
    "KEEP_ALIVE",
    "WINDOW",
    "Channel",
    "Channels",
    "Flow",
    "Frames",
    "Links",
    "Out",
    "ReceivedMessages",
    "Repeats",
    "Route",
    "Routes",
]  # fmt: skip
