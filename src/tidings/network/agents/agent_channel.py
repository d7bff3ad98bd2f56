"""One channel of an agent: a small router, whose neighbours are the application's subscriptions and
publications. A notification that matches several subscriptions therefore crosses the link only
once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Literal

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.network.agents.agent_link import AgentLink
from tidings.network.agents.direct_link import DIRECT, DirectLink
from tidings.network.agents.encoding import encode_attributes
from tidings.network.agents.grants import HeldGrants, SignedGrant, place_of
from tidings.network.agents.moving import Moving
from tidings.network.agents.publishing import CLOSED, LOCAL, PUBLISHER, Publishing, Tagging
from tidings.network.agents.refusals import Refusal, TimedOut
from tidings.network.agents.subscription import Subscription
from tidings.network.agents.tags.following import Following
from tidings.network.agents.tags.header import Header
from tidings.network.agents.tags.preprocessors import Preprocessors
from tidings.network.lives import draw_life
from tidings.routing.clients import Phase, Subscriber
from tidings.routing.forwarding import Cache, MovingRouter, Name, Sent
from tidings.routing.protocol import (
    DEFAULT_DIALECT,
    NONE,
    Break,
    find_exact,
    messages as m,
    relate_dialect,
)

UPSTREAM = "<upstream>"
FEW = 8  # if there are more publications than this, they are sent together, directly over the link
MOST_UNREAD = 100_000  # the most unread notifications of one subscription
ANONYMOUS = "agent-"  # the prefix of the names of agents that were given no name
BUSY = 1 << 20  # publications are not repeated while more bytes than this wait to be sent
Order = Literal["serial", "none"]
HEADER_PATIENCE = 5.0  # how many seconds a preprocessor may take to make a header


class AgentChannel(Publishing):
    """One channel over the link of an agent, with the subscriptions and publications of an
    application."""

    def __init__(
        self,
        link: AgentLink,
        channel: str,
        *,
        on_break: Callable[[Break], object] | None = None,
        tag: Tagging = "root",
        direct: bool = True,
        show_token: bool = False,
    ) -> None:
        hello, times = link.hello, link.times
        following = Following(self.send_up, times)
        preprocessors = Preprocessors(self.send_up, hello, times, link.tls, show_token=show_token)
        super().__init__(hello.name, times, tag, following, preprocessors, on_break)
        self.channel_name = channel
        self._agent_link = link
        self._is_anonymous = hello.name.startswith(ANONYMOUS) and not hello.token
        self._router = MovingRouter(hello.name, UPSTREAM, times, Cache(1000), draw_life(), NONE)
        self._subscriptions: dict[int, tuple[Subscriber, Subscription]] = {}
        self._texts: dict[int, str] = {}  # number -> the filter as the application wrote it
        self._live: tuple[str, ...] | None = None  # filters that match the current notification
        self._next = 1
        self._tasks: list[asyncio.Task[None]] = []
        self._seeking = False
        self._grants = HeldGrants(self.send_up)
        self.direct = DirectLink(
            link, channel, self._router, self._nodes_in_force, self.send_up, self._dispatch,
            self._receive_directly, self._end_directly, self._spawn, enabled=direct,
        )  # fmt: skip
        self._moving: Moving | None = None
        self.take_suggested: Callable[[m.Suggested | m.Changed], object] = lambda _: None
        """Receives the answers to what a preprocessor suggested and requested."""
        link.add(self)

    # -- for applications ----------------------------------------------------------------------

    def begin_tagging(self) -> None:
        """Begin to tag in the way that the application has chosen. Until that is possible, the
        rendezvous point tags."""
        if self._tagging == "local":
            self._tasks.append(asyncio.create_task(self._following.follow_forever()))
        elif self._tagging == "preprocessor":
            self._seek()

    @property
    def tag(self) -> Tagging:
        """Which program tags the notifications that are published in this channel."""
        return self._tagging

    async def wait_for_tagging(self, timeout: float | None = None) -> None:
        """Wait until notifications can be tagged in the way that the application chose: by this
        process, or by a preprocessor. Wait at most a second for a preprocessor. Raise Refusal if
        the rendezvous point does not allow the agent to read its nodes, and TimedOut after
        `timeout` seconds."""
        if self._tagging == "local":
            try:
                async with asyncio.timeout(timeout):
                    await self._following.ready.wait()
            except TimeoutError:
                raise self.overdue("the nodes of the channel have not arrived", timeout) from None
            if self._following.refusal:
                raise Refusal(self._following.refusal)
        elif self._tagging == "preprocessor":
            await self._preprocessors.wait_for_any(min(1.0, timeout or 1.0))

    def _seek(self) -> None:
        """Begin to use preprocessors."""
        if not self._seeking:
            self._seeking = True
            self._tasks.append(asyncio.create_task(self._preprocessors.seek_forever()))

    @property
    def life(self) -> int:
        """The last known life of the rendezvous point."""
        return self._router.epoch

    @property
    def view(self) -> Any:
        """The nodes of the channel, if the agent tags by itself and has received them; otherwise
        None."""
        return self._following.view

    @property
    def preprocessors(self) -> Preprocessors:
        """The preprocessors that the agent uses."""
        return self._preprocessors

    async def header(self, attributes: Mapping[str, Any] | bytes) -> Header:
        """Obtain the header of a notification in advance, from this process or from a preprocessor.
        Raise EnvironmentProblem if no preprocessor is found, and Refusal if the attributes are
        refused."""
        content = encode_attributes(attributes)
        if self._following.view is not None:
            tag = self._following.tag(content)
        else:
            self._seek()
            if not await self._preprocessors.wait_for_any(HEADER_PATIENCE):
                self._check_admitted()
                raise EnvironmentProblem(
                    f"no preprocessor of the channel was found within {HEADER_PATIENCE:g} seconds; "
                    'start one with `tidings preprocessor`, or use connect(..., tag="local")'
                )
            (tag,) = await self._preprocessors.tag([content])
        if not tag:
            raise Refusal("the notification can't be tagged, because its attributes are refused")
        return Header(tag)

    async def node_of(self, interest: str, dialect: str = DEFAULT_DIALECT) -> int:
        """The node of a filter, if this process or a preprocessor knows it; 0 if nobody is
        subscribed to the filter. Other agents can subscribe to the node by its number."""
        view = self._following.view
        if view is not None:
            return int(view.place(interest, dialect).node)
        self._seek()
        await self._preprocessors.wait_for_any(HEADER_PATIENCE)
        found = await self._preprocessors.place(interest, dialect)
        if found is None:
            self._check_admitted()
            raise EnvironmentProblem("no preprocessor of the channel answers")
        if found.refusal:
            raise Refusal(found.refusal)
        return found.node

    async def grant(self, interest: str, dialect: str = DEFAULT_DIALECT) -> SignedGrant:
        """Obtain a signed grant for the node of a filter from a preprocessor, for
        `subscribe(grant=...)`. Raise EnvironmentProblem if no preprocessor answers, and Refusal if
        the filter is refused, or if no preprocessor signs grants."""
        self._seek()
        if not await self._preprocessors.wait_for_any(HEADER_PATIENCE):
            self._check_admitted()
        problem: TidingsError = EnvironmentProblem("no preprocessor of the channel answers")
        for _ in range(max(1, len(self._preprocessors))):  # not all of them may sign grants
            found = await self._preprocessors.place(interest, dialect, signs=True)
            if found is not None and found.grant:
                return SignedGrant(found.grant, interest, dialect)
            if found is not None:
                problem = Refusal(found.refusal or "the preprocessor signs no grants")
        raise problem

    def _check_admitted(self) -> None:
        """Raise Refusal if the preprocessors refuse this agent."""
        if self._preprocessors.refusal:
            raise Refusal(self._preprocessors.refusal)

    async def close(self) -> None:
        """End the subscriptions of this channel. Unacknowledged publications are refused."""
        self.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._agent_link.remove(self)

    def end(self) -> None:
        """End everything in this channel, without waiting for acknowledgments."""
        self.is_closed = True
        for machine, subscription in [*self._subscriptions.values()]:
            subscription.close()
            self.unsubscribe(machine)
        for task in self._tasks:
            task.cancel()
        self.direct.close()
        self._untagged.close()
        self._preprocessors.close()
        self._give_up("the agent was closed before the notification was acknowledged")

    def subscribe(
        self,
        interest: str | Mapping[str, Any] = "",
        dialect: str = DEFAULT_DIALECT,
        *,
        node: int | None = None,
        grant: SignedGrant | None = None,
        name: str = "",
        order: Order = "serial",
        fast: bool = False,
        drop_after: float | None = None,
        most: int = MOST_UNREAD,
        timeout: float | None = None,
        related: float | None = None,
    ) -> Subscription:
        """Subscribe to a filter in a dialect. The filter is a string; in dialects whose filters are
        JSON, it can also be a mapping. Use `async with` to wait until the subscription is in force,
        for at most `timeout` seconds; it raises Refusal if the rendezvous point refuses the filter.
        The subscription holds at most `most` unread notifications; all others stay at the
        rendezvous point until there is room. Notifications are delivered in the order of their
        serials: if one is missing, later ones wait until the missing one arrives or is known to be
        lost. With `order="none"`, later notifications do not wait for missing ones. With `fast`,
        missing notifications are neither noticed nor requested, and the order is arbitrary. After
        an interruption of more than `drop_after` seconds, the subscription ends with a `Break`.

        A subscription with a `name` is durable: the rendezvous point keeps notifications for it
        until they are confirmed (`Subscription.confirm`), even while no agent is connected. If an
        agent subscribes again with the same name, token and filter, it continues after the last
        notification that it confirmed.

        With `related`, a number above 0 and at most 1, the subscriber also gets notifications that
        do not match but are related by at least this weight. `Delivery.related` then contains the
        weight and the reasons. This needs a channel with relations, and a filter that names a
        place, a time, a tag or a person.

        Instead of a filter, `node` can be the number of a node that another client obtained
        (`Subscription.node`, `node_of`). The subscription then has the rights and limits of that
        node's filter. Or `grant` can be a signed grant (see the method `grant`): then the router
        accepts the subscription by itself, and the agent renews the grant before it expires. Raise
        Refusal if the router refuses the grant."""
        if self.is_closed:
            raise Refusal(CLOSED)
        if not isinstance(interest, str):  # dialects of JSON
            interest = msgspec.json.encode(interest).decode()
        count = (node is not None) + (grant is not None) + bool(interest)
        if count != 1:
            raise Refusal(f"found {count} of filter, node and grant, expected exactly one of them")
        granted = None if grant is None else place_of(grant)
        node = node if granted is None else granted[1]
        if node is not None:
            interest, dialect = str(node), m.NODE
        if related is not None:
            if node is not None:
                raise Refusal(
                    f"related={related} needs a filter, and this subscription has a node or a "
                    "grant instead"
                )
            if not 0 < related <= 1:
                raise Refusal(f"found related={related}, expected a number above 0 and at most 1")
            dialect = relate_dialect(dialect, related)
        if name and (fast or order != "serial" or len(name) > m.LONGEST_NAME):
            raise Refusal(
                "a subscription with a name must have fast=False, order='serial' and a name of at "
                f"most {m.LONGEST_NAME} characters; found fast={fast}, order={order!r} and a name "
                f"of {len(name)} characters"
            )
        if name and self._is_anonymous:
            raise Refusal(
                "found a named subscription of an agent without a name or a token, expected "
                "connect(..., name=...), because subscriptions are stored under the agent's name"
            )
        if order not in ("serial", "none"):
            raise Refusal(f"found the order {order!r}, expected 'serial' or 'none'")
        text = interest
        number, self._next = self._next, self._next + 1
        machine = Subscriber(
            number, LOCAL, interest.encode(), self._times, most, dialect,
            partial(self._list_matching, number),
            ordered=order == "serial", fast=fast, drop_after=drop_after, durable=name,
            granted=granted,
        )  # fmt: skip
        self._texts[number] = text if grant is None else grant.interest or text
        if grant is not None:
            self._grants.use(number, grant, machine)
        subscription = Subscription(self, machine, timeout)
        self._subscriptions[number] = machine, subscription
        if (
            self._tagging == "preprocessor"
            and dialect == DEFAULT_DIALECT
            and granted is None
            and not name
        ):
            self._spawn(self._start_placed(number, machine, interest))
        else:
            self._hand_over(number, machine.start(self._now))
        return subscription

    async def _start_placed(self, number: int, machine: Subscriber, interest: str) -> None:
        """Start a subscription. If there is a preprocessor, it finds the place of the filter, so
        that the rendezvous point has less to do."""
        found = await self._preprocessors.place(interest, DEFAULT_DIALECT, makes=True)
        if number in self._subscriptions:
            machine.propose(0 if found is None else found.node)
            self._hand_over(number, machine.start(self._now))

    async def drop_named(self, name: str, timeout: float | None = None) -> None:
        """End the subscription of this agent that has this name, whatever its filter is;
        notifications are no longer kept for it. It is not an error if no subscription has that
        name. Raise TimedOut after `timeout` seconds."""
        if not name or self._is_anonymous:
            raise Refusal(
                "found a subscription or an agent without a name; call drop_named(NAME) on an "
                "agent that connects with a name or a token, because named subscriptions are "
                "stored under the agent's name"
            )
        number, self._next = self._next, self._next + 1
        machine = Subscriber(
            number, LOCAL, b"", self._times, 1, durable=name, only_drops=True
        )  # fmt: skip
        subscription = Subscription(self, machine, timeout)
        self._texts[number] = ""
        self._subscriptions[number] = machine, subscription
        self._hand_over(number, machine.start(self._now))
        try:
            await subscription.drop(timeout)
        finally:
            subscription.close()

    def confirm(self, machine: Subscriber, serial: int) -> None:
        assert isinstance(machine.name, int)
        self._hand_over(machine.name, machine.confirm(serial, self._now))

    def drop_name(self, machine: Subscriber) -> None:
        assert isinstance(machine.name, int)
        self._hand_over(machine.name, machine.drop_name(self._now))

    def unsubscribe(self, machine: Subscriber) -> None:
        number = machine.name
        assert isinstance(number, int)
        if self._subscriptions.pop(number, None) is not None:
            del self._texts[number]
            self._grants.drop(number)
            self._hand_over(number, machine.stop(self._now))
            self._router.context.now = self._now
            self._router.drop(number)
            self._dispatch(self._router.drain_outgoing())

    def overdue(self, what: str, timeout: float | None) -> TimedOut:
        return self._agent_link.overdue(what, timeout)

    async def wait_for_change(self) -> None:
        """Wait until a message arrives or the link ends."""
        await self._agent_link.wait_for_change()

    # -- for the link --------------------------------------------------------------------------

    def join(self, publisher: str) -> None:
        """Begin to use a new link. `publisher` is the prefix of the names of publishers."""
        self.refusal = ""
        self._publisher.base = f"{publisher or self.name}/{self._life}"
        self._grants.present_all()
        self._dispatch(self._router.join_upstream(self._now))
        self._hand_over(PUBLISHER, self._publisher.join(self._now))

    def interrupt(self, reason: str) -> None:
        """Handle the end of the link, or of the channel at the node above. Messages that arrive
        over the second link are still processed."""
        if self.direct.is_used:
            return
        for machine, subscription in self._subscriptions.values():
            machine.interrupt(reason, self._now)
            subscription.wake()

    def refuse(self, reason: str) -> None:
        """The node above does not serve this channel. The publisher is told that unacknowledged
        notifications were refused, so that it does not send them again."""
        self.refusal = reason
        self.interrupt(reason)
        self._give_up(reason)
        self._begin_publishing()

    def displace(self, reason: str) -> None:
        """Handle the final loss of the agent's link. Subscriptions are also refused."""
        self.refuse(reason)
        for machine, subscription in self._subscriptions.values():
            machine.refuse(reason)
            subscription.wake()

    def receive(self, message: m.Message) -> None:
        """Handle a message from above."""
        if isinstance(message, m.Described | m.Changed):
            self._following.receive(message)
            if isinstance(message, m.Changed):
                self.take_suggested(message)
        elif isinstance(message, m.Suggested):
            self.take_suggested(message)
        elif isinstance(message, m.Found):
            self._spawn(self._preprocessors.receive(message))
        elif isinstance(message, m.Advised):
            if self._moving is not None:
                self._moving.receive(message)
        elif isinstance(message, m.Identified):
            self._preprocessors.take_ticket(message)
        elif isinstance(message, m.Presented):
            self._grants.receive(message)
        elif isinstance(message, m.Offered):
            self.direct.take(message)
        else:
            self._receive_from(UPSTREAM, message)

    def _receive_from(self, above: str, message: m.Message) -> None:
        if isinstance(message, m.Notification):
            self._live = self._texts_for(message)
        self._dispatch(self._router.receive(above, message, self._now))
        self._live = None

    # -- for the second link -------------------------------------------------------------------

    def _nodes_in_force(self) -> list[int] | None:
        """The nodes of all subscriptions. The result is empty if there are too many nodes for a
        second link, and None if some subscriptions are not in force yet."""
        if len(self._subscriptions) > m.MOST_DIRECT:
            return []
        machines = [machine for machine, _ in self._subscriptions.values()]
        if any(machine.phase is not Phase.ON for machine in machines):
            return None
        return [*{machine.node for machine in machines}]

    def _receive_directly(self, message: m.Message) -> None:
        self._receive_from(DIRECT, message)
        self._agent_link.note_change()

    def _end_directly(self, reason: str) -> None:
        """Handle the end of the second link. If the link to the router is also lost, the
        subscriptions are interrupted."""
        if not self._agent_link.is_linked:
            self.interrupt(reason)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks = [one for one in self._tasks if not one.done()] + [task]

    def tick(self, now: float) -> None:
        """Do the periodic work for which it is time."""
        self._dispatch(self._router.tick(now))
        link = self._agent_link
        if link.waiting < BUSY and link.has_credit(self):  # repeat nothing while much is unsent
            self._hand_over(PUBLISHER, self._publisher.tick(now))
        for number, (machine, subscription) in [*self._subscriptions.items()]:
            self._hand_over(number, machine.tick(now))
            subscription.wake()
        self.direct.tend(now)
        if self._grants.is_due() and self._agent_link.is_linked:
            self._spawn(self._grants.renew(self.grant))

    # -- between the state machines ------------------------------------------------------------

    def send_up(self, message: m.Message) -> bool:
        """Send a message to the router; False if there is no link."""
        return self._agent_link.send(self, message)

    def _has_room(self) -> bool:
        return self._agent_link.has_room() and self._agent_link.has_credit(self)

    def _hand_over(self, sender: Name, sent: list[Sent]) -> None:
        """Pass the messages of one of the agent's state machines to the agent's own router. The
        router would forward publications unchanged. If there are many publications, only the first
        passes through the router, which notes where the answers must go; the others are sent
        directly over the link."""
        if sender == PUBLISHER and len(sent) > FEW and self._agent_link.is_linked:
            rest = [message for _, message in sent[1:] if isinstance(message, m.Publish)]
            if len(rest) == len(sent) - 1 and isinstance(sent[0][1], m.Publish):
                self._dispatch(self._router.receive(sender, sent[0][1], self._now))
                self._agent_link.publish_all(self, rest)
                return
        for _, message in sent:
            self._dispatch(self._router.receive(sender, message, self._now))

    def _dispatch(self, sent: list[Sent]) -> None:
        """Send messages of the agent's own router over the link, or to a state machine."""
        for to, message in sent:
            if to == UPSTREAM:
                self._agent_link.send(self, message)
            elif to == DIRECT:
                self.direct.send(message)
            elif to == PUBLISHER:
                self._hand_over(PUBLISHER, self._publisher.receive(message, self._now))
                self._acknowledge()
            elif to in self._subscriptions:
                machine, subscription = self._subscriptions[to]
                self._hand_over(to, machine.receive(message, self._now))
                subscription.wake()

    def _texts_for(self, message: m.Notification) -> tuple[str, ...]:
        """Those of the agent's filters that match a notification from above: the filters of the
        subscriptions to which the agent's own router forwards it."""
        marks = find_exact(message)
        ways = self._router.ways(tuple([mark.label for mark in marks])) if marks else {}
        return tuple([self._texts[one] for one in ways if one in self._texts])

    def _list_matching(self, number: int, message: m.Notification) -> tuple[str, ...]:
        """The filters that match a delivered notification. The agent's own router may not know the
        labels of a recovered notification. In that case, only filters that are known to match are
        returned. The filter of the subscription `number` is among them, unless the notification is
        only related to it."""
        if self._live is not None:
            return self._live
        marks = find_exact(message)
        is_related = len(marks) < len(message.marks)
        known = dict.fromkeys(self._texts_for(message) if is_related else
                              (self._texts[number], *self._texts_for(message)))  # fmt: skip
        for other, (machine, _) in self._subscriptions.items():
            if machine.tracks(marks):
                known[self._texts[other]] = None
        return tuple(known)
