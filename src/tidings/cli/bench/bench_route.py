"""`tidings bench route`: measures the network, and compares it with mosquitto and nats-server."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli.bench.bench_command import Seed, show_report
from tidings.cli.common import options
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.screen import emit, report_steps


def bench_route(
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PART",
            help="forward, latency, durable, parts, preprocessors, interests, channels, direct, "
            "lookup or modes; may be repeated. [default: all]",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="N", min=0.05, max=10, help="Length of each round."),
    ] = 1.0,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="Repetitions of each measurement.")
    ] = 5,
    peers: Annotated[
        bool, typer.Option("--peers/--no-peers", help="Measure mosquitto and nats-server too.")
    ] = True,
    interests: Annotated[
        int,
        typer.Option("--interests", metavar="N", min=1, help="Interests of the part `interests`."),
    ] = 1_000_000,
    channels: Annotated[
        int,
        typer.Option("--channels", metavar="N", min=1, help="Channels of the part `channels`."),
    ] = 10_000,
    seed: Seed = 1,
    json: options.Json = False,
) -> None:
    """Measure the network on this machine, and compare it with mosquitto and nats-server.

    `forward` sends notifications of 200 bytes through one process to one or ten neighbours, at full
    speed, alternating with mosquitto and nats-server. `latency` measures the time through one, two
    and three routers, at half their throughput, and at 20,000/s. `durable` sends publications to a
    rendezvous point, each acknowledged after it is on disk; then (`mixed`) the same with 10,000
    filters, compared with JetStream of nats-server. `parts` hands over notifications that were
    tagged elsewhere to a rendezvous point, in parts of 16,384. `preprocessors` measures a
    rendezvous point with 10,000 filters: its processor time per notification, when it tags itself
    and when preprocessors tag, and how many notifications/s the preprocessors tag. `interests` adds
    interests to a rendezvous point that has a million, one at a time and at 500/s, with and without
    20,000 publications/s; then the rendezvous point restarts. `channels` measures the memory, the
    processor time and the bytes that 10,000 channels without traffic, each with one subscription,
    cost two routers. `direct` measures the latency and the processor time of notifications for one
    of 1,000 subscriptions, through three routers and over a link that bypasses them. `lookup`
    measures a router's work for a header and for a subscription, without a network, for up to a
    million subscribers. `modes` measures what forwarding by labels, by lists, and with a choice
    between the two costs a router, in graphs of different shapes.

    If a notification is sent but not received, the command fails and shows no figures.

    With --json, one object: machine, forward, latency, durable, mixed, parts, preprocessors,
    interests, channels, direct, lookup, modes.
    """
    load_pyarrow()
    from tidings.studies.network import PARTS, bench_route as measure, route_lines, route_sections

    for part in only or ():
        if part not in PARTS:
            raise BadInput(f"--only is {part!r}, expected one of {', '.join(PARTS)}")
    with report_steps() as note:
        report = measure(
            only or PARTS,
            seconds=seconds,
            rounds=rounds,
            peers=peers,
            interests=interests,
            channels=channels,
            seed=seed,
            note=note,
        )
    if json:
        emit(report)
    else:
        show_report(report.machine, route_sections(report), *route_lines(report))
