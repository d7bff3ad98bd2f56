"""The grants that the subscriptions of an agent use, without a link."""

from __future__ import annotations

from tidings.network.agents.grants import HeldGrants, SignedGrant
from tidings.routing.clients.subscriber import UNGRANTED, Subscriber
from tidings.routing.protocol import messages as m

NODE = 7


def test_a_refusal_of_an_earlier_subscription_does_not_end_this_one() -> None:
    """The router answers in order: what it refuses before it judges the grant, it refuses to a
    subscription that came before the grant."""
    sent: list[m.Message] = []

    def send(message: m.Message) -> bool:
        sent.append(message)
        return True

    held = HeldGrants(send)
    machine = Subscriber("a", "r", b"", granted=(1, NODE))
    machine.start(0.0)
    held.use(1, SignedGrant(b"data"), machine)
    late = m.Refuse(machine.epoch, (NODE,))
    machine.receive(late, 0.1)
    assert not machine.refusal
    presented = sent[-1]
    assert isinstance(presented, m.Present)
    held.receive(m.Presented(presented.request))
    machine.receive(late, 0.2)
    assert machine.refusal == UNGRANTED
