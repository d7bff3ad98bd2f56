"""`tidings channel`: publishes a revised definition of a channel, or adds a snapshot to it. The
commands for declarations are in cli/subscriptions."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.command_errors import BadInput, report_errors
from tidings.cli.common.screen import count_of, say
from tidings.cli.network import connecting
from tidings.cli.network.connecting import choose_token, run_async
from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from tidings.broker import Config
    from tidings.routing.protocol.messages import NodeStatus

PATIENCE = 60.0  # seconds
channel = typer.Typer(rich_markup_mode=None)


@channel.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Create a channel, show or change what it declares, or add many subscriptions to it."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def revise_channel(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file of the rendezvous point.")],
    router: Annotated[
        str | None,
        typer.Option(
            "--router",
            metavar="ADDRESS",
            show_default=False,
            help="The address of the rendezvous point, if it is not the one in FILE.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait.")
    ] = PATIENCE,
    token: connecting.Token = "",
    token_file: connecting.TokenFile = None,
    name: connecting.Name = None,
    authorities: connecting.Authorities = None,
) -> int:
    """Make the running rendezvous point of FILE use the current table [preprocessor] of FILE, with
    a revised ontology for example, and wait until every process that tags has acknowledged the new
    definition.

    Run this command on the machine of the rendezvous point, as the same user. A bad file changes
    nothing.

    Exit code: 0 when every process has acknowledged the definition; 1 when some have not
    acknowledged it in time; 2 when FILE is refused, or is not accepted in time.
    """
    from tidings.broker import load_config
    from tidings.store import owner_of

    config = load_config(file)
    if config.journal is None:
        raise BadInput(
            f"{file}: found the file of a router, expected the file of a rendezvous point"
        )
    journal = config.at(config.journal)
    process = owner_of(journal)
    if process is None:
        raise EnvironmentProblem(
            f"no running rendezvous point uses the journal {journal}; {file} takes effect at the "
            "next start"
        )
    place = router or f"tidings://{config.listen}" + (f"/{config.channel}" * bool(config.channel))

    async def work() -> int:
        from tidings.network import watch

        found: NodeStatus | None = None
        try:
            async with (
                asyncio.timeout(timeout),
                watch(
                    place, name=name, token=choose_token(token, token_file), authorities=authorities
                ) as reports,
            ):
                os.kill(process, signal.SIGHUP)
                async for report in reports:
                    first = report.nodes[0]
                    if first.defined == config.kind.digest:
                        if found is None:
                            say(f"accepted as version {first.renewed}")
                        found = first
                        if first.acknowledged == first.followers:
                            break
        except TimeoutError:
            pass
        return _conclude(found, config, timeout)

    return run_async(work()) or 0


def _conclude(found: NodeStatus | None, config: Config, timeout: float) -> int:
    if found is None:
        raise EnvironmentProblem(
            f"{config.name} did not accept the definition within {timeout:g} seconds; see its log"
        )
    who = count_of(found.followers, "process that tags", "processes that tag")
    say(f"acknowledged by {found.acknowledged:,} of {who}")
    return 0 if found.acknowledged == found.followers else 1


def adopt_snapshot(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of the channel.")],
    snapshot: Annotated[
        str, typer.Argument(metavar="SNAPSHOT", help="A snapshot, as build_snapshot makes it.")
    ],
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Who makes the subscriptions.")
    ] = "",
) -> None:
    """Add all subscriptions of SNAPSHOT to the channel in FOLDER, as one version.

    A rendezvous point or a pipeline of the channel may keep running; from then on, it uses these
    subscriptions too. An id that is already subscribed is refused, and nothing changes.
    """
    from tidings.snapshots import Snapshot
    from tidings.store import ChangeLog

    found = Snapshot.open(snapshot)
    version = ChangeLog(folder, found.attributes).adopt(found, owner=owner)
    say(f"{count_of(len(found), 'subscription')} adopted as version {version}")


channel.command("adopt")(report_errors(adopt_snapshot))
channel.command("revise")(report_errors(revise_channel))
