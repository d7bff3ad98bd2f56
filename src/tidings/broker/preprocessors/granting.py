"""How a preprocessor grants agents the right to subscribe to nodes.

    Propose ──> limits of the agent: do they cover the filter? ──> node, perhaps new ──> signed
                    └── no: refused, with the text to write

Only the rendezvous point creates nodes. If a filter has no node yet, the preprocessor subscribes to
the filter for a moment; the new node stays for a while, so that the agent can subscribe.
"""

from __future__ import annotations

import logging
import time

from tidings.broker.admission.permissions import Permissions
from tidings.broker.admission.signing import LIFETIME, Signer
from tidings.filters import Attributes, Filter, parse, refuse_outside
from tidings.model import FilterError, TidingsError
from tidings.network import Agent, Link, Refusal
from tidings.routing.protocol import Grant, messages as m

MOST_OPEN = 100  # the most questions that are answered at the same time
PATIENCE = 1.5  # seconds to wait for the rendezvous point; agents wait two seconds

_log = logging.getLogger(__name__)


class Granting:
    """Answers agents that ask for grants."""

    def __init__(self, agent: Agent, signer: Signer, channel: str) -> None:
        self._agent = agent
        self._signer = signer
        self._channel = channel
        self._open = 0
        self.signed = 0
        """How many grants were signed so far."""

    async def answer(self, link: Link, who: Permissions, message: m.Propose) -> None:
        """Send a grant to an agent, or the reason why it gets none."""
        request = message.request
        self._open += 1
        try:
            if self._open > MOST_OPEN:
                raise Refusal("the preprocessor is busy; ask again later")
            found = await self._grant(who, message)
        except TidingsError as problem:
            found = m.Proposed(request, refusal=str(problem))
        except Exception:
            _log.exception("a grant could not be signed")
            found = m.Proposed(request, refusal="an unexpected problem; see the log")
        finally:
            self._open -= 1
        link.send(found)

    async def _grant(self, who: Permissions, message: m.Propose) -> m.Proposed:
        if "subscribe" not in who.may:
            raise Refusal(f"{who.name!r} may not subscribe here")
        view = self._agent.view
        if view is None or not self._agent.life:
            raise Refusal("the nodes of the channel are not known yet; ask again later")
        try:
            text = message.interest.decode()
        except UnicodeDecodeError:
            raise Refusal("the filter is not valid UTF-8") from None
        found = view.read_interest(text, message.dialect)
        limits = (who.within,) if who.within else ()
        refusal = refuse_outside(found, limits, view.attributes)
        if refusal:
            raise Refusal(refusal)
        place = view.place(text, message.dialect)
        node = place.node or await self._make(text, message.dialect)
        grant = Grant(
            b"", who.owner, self._channel, self._agent.life, node, int(time.time() + LIFETIME),
            limits or (_limit_text(found, view.attributes),),
        )  # fmt: skip
        self.signed += 1
        data = self._signer.sign(grant)
        return m.Proposed(message.request, node, place.life, place.version, grant=data)

    async def _make(self, text: str, dialect: str) -> int:
        """Create the node of a filter that has none in the current view; return its number."""
        async with self._agent.subscribe(text, dialect, fast=True, timeout=PATIENCE) as told:
            return told.node


def _limit_text(found: Filter, attributes: Attributes | None) -> str:
    """The SQL of a filter that limits a grant; raises Refusal if the SQL is too long, or if nodes
    could not parse it."""
    text = found.sql()
    if len(text) > m.LONGEST_WITHIN:
        raise Refusal(
            f"found a filter of {len(text):,} characters in SQL, expected at most "
            f"{m.LONGEST_WITHIN:,} for a grant"
        )
    try:
        parse(text, attributes=attributes)
    except FilterError:
        raise Refusal(
            "found a filter that calls a predicate; a grant needs a filter without predicates"
        ) from None
    return text
