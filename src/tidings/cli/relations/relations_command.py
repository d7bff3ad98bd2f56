"""`tidings relations`: what a repository learns from events, and who gets related ones."""

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

NOBODY = "all"  # the hop of filters without a subscriber


class Traffic(msgspec.Struct):
    """What happened to all events."""

    events: int = 0
    exact: int = 0
    related: int = 0
    served: int = 0
    """Pairs of an event and a hop that were served at once."""
    needed: int = 0
    """Pairs of an event and a hop that needed it."""
    both: int = 0


class Topic(msgspec.Struct, frozen=True):
    """An element of the store: what a message with this value alone would be worth."""

    context: str
    value: str
    hop: str
    merit: float
    uses: int


def show_relations(
    filters: Annotated[
        str, typer.Option("--filters", metavar="FILE", help="The filters (- is stdin).")
    ],
    events: Annotated[
        str, typer.Option("--events", metavar="FILE", help="The events (- is stdin).")
    ],
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
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="The attribute with a person.")
    ] = None,
    related: Annotated[
        float | None,
        typer.Option(
            "--related",
            metavar="SHARE",
            min=0,
            max=1,
            help="All filters also want events that are related so much.",
        ),
    ] = None,
    limit: Annotated[
        float, typer.Option("--limit", metavar="MERIT", help="The merit that is served at once.")
    ] = 1.0,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="FOLDER", help="Places, times, tags, people: your files."),
    ] = None,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="Draw clusters on a map and a time line."),
    ] = None,
    dialect: options.Dialect = "sql",
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show what the relation repository learns from events.

    Each event is routed as a router would do it: to hops of enough merit at once, then to all
    subscribers whose filters match; with --related also to those whose filters are related. The
    subscriber of a filter is its hop. Afterwards the values with the highest merit are listed.

    Say which attributes have a place, a time, tags or a person: at least one of them. Places,
    holidays and tags are those of the examples that come with tidings, or of files in --folder.

    With --json, one object: traffic, nodes, clusters, topics.
    """
    if filters == events == STDIN:
        raise BadInput("--filters and --events are both stdin, expected a file for one of them")
    load_pyarrow()
    from tidings.relations import EXAMPLES, Limit, Reading, Repository, load_relations

    pair = tuple(filter(None, (coordinates or "").split(",")))
    reading = Reading(place, pair, time, tag, None, person)
    declared = read_types(None, False)
    semantic = load_relations(folder or EXAMPLES, language=None)
    repository = Repository(semantic, reading, limit=Limit(limit))
    plain = 0
    for one, filter_ in parse_all(read_subscriptions(filters, None), dialect, declared):
        wants = related if _names_values(repository, filter_) else None
        plain += related is not None and wants is None
        repository.subscribe(str(one.id), filter_, one.subscriber or NOBODY, wants)
    traffic = route_all(repository, track(read_events(events, None, declared, []), "routing"))
    repository.store.elements.tidy()
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


def route_all(repository: Any, events: Iterable[Any]) -> Traffic:
    """Route events, one second apart, and learn from each."""
    traffic = Traffic()
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


def rank_topics(repository: Any) -> list[Topic]:
    """The values of the store, those with the highest merit first."""
    repository.plans.count_uses()
    found = []
    for term in repository.store.elements:
        scores = repository.postings.score([term])
        hop = max(scores, key=scores.__getitem__)
        uses = sum(node.uses for node in repository.store.nodes_at(term).values())
        found.append(
            Topic(term.context, _title(repository, term.value), str(hop), scores[hop], uses)
        )
    return sorted(found, key=lambda one: (-one.merit, -one.uses, one.context, one.value))


def count_clusters(repository: Any) -> dict[str, int]:
    from tidings.relations.semantic import CONTEXTS

    return {one: sum(1 for _ in repository.store.elements.clusters(one)) for one in CONTEXTS}


def draw_clusters(repository: Any) -> str:
    """Clusters of places on a map, and of times on a line, in the colour of their hop."""
    from tidings.cli.relations.relation_picture import Bar, Dot, Ring, draw_picture
    from tidings.relations import Place, Span
    from tidings.relations.semantic import day_of

    store = repository.store
    dots: list[Dot] = []
    rings: list[Ring] = []
    bars: list[Bar] = []
    for centre, members in store.elements.clusters("place"):
        hop = str(store.majority_hop("place", members) or "no majority")
        dots += [
            Dot(one.lat, one.lon, hop, 4.0, one.name)
            for one in members
            if isinstance(one, Place) and one.lat is not None and one.lon is not None
        ]
        if isinstance(centre, Place) and centre.lat is not None and centre.lon is not None:
            rings.append(Ring(centre.lat, centre.lon, store.settings.radius_km, hop))
    for _, members in store.elements.clusters("time"):
        hop = str(store.majority_hop("time", members) or "no majority")
        bars += [Bar(day_of(int(one.middle)), hop, 1) for one in members if isinstance(one, Span)]
    kinds = sorted({*(str(dot.kind) for dot in dots), *(bar.kind for bar in bars)})
    return draw_picture("Clusters, by the hop of the majority", dots, rings, bars, kinds)


def write_picture(picture: str, path: str) -> None:
    try:
        Path(path).write_text(picture, "utf-8")
    except OSError as problem:
        raise BadInput(f"{path}: the picture can't be written: {problem.strerror}") from None


def _names_values(repository: Any, filter_: Any) -> bool:
    """Whether what is related to a filter can be found."""
    return bool(repository.related.can_weigh(filter_))


def _title(repository: Any, value: Any) -> str:
    from tidings.relations import Place, Recurring, Span

    if isinstance(value, (Span, Recurring)):
        return str(repository.semantic.calendar.title(value))
    if isinstance(value, Place):
        return value.name or f"{value.lat}, {value.lon}"
    return str(value)


def _show(repository: Any, traffic: Traffic, topics: list[Topic], most: int | None) -> None:
    rows = [[one.context, one.value, one.hop, f"{one.merit:.2f}", f"{one.uses:,}"]
            for one in islice(topics, most)]  # fmt: skip
    if rows:
        show(plain_text("Values with the highest merit", "bold"),
             table(["context", "value", "best hop", "merit#", "uses#"], rows), "")  # fmt: skip
        show_rest(len(topics) - len(rows), "more value")
    clusters = ", ".join(f"{count:,} of {name}" for name, count in
                         count_clusters(repository).items() if count)  # fmt: skip
    say(f"{count_of(traffic.events, 'event')}: {traffic.exact:,} exact matches, "
        f"{traffic.related:,} related")  # fmt: skip
    say(f"{count_of(len(repository.store), 'node')}; clusters: {clusters or 'none'}")
    say(f"served at once: {traffic.both:,} of {traffic.needed:,} that were needed, and "
        f"{traffic.served - traffic.both:,} that were not")  # fmt: skip
