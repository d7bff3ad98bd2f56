"""The signed grants that agents present to a node.

    Present ──> signature, agent, channel, expiry: signing.py ──> limits: the state machine
                    └── not in order: refused in one sentence, and counted

Grants are soft state: after a restart of a router, its agents present them again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tidings.broker.admission.permissions import Permissions
from tidings.broker.admission.signing import PublicKeys
from tidings.routing.forwarding import Downstream, Name, Sent, Signed

CHECK = 100  # checking a signature is charged as much as this many entries of an answer
BUSY = "too many questions were asked; present the grant again later"


class Grants:
    """The keys whose grants a node accepts."""

    def __init__(self, keys: Mapping[str, str] | None) -> None:
        self._keys = PublicKeys(keys)

    def take(
        self, channel: str, machine: Downstream, name: Name, who: Permissions, data: bytes,
        now: float,
    ) -> str:  # fmt: skip
        """Check a grant that a neighbour presents in a channel; return why it is refused, or an
        empty string."""
        machine.context.now = now
        machine.hear(name)
        if not machine.charges.may_ask(name):
            return BUSY
        machine.charges.charge(name, CHECK)
        clock = time.time()
        found = self._keys.judge(data, who.owner, channel, clock)
        if isinstance(found, str):
            machine.beyond["grants"] += 1
            return found
        ends = now + found.expires - clock
        one = Signed(found.key, found.agent, found.life, found.within, ends)
        refusal = machine.present(name, found.node, one, now)
        machine.beyond["grants"] += bool(refusal)
        return refusal

    def renew(self, keys: Mapping[str, str] | None) -> None:
        """Use other keys."""
        self._keys = PublicKeys(keys)

    def revoke(self, machine: Downstream, now: float) -> list[Sent]:
        """End the grants whose keys are no longer accepted."""
        return machine.revoke(now, lambda one: one.key not in self._keys)

    def expire(self, machine: Downstream, now: float) -> list[Sent]:
        """End the grants that have expired."""
        return machine.revoke(now)
