"""Forwarding by header: routers, rendezvous points, subscribers and publishers as state machines.

    publisher ──Publish──> [rendezvous point] ──Notification──> [router] ──> ... ──> subscriber
              <─Published─  tag, number, journal   header: nodes   label for each neighbour

    protocol/     what they say to each other, as messages and as bytes; limits; lineage
    forwarding/   routers: the graph with its labels, neighbours, whose filters the nodes are
    root/         the rendezvous point: nodes, numbers, stamps of publishers, shares of owners
    clients/      subscribers and publishers: nothing lost without notice, nothing taken twice

Nothing here does I/O or reads a clock: a machine is given messages and the time, and gives back
what is to be sent. So whole networks are tested in one process, in a time of their own
(tests/routing).

The folders' exports are for network, broker, store and studies, not for users: they have the agent
(network). Start at forwarding/label_graph.py, then forwarding/router.py; docs/network.md is the
theory of operation.
"""

from tidings.routing.forwarding.label_graph import LabelGraph

__all__ = ["LabelGraph"]
