"""Tables that are shown below the tree of a network: preprocessors, channels, pipelines and named
subscriptions. Numbers are shortened to few characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from rich import box
from rich.table import Table

from tidings.cli.common.screen import cut, plain_text
from tidings.routing.protocol import messages as m

SHOWN = 10  # rows of a table without --all
NAME = 30  # characters of a name

Path = tuple[str, ...]
Reported = Iterable[tuple[Path, m.NodeStatus]]  # the nodes of a report, with their paths
RateOf = Callable[[Path], float | None]  # notifications per second; None if not yet known


class PreprocessorRow(msgspec.Struct, frozen=True):
    """A preprocessor. The preprocessor last reported `heard` seconds ago; `behind` is the number of
    changes to nodes that it had not yet received then."""

    name: str
    address: str
    above: str  # the rendezvous point
    tagged: int
    tags_per_second: float | None
    version: int
    behind: int
    uptime: float
    heard: float


class ChannelRow(msgspec.Struct):
    """A channel. The number of nodes and the rate are from the report of the highest node;
    subscriptions are added up over all nodes."""

    name: str
    nodes: int
    subscriptions: int
    per_second: float | None
    asleep: bool
    kind: str  # empty if the channel's rendezvous point is neither the watched node nor below it
    followers: int


class PipelineRow(msgspec.Struct, frozen=True):
    """A pipeline that hands over batches. `parts` counts the stored parts of the pipeline's last
    batch; `heard` is the number of seconds since the last part, or null if the pipeline has handed
    over nothing since the rendezvous point started."""

    name: str
    stream: str
    above: str  # the rendezvous point
    batch: int | None
    parts: int
    whole: bool
    taken: int
    per_second: float | None
    heard: float | None


class NameRow(msgspec.Struct, frozen=True):
    """A named subscription. All notifications up to `serial` are confirmed; `behind` counts the
    matching notifications after `serial`."""

    owner: str
    name: str
    above: str  # the rendezvous point
    serial: int
    behind: int


def tagger_path(path: Path, address: str) -> Path:
    """The path under which the counters of a preprocessor are kept."""
    return *path, "preprocessor", address


def channel_path(path: Path, name: str) -> Path:
    """The path under which the counters of a channel at a node are kept."""
    return *path, "channel", name


def source_path(path: Path, stream: str) -> Path:
    """The path under which the counters of a pipeline are kept."""
    return *path, "pipeline", stream


def list_preprocessors(nodes: Reported, rate_of: RateOf) -> list[PreprocessorRow]:
    return [
        PreprocessorRow(
            one.name, one.address, status.name, one.tagged,
            rate_of(tagger_path(path, one.address)), one.version, one.behind, one.uptime / 1000,
            one.heard / 1000,
        )
        for path, status in nodes
        for one in status.preprocessors
    ]  # fmt: skip


def list_channels(nodes: Reported, rate_of: RateOf) -> list[ChannelRow]:
    """The channels of all nodes, those with the most notifications first. Each of the `nodes` comes
    before the nodes below it."""
    found: dict[str, ChannelRow] = {}
    for path, status in nodes:
        for one in status.carried:
            known = found.get(one.name)
            if known is None:
                rate = rate_of(channel_path(path, one.name))
                found[one.name] = ChannelRow(
                    one.name, one.nodes, one.subscriptions, rate, one.asleep, one.kind,
                    one.followers,
                )  # fmt: skip
            else:
                known.subscriptions += one.subscriptions
                known.kind = known.kind or one.kind
                known.followers += one.followers
    return sorted(
        found.values(), key=lambda one: (-(one.per_second or 0), -one.subscriptions, one.name)
    )


def list_pipelines(nodes: Reported, rate_of: RateOf) -> list[PipelineRow]:
    return [
        PipelineRow(
            one.name, one.stream, status.name, one.batch, one.parts, one.whole, one.taken,
            rate_of(source_path(path, one.stream)),
            None if one.heard is None else (one.heard + status.age) / 1000,
        )
        for path, status in nodes
        for one in status.sources
    ]  # fmt: skip


def list_names(nodes: Reported) -> list[NameRow]:
    return [
        NameRow(one.owner, one.name, status.name, one.serial, one.behind)
        for _, status in nodes
        for one in status.names
    ]


def draw_preprocessors(rows: Iterable[PreprocessorRow]) -> Table:
    made = _table("preprocessor", "where", "tags/s", "version", "behind")
    for one in rows:
        late = "yellow" if one.behind else ""
        made.add_row(
            plain_text(cut(one.name, NAME), "bold"),
            plain_text(one.address.partition("://")[2].rstrip("/")),
            plain_text(format_rate(one.tags_per_second)),
            plain_text(str(one.version)),
            plain_text(format_count(one.behind), late),
        )
    return made


def draw_channels(rows: list[ChannelRow], every: bool) -> Table:
    made = _table("channel", "kind", "nodes", "subscriptions", "followers", "notifications/s")
    shown = rows if every else rows[:SHOWN]
    for one in shown:
        made.add_row(
            plain_text(cut(one.name or "(no name)", NAME), "bold"),
            plain_text("asleep" if one.asleep else one.kind, "dim"),
            plain_text(format_count(one.nodes)),
            plain_text(format_count(one.subscriptions)),
            plain_text(format_count(one.followers)),
            plain_text(format_rate(one.per_second)),
        )
    _add_rest(made, len(rows) - len(shown))
    return made


def draw_pipelines(rows: list[PipelineRow], total: int, every: bool) -> Table:
    """`total` counts all pipelines, including those that the report leaves out."""
    made = _table("pipeline", "stream", "batch", "parts", "notifications/s", "heard")
    shown = rows if every else rows[:SHOWN]
    for one in shown:
        parts = f"{one.parts:,}" if one.whole or one.batch is None else f"{one.parts:,} so far"
        made.add_row(
            plain_text(cut(one.name or "(not seen yet)", NAME), "bold" if one.name else "dim"),
            plain_text(one.stream, "dim"),
            plain_text("-" if one.batch is None else f"{one.batch:,}"),
            plain_text("-" if one.batch is None else parts),
            plain_text(format_rate(one.per_second)),
            plain_text("-" if one.heard is None else f"{format_age(one.heard)} ago"),
        )
    _add_rest(made, total - len(shown))
    return made


def draw_names(rows: list[NameRow], total: int, every: bool) -> Table:
    """`total` counts all named subscriptions, including those that the report leaves out."""
    made = _table("named subscription", "owner", "confirmed up to", "behind")
    shown = rows if every else rows[:SHOWN]
    for one in shown:
        made.add_row(
            plain_text(cut(one.name, NAME), "bold"),
            plain_text(cut(one.owner or "(everybody)", NAME)),
            plain_text(f"{one.serial:,}"),
            plain_text(format_count(one.behind), "yellow" if one.behind else ""),
        )
    _add_rest(made, total - len(shown))
    return made


def _add_rest(made: Table, count: int) -> None:
    if count > 0:
        made.add_row(plain_text(f"and {count:,} more", "dim"))


def _table(name: str, where: str, *numbers: str) -> Table:
    made = Table(
        box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, padding=(0, 1, 0, 0),
        pad_edge=False,
    )  # fmt: skip
    made.add_column(name, no_wrap=True)
    made.add_column(where, no_wrap=True)
    for one in numbers:
        made.add_column(one, justify="right", no_wrap=True)
    return made


def format_rate(rate: float | None) -> str:
    if rate is None:
        return "-"
    return format_count(round(rate)) if rate >= 10 or not rate else f"{rate:.1f}"


def format_age(seconds: float) -> str:
    """A time in at most five characters."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def format_count(count: int) -> str:
    """A count in at most six characters."""
    if count < 100_000:
        return f"{count:,}"
    return _in_units(count, ("", " k", " M", " G", " T"))


def format_size(size: int) -> str:
    return _in_units(size, (" B", " KB", " MB", " GB", " TB"))


def _in_units(amount: float, units: tuple[str, ...]) -> str:
    at = 0
    while amount >= 999.5 and at + 1 < len(units):
        amount, at = amount / 1000, at + 1
    return f"{amount:.1f}{units[at]}" if at and amount < 9.95 else f"{amount:.0f}{units[at]}"
