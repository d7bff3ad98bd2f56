"""Forwarding by header: routers as state machines that do no I/O and read no clock."""

from tidings.routing.forwarding.label_graph import LabelGraph

__all__ = ["LabelGraph"]
