"""`tidings relations`: what a repository learns from events, and which subscribers get related
events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.common import options
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.events import read_events
from tidings.cli.common.input_files import STDIN
from tidings.cli.common.screen import (
    MOST_ROWS,
    count_of,
    emit,
    plain_text,
    say,
    show,
    show_rest,
    table,
    track,
)
from tidings.cli.common.subscription_files import parse_all, read_subscriptions
from tidings.cli.network.connecting import (
    Authorities,
    Name,
    Token,
    TokenFile,
    choose_token,
    run_async,
)
from tidings.cli.relations.learnt_view import (
    LearntCopy,
    Topic,
    count_clusters,
    draw_clusters,
    rank_topics,
)

NOBODY = "all"  # the name of the hop that stands for filters without a subscriber


class EventTally(msgspec.Struct):
    """Totals over all events."""

    events: int = 0
    exact: int = 0
    related: int = 0
    served: int = 0
    """Pairs of an event and a hop where the hop got the event at once."""
    needed: int = 0
    """Pairs of an event and a hop where the hop needed the event."""
    both: int = 0


def show_relations(
    address: Annotated[
        str | None,
        typer.Argument(metavar="[ADDRESS]", help="A running node, such as tidings://host:7400."),
    ] = None,
    filters: Annotated[
        str | None, typer.Option("--filters", metavar="FILE", help="The filters (- is stdin).")
    ] = None,
    events: Annotated[
        str | None, typer.Option("--events", metavar="FILE", help="The events (- is stdin).")
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="The channel, with ADDRESS.")
    ] = None,
    place: Annotated[
        str | None, typer.Option("--place", metavar="NAME", help="The attribute with a place.")
    ] = None,
    coordinates: Annotated[
        str | None,
        typer.Option("--coordinates", metavar="LAT,LON", help="The attributes with coordinates."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="NAME", help="The attribute with a time.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="NAME", help="The attribute with tags.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="NAME", help="The attribute whose words become tags."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", metavar="NAME", help="The language to stem tags by; english with --text."
        ),
    ] = None,
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="The attribute with a person.")
    ] = None,
    related: Annotated[
        float | None,
        typer.Option(
            "--related",
            metavar="WEIGHT",
            min=0,
            max=1,
            help="For all filters, also find related events, of at least this weight.",
        ),
    ] = None,
    limit: Annotated[
        float,
        typer.Option("--limit", metavar="MERIT", help="The lowest merit that is served at once."),
    ] = 1.0,
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="Your files of places, times, tags and people."
        ),
    ] = None,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="Draw clusters on a map and a time line."),
    ] = None,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    token: Token = "",
    token_file: TokenFile = None,
    name: Name = None,
    authorities: Authorities = None,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show what the relation repository learns from events, or what a running node has learnt.

    With ADDRESS, a router or rendezvous point is asked what it has learnt from notifications of a
    channel with relations.

    Without ADDRESS, --filters and --events are needed. Each event is routed as a router would route
    it: at once to hops with enough merit, then to all subscribers whose filters match; with
    --related also to subscribers whose filters are related. The subscriber of a filter is its hop.

    In both cases, the values with the highest merit are listed.

    Options name the attributes that contain a place, a time, tags or a person; at least one is
    needed. Places, holidays and tags are those of the examples that come with tidings, or of files
    in --folder. With ADDRESS, pass the folder of the node to --folder.

    With --json, one object: traffic, nodes, clusters, topics.
    """
    if address is not None:
        if filters is not None or events is not None:
            raise BadInput(
                "found ADDRESS with --filters or --events, expected either ADDRESS, or both "
                "--filters and --events"
            )
        answer = _inspect(address, channel, choose_token(token, token_file), name, authorities)
        _show_node(answer, folder, svg, None if every else MOST_ROWS, json)
        return
    if filters is None or events is None:
        raise BadInput("found no ADDRESS, expected ADDRESS, or both --filters and --events")
    if filters == events == STDIN:
        raise BadInput("--filters and --events are both stdin, expected a file for one of them")
    load_pyarrow()
    from tidings.relations import EXAMPLES, Limit, Reading, Repository, load_relations

    pair = tuple(filter(None, (coordinates or "").split(",")))
    reading = Reading(place, pair, time, tag, text, person)
    declared = read_types(None, False)
    if language is None and text is not None:
        language = "english"
    semantic = load_relations(folder or EXAMPLES, language=language or None)
    repository = Repository(semantic, reading, limit=Limit(limit))
    plain = 0
    for one, filter_ in parse_all(read_subscriptions(filters, None), dialect, declared):
        wants = related if _names_values(repository, filter_) else None
        plain += related is not None and wants is None
        repository.subscribe(str(one.id), filter_, one.subscriber or NOBODY, wants)
    traffic = route_all(repository, track(read_events(events, None, declared, []), "routing"))
    repository.store.elements.tidy()
    repository.plans.count_uses()
    topics = rank_topics(repository)
    if svg is not None:
        write_picture(draw_clusters(repository), svg)
    if json:
        sizes = count_clusters(repository)
        emit({"traffic": traffic, "nodes": len(repository.store), "clusters": sizes,
              "topics": topics})  # fmt: skip
        return
    _show(repository, traffic, topics, None if every else MOST_ROWS)
    if plain:
        say(f"{count_of(plain, 'filter')} without a test that names values: exact matches only")


