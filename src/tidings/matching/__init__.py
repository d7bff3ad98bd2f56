"""Many filters at once: rank space, the batch join, and the Matcher that runs on them."""

from tidings.matching.matcher import Matcher

__all__ = ["Matcher"]
