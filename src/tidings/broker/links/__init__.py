"""Links of a running node.

    node ──above: one link, a lane for each channel──> node above
     ^ `──locators: where does this node belong?──> preprocessors of each channel
     `── neighbours, as fast as their credit allows

    above.py     the link to a node above, which reconnects when it is lost
    lane.py      one channel of a link
    credit.py    the credit that a node gives its neighbours
    locator.py   the links of a router to the preprocessors of one channel
    locators.py  the locators of a router, one for each channel that needs places

Only the broker uses this folder. Start at above.py.
"""

from tidings.broker.links.above import Above, hop_name
from tidings.broker.links.credit import Credit
from tidings.broker.links.lane import ChannelLane, Lane
from tidings.broker.links.locators import Locators

__all__ = ["Above", "ChannelLane", "Credit", "Lane", "Locators", "hop_name"]