def _inspect(
    address: str, channel: str | None, token: str, name: str | None, authorities: str | None
) -> Any:
    from tidings.network import inspect

    if channel is not None:
        address = f"{address.rstrip('/')}/{channel}"
    return run_async(inspect(address, name=name, token=token, authorities=authorities))


def _show_node(
    answer: Any, folder: str | None, svg: str | None, most: int | None, json: bool
) -> None:
    """Show what a running node has learnt."""
    from tidings.relations import EXAMPLES, load_relations

    learnt = LearntCopy(answer, load_relations(folder or EXAMPLES, language=None))
    topics = learnt.topics
    if svg is not None:
        write_picture(draw_clusters(learnt), svg)
    sizes = count_clusters(learnt)
    if json:
        emit({"node": answer.name, "channel": answer.channel, "nodes": answer.total,
              "shown": len(answer.nodes), "pending": answer.pending, "left_out": answer.left_out,
              "early_bytes": answer.early, "early_used": answer.early_used, "clusters": sizes,
              "topics": topics, "same_names": learnt.has_same_names,
              "own_merits": bool(answer.topics) or not answer.nodes})  # fmt: skip
        return
    _show_topics(topics, most)
    if not learnt.has_same_names:
        merits = "" if answer.topics else " Merits were computed with the wrong files."
        where = "the example files" if folder is None else folder
        say(f"Warning: {answer.name} has other files of names than {where}, so names of times may "
            f"differ. Pass its folder with --folder.{merits}")  # fmt: skip
    shown = "" if len(answer.nodes) == answer.total else f", {len(answer.nodes):,} of them shown"
    say(f"{answer.name}: {count_of(answer.total, 'node')}{shown}; clusters: {_sizes(sizes)}")
    say(f"{answer.pending:,} to be learnt; {count_of(answer.left_out, 'frame')} left out, because "
        "there were too many")  # fmt: skip
    share = f" ({answer.early_used / answer.early:.0%})" if answer.early else ""
    say(f"sent early: {answer.early:,} bytes, of which {answer.early_used:,} were needed{share}")


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} of {name}" for name, count in sizes.items() if count) or "none"


def _show_topics(topics: list[Topic], most: int | None) -> None:
    rows = [[one.context, one.value, one.hop, f"{one.merit:.2f}", f"{one.uses:,}"]
            for one in islice(topics, most)]  # fmt: skip
    if rows:
        show(plain_text("Values with the highest merit", "bold"),
             table(["context", "value", "best hop", "merit#", "uses#"], rows), "")  # fmt: skip
        show_rest(len(topics) - len(rows), "more value")


def route_all(repository: Any, events: Iterable[Any]) -> EventTally:
    """Route events, one second apart, and learn from each."""
    traffic = EventTally()
    for now, event in enumerate(events):
        proposal = repository.propose(event, now)
        later = repository.complete(proposal, now)
        frames = (*proposal.frames, *later)
        exact = {frame.hop for frame in frames if frame.ids}
        early = {frame.hop for frame in proposal.frames}
        traffic.events += 1
        traffic.exact += sum(len(frame.ids) for frame in frames)
        traffic.related += sum(len(frame.related) for frame in frames)
        traffic.served += len(early)
        traffic.needed += len(exact)
        traffic.both += len(early & exact)
        repository.work()
    return traffic


def write_picture(picture: str, path: str) -> None:
    try:
        Path(path).write_text(picture, "utf-8")
    except OSError as problem:
        raise BadInput(f"{path}: the picture can't be written: {problem.strerror}") from None


def _names_values(repository: Any, filter_: Any) -> bool:
    """Whether messages can be related to the filter."""
    return bool(repository.related.can_weigh(filter_))


def _show(repository: Any, traffic: EventTally, topics: list[Topic], most: int | None) -> None:
    _show_topics(topics, most)
    say(f"{count_of(traffic.events, 'event')}: {traffic.exact:,} exact matches, "
        f"{traffic.related:,} related")  # fmt: skip
    say(
        f"{count_of(len(repository.store), 'node')}; clusters: {_sizes(count_clusters(repository))}"
    )
    say(f"served at once: {traffic.both:,} of {traffic.needed:,} that were needed, and "
        f"{traffic.served - traffic.both:,} that were not")  # fmt: skip
