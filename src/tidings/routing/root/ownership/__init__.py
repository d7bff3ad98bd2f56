"""Whose filters the nodes are, and how many of them each owner may have."""

from tidings.routing.root.ownership.claims import MOST_OWNERS, Claims
from tidings.routing.root.ownership.shares import Verdict, describe, judge, lighten

__all__ = ["MOST_OWNERS", "Claims", "Verdict", "describe", "judge", "lighten"]
