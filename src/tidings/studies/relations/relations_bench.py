"""Measures the relation repository: `tidings bench relations`.

The topics of subscriptions and messages follow Zipf's law, with exponent 1.1. One in five
subscriptions also tests a price. Topics form a tree: the topics T10 to T19 are below T1. Equal
filters share one node, as at a rendezvous point, and the matcher has only these nodes. The
repository learns from the first messages; then other messages are measured.

    match     `Matcher.match` of single events, all nodes
    propose   the fast path: which hops are served at once, and with which ids
    first     the fast path of all messages in their order, with and without a plan
    complete  the exact search after the fast path, without the filters that are already decided

Times are processor times, measured in turn, as medians over repeats. Results are checked first.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tidings.filters import parse
from tidings.matching import Matcher
from tidings.relations import Limit, Reading, Repository, SemanticStore, StoreSettings
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.relations.forwarding_bench import ForwardingRow, measure_forwarding
from tidings.studies.relations.related_bench import RELATED, RelatedRun, measure_related
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.draws import draw_bounded_zipf

EXPONENT = 1.1
PRICED, LEVELS = 0.2, 10  # the share of subscriptions that test a price, and the number of prices
STORE_SHARE = 0.1  # the store may have at most this share of the nodes
CHECKED = 200  # messages that are checked against the matcher
LIMITS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
Event = dict[str, Any]
Note = Callable[[str], None]


class LimitRow(msgspec.Struct, frozen=True):
    """Early sends at one limit. Precision: the share of the early sends that went to a hop that
    needed the message. Recall: the share of the needed sends that were made early."""

    limit: float
    precision: float
    recall: float


class RelationsReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    seed: int
    topics: int
    subscriptions: int
    nodes: int
    """Distinct filters."""
    hops: int
    learnt_messages: int
    messages: int
    least: int
    """The store admits pairs of topic and hop with at least this many subscriptions."""
    store_nodes: int
    store_elements: int
    store_share: float
    """The number of nodes in the store, divided by the number of distinct filters."""
    answers: int
    served: float
    """The share of the matching messages for which all hops were served at once."""
    served_some: float
    """The share of the matching messages for which at least one hop was served at once."""
    decided: float
    """The share of the matching messages for which the exact search had stored answers."""
    planned: float
    """The share of messages whose values had a plan already."""
    first_micros: float
    """The fast path of all messages in their order, including the time to make plans."""
    first_speedup: float
    """For all messages in their order: the time of `match`, divided by that of the fast path."""
    match_micros: float
    propose_micros: float
    speedup: float
    """For served messages: the time of `match`, divided by that of `propose`."""
    search_micros: float
    """The exact search alone, without the filters that are decided already."""
    search_all_micros: float
    """The exact search alone, if no filters are decided already."""
    complete_micros: float
    match_all_micros: float
    both_micros: float
    """For all messages: `propose` and `complete` together."""
    score_micros: float
    """Merits from arrays, without a plan."""
    find_micros: float
    """Merits in Python, without arrays."""
    limits: list[LimitRow]
    related: RelatedRun
    """The run with the limit 0.7; the next field has the runs with all limits."""
    related_limits: list[RelatedRun]
    forwarding: list[ForwardingRow]
    """How much processor time relations cost a router."""


def bench_relations(
    subscriptions: int = 1_000_000,
    topics: int = 100_000,
    *,
    hops: int = 4,
    learn: int = 100_000,
    messages: int = 20_000,
    related: int = 1000,
    repeats: int = 3,
    seed: int = 1,
    note: Note = lambda _: None,
) -> RelationsReport:
    """Build the repository, let it learn, and measure it. `related` subscriptions are compared with
    a full scan, at several limits."""
    machine = describe_machine()
    rng = np.random.default_rng([seed, topics])
    note("drawing subscriptions")
    filters, wanted, counts = draw_subscriptions(rng, subscriptions, topics, hops)
    note(f"building {len(filters):,} nodes")
    parsed = [parse(text) for text in filters]
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(parsed))
    matcher.merge()
    semantic = draw_topic_tree(topics)
    most = max(1, int(len(filters) * STORE_SHARE))
    least = _least(filters, wanted, counts, most)
    settings = StoreSettings(least=least, most=most)
    repository = Repository(semantic, Reading(tag="topic"), settings=settings, plan_all=False)
    first = dict(reversed(wanted))  # one hop for each node
    repository.subscribe_many((node, parsed[node], f"hop {hop}") for node, hop in first.items())
    for (node, hop), count in zip(wanted, counts, strict=True):
        repository.set_count(node, f"hop {hop}", count)
    repository.exact.merge()
    note(f"learning from {learn:,} messages")
    for now, event in enumerate(draw_messages(rng, learn, topics)):
        repository.route(event, now)
        if now % 100 == 99:
            repository.work()
    repository.work()
    events = draw_messages(rng, messages, topics)
    note("checking")
    hops_of: dict[Hashable, set[Hashable]] = {}
    for node, hop in wanted:
        hops_of.setdefault(node, set()).add(f"hop {hop}")
    needed = [set().union(*map(hops_of.__getitem__, matcher.match(event))) for event in events]
    _check(matcher, repository, hops_of, events[:CHECKED], learn)
    note("measuring")
    right = [at for at, some in enumerate(needed) if some]
    planned = sum((event["topic"],) in repository.plans.by_values for event in events)
    spent = time.process_time()
    proposals = [repository.propose(event, learn) for event in events]
    fresh = (time.process_time() - spent) / max(1, len(events)) * 1e6
    early = [{frame.hop for frame in one.frames} for one in proposals]
    full = [at for at in right if needed[at] <= early[at]]
    decided = sum(bool(repository.exact.find_answers(events[at]).ids()) for at in right)
    partly = sum(bool(needed[at] & early[at]) for at in right)
    times = _measure(matcher, repository, events, [events[at] for at in full], repeats, learn)
    limits = _try_limits(repository, events, needed, learn)
    note("related subscriptions")
    runs = measure_related(random.Random(seed), related)
    (found,) = (run for run in runs if run.limit == RELATED)
    note("forwarding")
    forwarding = measure_forwarding(seed, messages, repeats)
    return RelationsReport(
        machine=machine, seed=seed, topics=topics, subscriptions=subscriptions,
        nodes=len(filters), hops=hops, learnt_messages=learn, messages=messages,
        least=least, store_nodes=len(repository.store),
        store_elements=len(repository.store.elements),
        store_share=len(repository.store) / len(filters),
        answers=repository.exact.held_answers(), served=len(full) / max(1, len(right)),
        served_some=partly / max(1, len(right)), decided=decided / max(1, len(right)),
        planned=planned / len(events),
        speedup=times["match_micros"] / times["propose_micros"], limits=limits, related=found,
        related_limits=runs, forwarding=forwarding,
        first_micros=fresh, first_speedup=times["match_all_micros"] / fresh,
        **times,
    )  # fmt: skip


# -- workload ------------------------------------------------------------------------------------


def draw_subscriptions(
    rng: np.random.Generator, count: int, topics: int, hops: int, priced: float = PRICED
) -> tuple[list[str], list[tuple[int, int]], list[int]]:
    """The distinct filters, the pairs of a filter and a hop that subscribes to it, and how many
    subscriptions each pair has."""
    drawn = draw_bounded_zipf(rng, EXPONENT, topics, count)
    levels = np.where(rng.random(count) < priced, rng.integers(1, LEVELS + 1, count), 0)
    wanted = (drawn * (LEVELS + 1) + levels) * hops + rng.integers(0, hops, count)
    pairs, counts = np.unique(wanted, return_counts=True)
    numbers, nodes = np.unique(pairs // hops, return_inverse=True)
    texts = []
    for number in numbers.tolist():
        topic, level = divmod(number, LEVELS + 1)
        price = f" AND price > {level * 100 // LEVELS}" if level else ""
        texts.append(f"topic = 'T{topic + 1}'{price}")
    wanting = list(zip(nodes.tolist(), (pairs % hops).tolist(), strict=True))
    return texts, wanting, counts.tolist()


def _least(
    filters: Sequence[str], wanted: Sequence[tuple[int, int]], counts: Sequence[int], most: int
) -> int:
    """The lowest threshold at which the store has room for all pairs of topic and hop that have at
    least that many subscriptions."""
    totals: dict[tuple[str, int], int] = {}
    for (node, hop), count in zip(wanted, counts, strict=True):
        topic = filters[node].partition(" AND ")[0]
        totals[topic, hop] = totals.get((topic, hop), 0) + count
    ordered = sorted(totals.values(), reverse=True)
    return ordered[most] + 1 if most < len(ordered) else 1


def draw_messages(rng: np.random.Generator, count: int, topics: int) -> list[Event]:
    drawn = draw_bounded_zipf(rng, EXPONENT, topics, count).tolist()
    prices = rng.integers(0, 100, count).tolist()
    return [{"topic": f"T{topic + 1}", "price": price}
            for topic, price in zip(drawn, prices, strict=True)]  # fmt: skip


def draw_topic_tree(topics: int) -> SemanticStore:
    """Topics as tags: T123 is below T12, which is below T1."""
    semantic = SemanticStore()
    for number in range(1, topics + 1):
        semantic.tags.add(f"T{number}", [f"T{number // 10}"] if number > 9 else ())
    return semantic


# -- measurements --------------------------------------------------------------------------------


def _check(
    matcher: Matcher,
    repository: Repository,
    hops: Mapping[Hashable, set[Hashable]],
    events: Sequence[Event],
    now: float,
) -> None:
    """Compare the nodes and hops of frames with those that the matcher finds."""
    for event in events:
        frames = repository.route(event, now)
        found = [(id_, frame.hop) for frame in frames for id_ in frame.ids]
        want = {(node, hop) for node in matcher.match(event) for hop in hops[node]}
        if set(found) != want or len(found) != len(want):
            raise WrongMatches(f"{event}: the repository and the matcher find different filters")


def _measure(
    matcher: Matcher,
    repository: Repository,
    events: Sequence[Event],
    served: Sequence[Event],
    repeats: int,
    now: float,
) -> dict[str, float]:
    proposals = [repository.propose(event, now) for event in events]
    terms = [repository.reader.terms(event) for event in events]
    few = terms[:500]
    ways: dict[str, tuple[Callable[[Any], Any], Sequence[Any]]] = {
        "match_micros": (matcher.match, served),
        "propose_micros": (lambda event: repository.propose(event, now), served),
        "match_all_micros": (matcher.match, events),
        "both_micros": (
            lambda event: repository.complete(repository.propose(event, now), now), events
        ),
        "complete_micros": (lambda one: repository.complete(one, now), proposals),
        "search_micros": (
            lambda one: repository.exact.search(one.event, one.answered), proposals
        ),
        "search_all_micros": (repository.exact.search, events),
        "score_micros": (repository.postings.score, terms),
        "find_micros": (repository.store.find, few),
    }  # fmt: skip
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):  # the first turn warms up
        for name, (work, given) in ways.items():
            start = time.process_time()
            for one in given:
                work(one)
            if turn:
                spent[name].append((time.process_time() - start) / max(1, len(given)) * 1e6)
    return {name: statistics.median(found) for name, found in spent.items()}


def _try_limits(
    repository: Repository, events: Sequence[Event], needed: Sequence[set[Hashable]], now: float
) -> list[LimitRow]:
    """Early sends at several limits, compared with the hops that need each message."""
    rows = []
    wanted = sum(map(len, needed))
    repository.plan_all = True
    for limit in LIMITS:
        repository.set_limit(Limit(limit))
        sent = right = 0
        for event, hops in zip(events, needed, strict=True):
            early = {frame.hop for frame in repository.propose(event, now).frames}
            sent += len(early)
            right += len(early & hops)
        rows.append(LimitRow(limit, right / max(1, sent), right / max(1, wanted)))
    repository.set_limit(Limit())
    repository.plan_all = False
    return rows
