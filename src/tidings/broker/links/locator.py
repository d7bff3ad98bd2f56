"""The links of a router to the preprocessors of one channel. The router asks preprocessors for the
places of nodes in its graph.

    Locate ──> pieces, one after the other ──> a preprocessor ──> Located ──> the state machine
                                                   └── gone, or silent: the node above is asked

The router finds preprocessors as agents do: through the channel.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable

import msgspec

from tidings.network import Preprocessors
from tidings.routing.protocol import Times, messages as m

REMEDY = (  # the advice if preprocessors expect a token
    "set ticket_key in the file of the node above, or show_token = true in the file of this router"
)
MOST_WAITING = 200  # the most unanswered questions; further questions go to the node above


class Locator:
    """Asks preprocessors for places."""

    def __init__(
        self,
        send: Callable[[m.Message], bool],
        hello: m.Hello,
        times: Times,
        tls: ssl.SSLContext | None,
        answered: Callable[[m.Locate, m.Located | None], None],
        changed: Callable[[bool], None],
        *,
        show_token: bool = False,
    ) -> None:
        """`send` sends a message of the channel to the node above. `answered` is called
        with each question and its answer, and `changed` with True or False when a preprocessor is
        found or lost. With `show_token`, preprocessors see the router's token if the node above
        signs no tickets."""
        self._answered = answered
        self._waiting: deque[m.Locate] = deque()
        self._is_closed = False
        self._asked = asyncio.Event()
        self.preprocessors = Preprocessors(
            send, hello, times, tls, show_token=show_token, remedy=REMEDY, pause=times.retry / 2,
            longest=times.resubscribe, changed=changed,
        )  # fmt: skip

    def ask(self, question: m.Locate) -> None:
        """Ask for the places of nodes, a limited number at a time."""
        for at in range(0, len(question.nodes), m.MOST_LOCATED):
            nodes = question.nodes[at : at + m.MOST_LOCATED]
            piece = msgspec.structs.replace(question, nodes=nodes)
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(piece)
            else:
                self._answered(piece, None)
        self._asked.set()

    async def answer_forever(self) -> None:
        """Send the questions that wait, until `close` is called."""
        while True:
            while self._waiting:
                question = self._waiting.popleft()
                found = await self.preprocessors.locate(question)
                self._answered(question, found)
            if self._is_closed:
                return
            self._asked.clear()
            await self._asked.wait()

    def close(self) -> None:
        """Close the links. Questions that still wait are answered: the place is not known."""
        self._is_closed = True
        self.preprocessors.close()
        self._asked.set()
