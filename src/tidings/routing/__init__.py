"""Forwarding by header: routers, rendezvous points, subscribers and publishers as state machines.

    publisher ──Publish──> [rendezvous point] ──Notification──> [router] ──> ... ──> subscriber
              <─Published─  tag, number, journal   header: nodes   label for each neighbour

    protocol/     the messages and their encoding; limits; lineage
    early/        bodies that are sent before their notifications, in channels with relations
    forwarding/   routers: the label graph, the neighbours, the owners of nodes
    learning/     what a node learns from what it forwards, and which neighbours get bodies early
    channels/     many channels over the links of one router
    root/         the rendezvous point: nodes, numbers, stamps of publishers, shares of owners
    clients/      subscribers and publishers: every loss is noticed, duplicates are dropped

Nothing here does I/O or reads a clock. A state machine takes messages and the current time, and
returns the messages to send. So tests run whole networks in one process, with simulated time
(tests/routing).

Network, broker, store and studies import from these folders. Users use the agent (network) instead.
Start at forwarding/label_graph.py, then forwarding/router.py; docs/network.md explains how the
network operates.
"""

from tidings.routing.forwarding.label_graph import LabelGraph

__all__ = ["LabelGraph"]
