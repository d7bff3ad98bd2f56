"""`tidings preprocessor`: runs a preprocessor of a channel."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.common.command_errors import remark
from tidings.cli.common.screen import count_of, say
from tidings.cli.common.shutdown import end_with_stdin, wait_for_end
from tidings.cli.network import connecting
from tidings.cli.network.connecting import beat_forever, choose_token, note_link, run_async
from tidings.model import EnvironmentProblem, TidingsError

if TYPE_CHECKING:
    from tidings.broker import PreprocessorNode

PATIENCE = 10.0  # if loading takes more seconds than this, a note explains the delay
EVERYWHERE = ("0.0.0.0", "::")  # each means all addresses of a machine


def run_preprocessor(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="The rendezvous point of the channel.")
    ],
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Where agents connect to the preprocessor."
        ),
    ] = "127.0.0.1:0",
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="The host that agents connect to, if it is not the one in --listen.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A router's file, or one with only the tables that apply here: [tokens], "
            "[tickets], [tls] and [limits].",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="A private key of `tidings key`, to sign grants for the agents in --config.",
        ),
    ] = None,
    name: connecting.Name = None,
    token: connecting.Token = "",
    token_file: connecting.TokenFile = None,
    authorities: connecting.Authorities = None,
    log: Annotated[bool, typer.Option("--log", help="Log connections on stderr.")] = False,
    follows_stdin: Annotated[bool, typer.Option("--until-stdin-ends", hidden=True)] = False,
) -> None:
    """Tag notifications for the agents of a channel, until Ctrl-C or SIGTERM.

    The preprocessor follows the filters of the channel, and registers with its rendezvous point,
    where agents find it. Several preprocessors of a channel share the load. The token needs the
    right to preprocess. On SIGHUP, the tokens in --config are read again.
    """
    if follows_stdin:
        end_with_stdin()
    if log:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    from tidings.broker import PreprocessorNode, Signer, load_config, make_door
    from tidings.network import connect, parse_address

    place = parse_address(address)
    loaded = None if config is None else load_config(config, of_preprocessor=True)
    for one in () if loaded is None else loaded.warnings:
        remark(one)
    door = make_door(listen, place.channel, loaded)
    if host is None and door.address.host in EVERYWHERE:
        raise EnvironmentProblem(
            f"found --listen {listen}, which is not a host that agents can connect to; "
            "expected --host HOST in addition"
        )
    secret = choose_token(token, token_file)
    signer = None if key is None else Signer(choose_token("", key))

    async def work() -> None:
        late = asyncio.get_running_loop().call_later(
            PATIENCE,
            remark,
            "the nodes of the channel are being loaded; the first time on a machine, matching is "
            "compiled, which can take minutes",
        )
        async with connect(
            address, name=name, token=secret, authorities=authorities, on_link=note_link,
            tag="local",
        ) as agent:  # fmt: skip
            late.cancel()
            node = PreprocessorNode(name or agent.name, agent, door, host=host, signer=signer)
            await node.start()
            ending = asyncio.create_task(wait_for_end(lambda: _read_again(node, config)))
            await asyncio.sleep(0)  # lets the task install its signal handlers
            say(f"the preprocessor listens on {door.address.host}:{node.port}")
            sys.stdout.flush()
            beating = None
            if follows_stdin:
                beating = asyncio.create_task(beat_forever(sys.stdout.fileno()))
            await ending
            if beating is not None:
                beating.cancel()
            await node.stop()

    run_async(work())


def _read_again(node: PreprocessorNode, config: str | None) -> None:
    """Read the tokens of agents again; a bad file changes nothing."""
    from tidings.broker import load_config

    try:
        if config is None:
            raise TidingsError("found no --config, expected the file with the tokens")
        loaded = load_config(config, of_preprocessor=True)
        count = node.renew(loaded.tokens, loaded.tickets)
    except TidingsError as problem:
        remark(f"the tokens are unchanged: {problem}")
        return
    remark(f"the tokens were read again, and {count_of(count, 'link')} ended")
