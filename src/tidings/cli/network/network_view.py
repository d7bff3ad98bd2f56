"""Shows a running network: its tree as a table, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidings.cli.common.screen import count_of, cut, plain_text
from tidings.cli.network.network_tables import (
    ChannelRow,
    NameRow,
    PipelineRow,
    PreprocessorRow,
    channel_path,
    draw_channels,
    draw_names,
    draw_pipelines,
    draw_preprocessors,
    format_count,
    format_rate,
    format_size,
    list_channels,
    list_names,
    list_pipelines,
    list_preprocessors,
    source_path,
    tagger_path,
)
from tidings.routing.protocol import messages as m

SILENT = 5_000  # milliseconds without a report after which a node counts as silent
AGENTS = 3  # agents shown for each node
NAME = 20  # characters for a name and its branch lines
LEAST = 8  # at least this many characters are left for a name, however deep its node is
NUMBERS = ("nodes", "in/s", "out/s", "waiting", "dropped")

Path = tuple[str, ...]


class Rates(msgspec.Struct, frozen=True):
    """Notifications per second; None if not known yet."""

    into: float | None = None
    out: float | None = None


class CounterSample(msgspec.Struct, frozen=True):
    """Counters at one point in time."""

    uptime: int
    into: int
    out: int


class ShownNode(msgspec.Struct):
    """A node of the drawing, with its report if there is one."""

    name: str
    path: Path
    status: m.NodeStatus | None
    link: m.LinkStatus | None = None  # the link to the node, as the node above reports it
    below: list[ShownNode] = []


class NetworkView:
    """The latest report of a network, and the rates since the previous report."""

    def __init__(
        self, every: bool = False, expected: Iterable[tuple[str, str | None]] = ()
    ) -> None:
        """With `every`, all agents are shown. `expected` has the (name, parent) of nodes that are
        shown even without a report; parents come first."""
        self.every = every
        self._expected = [*expected]
        self.trees: list[ShownNode] = []
        self._complete()
        self._places: Mapping[str, str] = {}
        self._samples: dict[Path, CounterSample] = {}
        self._rates: dict[Path, Rates] = {}

    def feed(self, report: m.Report) -> None:
        """Update the view from a report."""
        self.trees = _build_trees(report)
        self._complete()
        seen: dict[Path, CounterSample] = {}
        for one in _all(self.trees):
            if one.status is not None:
                seen[one.path] = CounterSample(
                    one.status.uptime, _into(one.status), one.status.told_out
                )
                for link in one.status.links:
                    sample = CounterSample(one.status.uptime, link.told_out, link.told_in)
                    seen[*one.path, f"{link.kind} {link.name}"] = sample
                for tagger in one.status.preprocessors:
                    sample = CounterSample(tagger.uptime, tagger.tagged, 0)
                    seen[tagger_path(one.path, tagger.address)] = sample
                for channel in one.status.carried:
                    sample = CounterSample(one.status.uptime, channel.told, 0)
                    seen[channel_path(one.path, channel.name)] = sample
                for source in one.status.sources:
                    sample = CounterSample(one.status.uptime, source.taken, 0)
                    seen[source_path(one.path, source.stream)] = sample
        for path, new in seen.items():
            old = self._samples.get(path, new)
            if new.uptime != old.uptime:  # if equal, the report is an old one, repeated
                self._rates[path] = _rates_between(old, new)
        self._rates = {path: rates for path, rates in self._rates.items() if path in seen}
        self._samples = seen

    def rates(self, *path: str) -> Rates:
        return self._rates.get(path, Rates())

    @property
    def has_rates(self) -> bool:
        """Whether the rates are known for every node that is not silent."""
        reported = (one for one in _all(self.trees) if one.status is not None)
        return all(one.path in self._rates for one in reported if one.status.age <= SILENT)  # type: ignore[union-attr]

    def preprocessors(self) -> list[PreprocessorRow]:
        return list_preprocessors(self._list_statuses(), self._rate_of)

    def channels(self) -> list[ChannelRow]:
        return list_channels(self._list_statuses(), self._rate_of)

    def pipelines(self) -> list[PipelineRow]:
        return list_pipelines(self._list_statuses(), self._rate_of)

    def names(self) -> list[NameRow]:
        return list_names(self._list_statuses())

    def _rate_of(self, path: Path) -> float | None:
        return self.rates(*path).into

    def _list_statuses(self) -> Iterator[tuple[Path, m.NodeStatus]]:
        for one in _all(self.trees):
            if one.status is not None:
                yield one.path, one.status

    def _complete(self) -> None:
        known = {one.name: one for one in _all(self.trees)}
        for name, upstream in self._expected:
            if name not in known:
                above = None if upstream is None else known[upstream]
                known[name] = ShownNode(name, (*(above.path if above else ()), name), None)
                (above.below if above else self.trees).append(known[name])

    # -- JSON ----------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """The whole report with rates; times are in seconds."""
        nodes = []
        for one in _all(self.trees):
            status = one.status
            if status is None:
                continue
            above = one.path[-2] if len(one.path) > 1 else None
            known: dict[str, Any] = {"name": one.name, "kind": status.kind, "above": above}
            known |= msgspec.structs.asdict(status)
            known |= _seconds(known)
            rates = self.rates(*one.path)
            known |= {"in_per_second": rates.into, "out_per_second": rates.out}
            # `links` is added again as the last key; the other lists are reported once, for all
            # nodes together
            for name in ("links", "preprocessors", "carried", "sources", "names"):
                del known[name]
            nodes.append({**known, "links": [self._link(one, link) for link in status.links]})
        return {
            "nodes": nodes,
            "preprocessors": [msgspec.to_builtins(one) for one in self.preprocessors()],
            "channels": [msgspec.to_builtins(one) for one in self.channels()],
            "pipelines": [msgspec.to_builtins(one) for one in self.pipelines()],
            "names": [msgspec.to_builtins(one) for one in self.names()],
        }

    def _link(self, one: ShownNode, link: m.LinkStatus) -> dict[str, Any]:
        direction = "up" if link.kind == "above" else "below"
        known: dict[str, Any] = {"name": link.name, "kind": link.kind, "direction": direction}
        known |= msgspec.structs.asdict(link)
        known |= _seconds(known)
        rates = self.rates(*one.path, f"{link.kind} {link.name}")
        known |= {"in_per_second": rates.out, "out_per_second": rates.into}
        return known

    # -- table ---------------------------------------------------------------------------------

    def draw(
        self, notes: Mapping[str, str] | None = None, places: Mapping[str, str] | None = None
    ) -> RenderableType:
        """Draw the tree as a table. `notes` has remarks on nodes, and `places` the addresses of
        nodes that send no reports, by name."""
        self._places = places or {}
        made = Table(
            box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0),
            pad_edge=False,
        )  # fmt: skip
        made.add_column("node")  # this column shrinks on a narrow terminal
        made.add_column("where", no_wrap=True)
        for name in NUMBERS:
            made.add_column(name, justify="right", no_wrap=True)
        for tree in self.trees:
            self._rows(made, tree, "", "", notes or {})
        tables: list[RenderableType] = [self._title(), Text(), made]
        preprocessors, channels = self.preprocessors(), self.channels()
        if preprocessors:
            tables += [Text(), draw_preprocessors(preprocessors)]
        if len(channels) > 1 or any(
            one.name or one.followers or one.kind not in ("", "content") for one in channels
        ):
            tables += [Text(), draw_channels(channels, self.every)]
        statuses = [one for _, one in self._list_statuses()]
        pipelines = sum(one.pipelines for one in statuses)
        if pipelines:
            tables += [Text(), draw_pipelines(self.pipelines(), pipelines, self.every)]
        named = sum(one.named for one in statuses)
        if named:
            tables += [Text(), draw_names(self.names(), named, self.every)]
        return Group(*tables)

    def _title(self) -> Text:
        shown = [*_all(self.trees)]
        nodes = [one.status for one in shown if one.status is not None]
        agents = sum(max(0, one.neighbours - _others(one)) for one in nodes)
        parts = [count_of(len(shown), "node"), count_of(agents, "agent")]
        if nodes:
            parts.append(f"up {_clock(nodes[0].uptime // 1000)}")
            parts.append(f"serial {nodes[0].serial:,}")
        channels = max((one.channels for one in nodes), default=1)
        if channels > 1:
            parts.append(f"{channels:,} channels")
        off = ", ".join(one.switched_off for one in nodes if one.switched_off)
        if off:
            parts.append(f"predicates switched off: {off}")
        undeclared = sum(one.undeclared for one in nodes)
        if undeclared:
            parts.append(count_of(undeclared, "undeclared field"))
        refused = sum(one.refused for one in nodes)
        if refused:
            parts.append(f"{refused:,} refused for missing rights")
        strangers = sum(one.strangers for one in nodes)
        if strangers:
            parts.append(f"{count_of(strangers, 'stranger')} refused")
        early = sum(one.early for one in nodes)
        if early:
            used = sum(one.early_used for one in nodes)
            parts.append(f"sent early {format_size(early)}, {used / early:.0%} needed")
        located = sum(one.located for one in nodes)
        if located:
            parts.append(f"{count_of(located, 'place')} from preprocessors")
        silent = sum(one.age > SILENT for one in nodes)
        text = plain_text("  ".join(parts), "dim")
        return text.append(f"  {silent} silent", "yellow") if silent else text

    def _rows(
        self, made: Table, one: ShownNode, before: str, after: str, notes: Mapping[str, str]
    ) -> None:
        """Add the rows of a node. `before` is the prefix of the node's line, and `after` the prefix
        of the lines of the nodes below the node."""
        status = one.status
        where, style = self._places.get(one.name, ""), "bold"
        if status is not None:
            where = status.listen
            if status.age > SILENT:
                where, style = f"silent for {status.age // 1000} s", "yellow"
        if one.name in notes:
            where, style = notes[one.name], "yellow"
        made.add_row(
            _name_cell(before, one.name, style),
            plain_text(where, style if style != "bold" else ""),
            *self._numbers(one),
        )
        agents, rest = self._agents(status)
        under: list[ShownNode | m.LinkStatus | int] = [
            *one.below,
            *agents,
            *([rest] if rest else []),
        ]
        for at, child in enumerate(under, start=1):
            last = at == len(under)
            here, there = after + ("└─ " if last else "├─ "), after + ("   " if last else "│  ")
            if isinstance(child, ShownNode):
                self._rows(made, child, here, there, notes)
            elif isinstance(child, m.LinkStatus):
                path = (*one.path, f"{child.kind} {child.name}")
                made.add_row(
                    _name_cell(here, child.name, "dim"), plain_text(child.kind, "dim"),
                    *_cells(child.nodes, self.rates(*path), child),
                )  # fmt: skip
            else:
                more = " more" if agents else ""
                made.add_row(
                    _name_cell(here, f"and {child:,}{more}", "dim"), plain_text("agents", "dim")
                )

    def _agents(self, status: m.NodeStatus | None) -> tuple[list[m.LinkStatus], int]:
        """Those agents of a node that are shown, and the number of the others. Agents
        that bypass the tree come last."""
        if status is None:
            return [], 0
        direct = [link for link in status.links if link.kind == "direct"]
        agents = [*(link for link in status.links if link.kind == "agent"), *direct]
        shown = agents if self.every or len(agents) <= AGENTS else agents[: AGENTS - 1]
        return shown, max(0, status.neighbours - _others(status) + len(direct) - len(shown))

    def _numbers(self, one: ShownNode) -> list[Text]:
        if one.status is None:
            return [Text() for _ in NUMBERS]
        old = one.status.age > SILENT
        return _cells(one.status.nodes, Rates() if old else self.rates(*one.path), one.link)


@contextmanager
def draw_in_place() -> Iterator[Callable[[RenderableType], None]]:
    """Yield a function that draws a picture on the terminal, replacing the previous one."""
    from rich.live import Live

    console = Console(highlight=False, markup=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda picture: live.update(picture, refresh=True)


def _build_trees(report: m.Report) -> list[ShownNode]:
    """The trees of a report; a report lists each node before the nodes below it."""
    trees: list[ShownNode] = []
    line: list[ShownNode] = []  # the path from the top of the tree to the node drawn last
    for status in report.nodes:
        del line[status.depth :]
        above = line[-1] if line else None
        path = (*(above.path if above else ()), status.name)
        one = ShownNode(status.name, path, status, _link_to(above, status.name))
        (above.below if above else trees).append(one)
        line.append(one)
    return trees


def _link_to(above: ShownNode | None, name: str) -> m.LinkStatus | None:
    if above is None or above.status is None:
        return None
    return next((x for x in above.status.links if x.name == name and x.kind == "router"), None)


def _all(trees: list[ShownNode]) -> Iterator[ShownNode]:
    for one in trees:
        yield one
        yield from _all(one.below)


def _into(status: m.NodeStatus) -> int:
    return status.published if status.kind == "rendezvous" else status.told_in


def _others(status: m.NodeStatus) -> int:
    """The number of neighbours below that are not counted as agents of this node: routers,
    watchers, and direct links, whose agents are counted at their routers. Routers are listed first,
    so all of them are counted unless there are very many."""
    return sum(link.kind in ("router", "watcher", "direct") for link in status.links)


def _rates_between(old: CounterSample, new: CounterSample) -> Rates:
    if new.uptime < old.uptime or new.into < old.into or new.out < old.out:  # a restart
        return Rates()
    seconds = (new.uptime - old.uptime) / 1000
    return Rates(round((new.into - old.into) / seconds, 3), round((new.out - old.out) / seconds, 3))


def _seconds(known: Mapping[str, Any]) -> dict[str, float]:
    return {name: known[name] / 1000 for name in ("uptime", "age", "heard") if name in known}


def _cells(nodes: int, rates: Rates, link: m.LinkStatus | None) -> list[Text]:
    waiting = "" if link is None else format_size(link.waiting)
    dropped = "" if link is None else format_count(link.dropped)
    lost = "red" if link is not None and link.dropped else ""
    cells = [
        plain_text(text)
        for text in (format_count(nodes), format_rate(rates.into), format_rate(rates.out), waiting)
    ]
    return [*cells, plain_text(dropped, lost)]


def _name_cell(before: str, name: str, style: str) -> Text:
    if len(before) > NAME - LEAST:  # in a deep tree, only the nearest branches are kept
        before = "…" + before[LEAST + 1 - NAME :]
    text = Text(before, no_wrap=True, overflow="ellipsis")
    return text.append_text(plain_text(cut(name, NAME - len(before)), style))


def _clock(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{count_of(days, 'day')} {clock}" if days else clock
