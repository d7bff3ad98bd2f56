"""Many filters at once: rank space, the batch join, and the Matcher that runs on them."""

from tidings.matching.matcher import Matcher
from tidings.matching.warming import load_kernels

__all__ = ["Matcher", "load_kernels"]
