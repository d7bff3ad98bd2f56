"""The states of a node at a router, in one table. The diagram in the docs is generated from this
table."""

from __future__ import annotations

from enum import Enum


class NodeState(Enum):
    """The state of a node at a router."""

    ABSENT = "absent"  # no neighbour below wants the node
    PENDING = "pending"  # requested from the node above; its place in the graph is not known yet
    ACTIVE = "active"  # acknowledged from above
    # the node was active, but nothing has arrived from above for a while
    INTERRUPTED = "interrupted"
    LEAVING = "leaving"  # unsubscribed at the node above, but this is not confirmed yet
    # The node is wanted again before its unsubscription was confirmed. It is requested from the
    # node above only after the confirmation, so every answer belongs to the last request.
    RETURNING = "returning"


class Event(Enum):
    """What happens to a node."""

    WANTED = "wanted"  # a neighbour subscribes
    UNWANTED = "unwanted"  # the last neighbour unsubscribed
    TOLD = "told"  # the router learns the place of the node in the graph
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    SILENT = "silent"  # nothing has arrived for a while
    GONE = "confirmed gone"


class Action(Enum):
    """What the router does in response."""

    ASK = "subscribe above"
    JOIN = "put it in the graph, serve those who wait"
    LEAVE = "unsubscribe above"
    FORGET = "take it out of the graph"
    REFUSE = "refuse all who want it"


Step = tuple[NodeState, tuple[Action, ...]]
_ABSENT, _PENDING, _ACTIVE = NodeState.ABSENT, NodeState.PENDING, NodeState.ACTIVE
_INTERRUPTED, _LEAVING = NodeState.INTERRUPTED, NodeState.LEAVING
_RETURNING = NodeState.RETURNING

TRANSITIONS: dict[tuple[NodeState, Event], Step] = {
    (_ABSENT, Event.WANTED): (_PENDING, (Action.ASK,)),
    (_PENDING, Event.TOLD): (_ACTIVE, (Action.JOIN,)),
    (_PENDING, Event.SILENT): (_PENDING, (Action.ASK,)),
    (_PENDING, Event.UNWANTED): (_LEAVING, (Action.LEAVE,)),
    (_PENDING, Event.REFUSED): (_ABSENT, (Action.REFUSE, Action.FORGET)),
    (_ACTIVE, Event.TOLD): (_ACTIVE, (Action.JOIN,)),
    (_ACTIVE, Event.SILENT): (_INTERRUPTED, (Action.ASK,)),
    (_ACTIVE, Event.UNWANTED): (_LEAVING, (Action.LEAVE,)),
    (_ACTIVE, Event.REFUSED): (_ABSENT, (Action.REFUSE, Action.FORGET)),
    (_INTERRUPTED, Event.TOLD): (_ACTIVE, (Action.JOIN,)),
    (_INTERRUPTED, Event.ACKNOWLEDGED): (_ACTIVE, ()),
    (_INTERRUPTED, Event.SILENT): (_INTERRUPTED, (Action.ASK,)),
    (_INTERRUPTED, Event.UNWANTED): (_LEAVING, (Action.LEAVE,)),
    (_INTERRUPTED, Event.REFUSED): (_ABSENT, (Action.REFUSE, Action.FORGET)),
    (_LEAVING, Event.WANTED): (_RETURNING, ()),
    (_LEAVING, Event.SILENT): (_LEAVING, (Action.LEAVE,)),
    (_LEAVING, Event.GONE): (_ABSENT, (Action.FORGET,)),
    (_LEAVING, Event.REFUSED): (_ABSENT, (Action.FORGET,)),
    (_RETURNING, Event.UNWANTED): (_LEAVING, ()),
    (_RETURNING, Event.SILENT): (_RETURNING, (Action.LEAVE,)),
    (_RETURNING, Event.GONE): (_PENDING, (Action.ASK,)),
    (_RETURNING, Event.REFUSED): (_ABSENT, (Action.REFUSE, Action.FORGET)),
}
"""Events that are not listed for a state are ignored."""


def next_step(state: NodeState, event: Event) -> Step:
    return TRANSITIONS.get((state, event), (state, ()))


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> absent"]
    for (state, event), (after, actions) in TRANSITIONS.items():
        done = "; ".join(action.value for action in actions)
        lines.append(
            f"    {state.value} --> {after.value}: {event.value}" + (f" / {done}" * bool(done))
        )
    return "\n".join(lines)
