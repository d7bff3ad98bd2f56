"""Links of a running node.

    node ──above: one link, a lane for each channel──> node above
     ^ `──locator: where does this node belong?──> preprocessors
     `── neighbours, as fast as their credit allows

    above.py    the link to a node above, which reconnects when it is lost
    lane.py     one channel of a link
    credit.py   the credit that a node gives its neighbours
    locator.py  the links of a router to preprocessors

Only the broker uses this folder. Start at above.py.
"""

from tidings.broker.links.above import Above, hop_name
from tidings.broker.links.credit import Credit
from tidings.broker.links.lane import ChannelLane, Lane
from tidings.broker.links.locator import Locator

__all__ = ["Above", "ChannelLane", "Credit", "Lane", "Locator", "hop_name"]
