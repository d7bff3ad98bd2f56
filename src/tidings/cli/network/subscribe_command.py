"""`tidings subscribe`: prints the payload of each notification that matches a filter."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, filter_refusal, remark
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import count_of, emit
from tidings.cli.common.shutdown import run_until_ended
from tidings.cli.common.subscription_files import refuse_never
from tidings.cli.network import connecting
from tidings.cli.network.connecting import choose_token, note_link, run_async
from tidings.cli.network.grant_file import find_grant
from tidings.filters import Attributes, parse
from tidings.model import FilterError

if TYPE_CHECKING:
    from tidings.network import Agent
    from tidings.routing.clients import Delivery, Interrupted, Lost, Resumed
    from tidings.routing.protocol import Break

TOO_FEW = 1  # exit code: fewer than --most notifications arrived in time


def subscribe_to(
    interest: Annotated[
        str, typer.Argument(metavar="FILTER", help="The filter.", hidden=True, show_default=False)
    ] = "",
    most: Annotated[
        int | None, typer.Option("--most", metavar="N", min=1, help="End after N notifications.")
    ] = None,
    timeout: Annotated[
        float | None,
        connecting.timeout_option("End after this many seconds without a notification."),
    ] = None,
    durable: Annotated[
        str,
        typer.Option(
            "--durable", metavar="NAME", help="Continue where the last subscription NAME ended."
        ),
    ] = "",
    drop: Annotated[
        bool, typer.Option("--drop", help="Delete the subscription of --durable, and end.")
    ] = False,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="ORDER",
            help="serial, or none: don't wait for missing notifications.",
        ),
    ] = "serial",
    fast: Annotated[
        bool, typer.Option("--fast", help="Don't ask for notifications that are missing.")
    ] = False,
    drop_after: Annotated[
        float | None,
        typer.Option(
            "--drop-after",
            metavar="SECONDS",
            min=0.001,
            show_default=False,
            help="End after an interruption of this many seconds.",
        ),
    ] = None,
    grant: Annotated[
        str | None,
        typer.Option("--grant", metavar="FILE", help="Subscribe with the signed grant in FILE."),
    ] = None,
    show_token: Annotated[
        bool,
        typer.Option(
            "--show-token", help="Show the token to preprocessors, if the router signs no tickets."
        ),
    ] = False,
    direct: Annotated[
        bool,
        typer.Option(
            "--direct/--no-direct", help="Use a link that bypasses the tree, if one is offered."
        ),
    ] = True,
    related: Annotated[
        float | None,
        typer.Option(
            "--related",
            metavar="WEIGHT",
            show_default=False,
            help="Also print related notifications, of at least WEIGHT: above 0, at most 1.",
        ),
    ] = None,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    types: options.Types = None,
    others: options.Others = False,
    force: options.Force = False,
    router: connecting.Router = connecting.DEFAULT,
    token: connecting.Token = "",
    token_file: connecting.TokenFile = None,
    name: connecting.Name = None,
    authorities: connecting.Authorities = None,
    json: options.Json = False,
) -> int:
    """Print the payload of each notification that matches FILTER, as it arrives, until Ctrl-C.

    Notes on stderr report lost notifications, and say when the link to the router is lost and when
    it is back. With --types, the filter is checked before it is sent. The text of the filter is
    sent unchanged. A filter that can never match is refused without --force.

    With --durable, the rendezvous point keeps notifications for NAME until they are printed. NAME
    belongs to one filter, although later commands may write the filter differently; --drop ends the
    subscription NAME, and needs no FILTER. A second command with the same NAME takes over the
    subscription, and the first command ends.

    With --grant, a signed grant of a preprocessor is used. If FILE does not exist, or its grant has
    expired, the command asks for a grant for FILTER and stores it in FILE. The command shows the
    preprocessor a ticket that the router signed. If the router signs no tickets, --show-token lets
    the command show the token instead.

    With --related, notifications that do not match but are related are printed too. Each line then
    begins with `match`, or with the weight, and ends with the reasons. The channel must have
    relations.

    With --json, one object per line: serial, payload, subject, time (when it was published, in
    seconds since 1970), attributes (null if the publisher did not send them), matched, and parts
    if the filter has named parts: the names of those that are true, by filter; with --related also
    related: null, or weight and reasons.

    Exit code: 0; 1 when --timeout ends the command before --most notifications arrived; 2 when the
    filter is refused, or the router does not answer.
    """
    from tidings.network import connect
    from tidings.routing.clients import Delivery, Interrupted, Resumed

    if order not in ("serial", "none"):
        raise BadInput(f"found --order {order}, expected serial or none")
    chosen: Literal["serial", "none"] = "none" if order == "none" else "serial"
    token = choose_token(token, token_file)
    # a durable name needs an owner
    alone = f"subscribe-{durable}" if durable and not token else None
    if drop and not durable:
        raise BadInput("found --drop without --durable, expected --durable NAME --drop")
    if not drop and not interest:
        raise BadInput("found no filter, expected FILTER, or --durable NAME --drop")

    async def give_up() -> int:
        async with connect(
            router, name=name or alone, token=token, authorities=authorities, timeout=timeout,
            on_link=note_link,
        ) as agent:  # fmt: skip
            await agent.drop_named(durable, timeout)
        remark(f"dropped {durable}: nothing is kept for it any more")
        return 0

    if drop:
        return run_async(run_until_ended(give_up())) or 0
    declared = read_types(types, others)
    noted = _check_filter(interest, dialect, declared.attributes, force)

    async def work() -> int:
        count, silent = 0, False
        async with (
            connect(
                router, name=name or alone, token=token, authorities=authorities, timeout=timeout,
                on_link=note_link, show_token=show_token, direct=direct,
            ) as agent,
            agent.subscribe(
                "" if grant is not None else interest, dialect, name=durable, order=chosen,
                fast=fast, drop_after=drop_after, timeout=timeout, related=related,
                grant=None if grant is None else await find_grant(grant, agent, interest, dialect),
            ) as told,
        ):  # fmt: skip
            if told.note != noted:  # the note depends on the attributes that the channel declares
                if told.never and not force:
                    raise BadInput(f"{told.note}; --force accepts the filter")
                remark(told.note)
            remark(f"subscribed to {interest}")
            sys.stderr.flush()
            deadline = _deadline(timeout)
            while (one := await told.next(_count_seconds_left(deadline))) is not None:
                if isinstance(one, Interrupted | Resumed):
                    silent = _note_interruption(one, agent, silent)
                    continue
                if not isinstance(one, Delivery):
                    remark(_describe_loss(one))
                    sys.stderr.flush()
                    continue
                text = one.payload.decode("utf-8", "backslashreplace")
                if json:
                    emit(
                        {
                            "serial": one.serial, "payload": text, "subject": one.subject,
                            "time": one.time, "attributes": one.attributes,
                            "matched": one.matched, **_named_parts(one),
                            **_list_related(one, related),
                        }
                    )  # fmt: skip
                else:
                    print(text if related is None else _mark(text, one))
                sys.stdout.flush()
                count += 1
                if durable and count == most:
                    await told.confirm(one, timeout)
                elif durable:
                    told.confirm_soon(one)
                if count == most:
                    return 0
                deadline = _deadline(timeout)
        if timeout is not None:
            remark(f"no notification came for {timeout or 0:g} seconds")
        return TOO_FEW if most is not None else 0

    return run_async(run_until_ended(work())) or 0


def _check_filter(text: str, dialect: str, attributes: Attributes | None, force: bool) -> str:
    """The note on a filter; raises BadInput if the filter is refused. If only the channel can parse
    a filter, the filter is not checked here."""
    if dialect != options.DEFAULT_DIALECT:
        from tidings.preprocessing import DIALECTS

        if dialect in DIALECTS:
            return ""
    try:
        parsed = parse(text, dialect, attributes=attributes)
        refuse_never(parsed, force)
        return parsed.note
    except FilterError as problem:
        if dialect != options.DEFAULT_DIALECT or attributes is not None:
            raise filter_refusal(problem, "filter") from None
        return ""  # the rendezvous point decides, because it may have functions not known here


def _named_parts(one: Delivery) -> dict[str, Any]:
    """The named parts that are true, if the filter has any."""
    parts = one.parts
    return {"parts": parts} if parts else {}


def _list_related(one: Delivery, asked: float | None) -> dict[str, Any]:
    """Why a notification is related; empty unless related notifications were requested."""
    if asked is None:
        return {}
    found = one.related
    if found is None:
        return {"related": None}
    reasons = [
        {"context": r.context, "name": r.name, "kind": r.kind, "weight": round(r.weight, 4)}
        for r in found.reasons
    ]
    return {"related": {"weight": round(found.weight, 4), "reasons": reasons}}


def _mark(text: str, one: Delivery) -> str:
    """A payload, marked as a match or as related, with the reasons."""
    if one.related is None:
        return f"match  {text}"
    why = ", ".join(f"{r.kind} {r.name}".strip() for r in one.related.reasons)
    return f"{one.related.weight:.2f}   {text}  ({why})"


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else asyncio.get_running_loop().time() + timeout


def _count_seconds_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())


def _note_interruption(one: Interrupted | Resumed, agent: Agent, silent: bool) -> bool:
    """Print a note if notifications stop although the link is up, and another when they resume.
    Return whether notifications have stopped although the link is up. `note_link` reports on the
    link itself."""
    from tidings.routing.clients import Interrupted

    if isinstance(one, Interrupted):
        silent = agent.state.linked
        if silent:
            remark(f"nothing arrives for now: {one.reason}")
    elif silent:
        remark(f"notifications arrive again, after {one.seconds:.0f} seconds")
        silent = False
    sys.stderr.flush()
    return silent


def _describe_loss(one: Lost | Break) -> str:
    from tidings.routing.protocol import Break

    if isinstance(one, Break):
        return f"notifications may have been missed: {one.reason}"
    return f"{count_of(one.count, 'notification')} lost"
