"""`tidings backtest`: how often would these filters have fired?"""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from tidings.cli.backtests import backtest_tables
from tidings.cli.common import options
from tidings.cli.common.command_errors import BadInput, remark
from tidings.cli.common.declared_types import DeclaredTypes, read_types
from tidings.cli.common.input_files import STDIN
from tidings.cli.common.screen import (
    count_of,
    cut,
    emit,
    plain_text,
    show,
    show_rest,
    table,
    tasks_bar,
)
from tidings.cli.common.subscription_files import (
    FileSubscription,
    note_odd,
    parse_all,
    read_subscriptions,
    refuse_never,
)
from tidings.filters import Filter

if TYPE_CHECKING:
    from tidings.spark.backtests import Backtest

NOISIEST = 10  # rows that the table shows without --all
FEW = 3  # with at most this many filters, all samples are shown
LINE = 16  # characters of a sparkline
CHART = 90  # characters of a chart


def run_backtest(
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="PATH",
            help="The table: a file, a folder, a pattern, - for stdin, or the word flights.",
        ),
    ],
    filters: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILTER...", help="The filters.", show_default=False),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--filters",
            metavar="FILE",
            help="A file of filters, instead of FILTER... (- is stdin).",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="COLUMN",
            help="The time column; needed if the table has several.",
        ),
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="BUCKET",
            help="Time bucket: minute, hour, day, week, month, or a number of minutes.",
        ),
    ] = "day",
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=0, help="Rows to show for each filter.")
    ] = 5,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="OUT", help="Also draw a picture.")
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="Where Spark runs.")
    ] = "local[2]",
    shared: Annotated[
        Path | None,
        typer.Option(
            "--shared",
            metavar="DIR",
            help="A folder that all machines of --master see, for the compiled filters.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the table: parquet, csv or json; by default from the extension.",
            show_default=False,
        ),
    ] = None,
    filters_format: options.FiltersFormat = None,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    force: options.Force = False,
    all_: options.All = False,
    json: options.Json = False,
) -> None:
    """Count how often filters would have fired on a table of past events.

    The table is a file or a folder of Parquet, CSV with a header, or JSON (lines, or an array); a
    pattern such as 'in/*.json.gz' names several files. Spark infers the column types of CSV and
    JSON; --types converts columns, and a value that can't be converted becomes null. --on flights
    reads the flights of the demo.

    For each filter, shows how often it fired, the mean and maximum per time bucket, the share of
    rows, the first and last time, and a sparkline. Then come a chart of the filter, or of all
    filters together, and sample rows. Times are in UTC. Rows without a time are counted separately.

    If --master has executors on other machines, these must be able to read the table and the
    compiled filters. --shared names a folder that all of them see at the same path; files that are
    written there are removed at the end.

    A filter on the command line that can never match is refused, unless --force is given. If
    a filter from --filters can never match, a note on stderr names it.

    With --json, one line with totals (rows, untimed, time, every, stretches, filters, seconds), and
    one for each filter (id, filter, total, untimed, share, mean, most, busiest, first, last, fired,
    samples, never: true if it can never match). fired has pairs of a time bucket and a count;
    stretches is the number of time buckets.
    """
    from tidings.spark.backtests import TimeBucket

    step = TimeBucket.parse(every)
    if on == file == STDIN:
        raise BadInput("--on and --filters are both stdin, expected a file for one of them")
    form = backtest_tables.format_of(on, format_)
    asked = _read_filters(filters or [], file, filters_format)
    declared = read_types(types, others)
    parsed = _parse_filters(asked, dialect, declared, force or file is not None)
    shared = backtest_tables.choose_shared_folder(master, shared, "--shared")
    if png is not None:
        _need_matplotlib()
    with (
        backtest_tables.name_table_in_errors(on),
        backtest_tables.open_session(master) as spark,
        backtest_tables.table_of(spark, on, form, shared, declared) as df,
        backtest_tables.compile_filters(parsed, shared, declared.attributes) as ready,
    ):
        from tidings.spark import backtest

        start = clock.perf_counter()
        with tasks_bar("testing") as bar:
            found = backtest(
                df,
                ready,
                time=_time(on, time),
                every=step.name if not step.minutes else step.minutes,
                samples=samples,
                progress=bar,
            )
        seconds = clock.perf_counter() - start
    texts = {one.id: one.text.strip() for one in asked}
    if json:
        _emit(found, texts, seconds)
    else:
        _show(found, texts, seconds, None if all_ else NOISIEST)
    if found.time is None:
        remark("the table has no time column, so all rows are counted together; --time names one")
    if png is not None:
        of = "" if file is None else f" of {Path(file).name}"
        found.plot_png(png, f"{len(found):,} filters{of}" if len(found) > 1 else asked[0].text)
        if not json:
            show(plain_text(f"the picture is in {png}", "dim"))


def _read_filters(texts: list[str], file: str | None, given: str | None) -> list[FileSubscription]:
    if bool(texts) == (file is not None):
        raise BadInput("expected filters either as arguments or in a file with --filters")
    if file is not None:
        found = list(read_subscriptions(file, given))
        if len({type(one.id) for one in found}) > 1:
            found = [msgspec.structs.replace(one, id=str(one.id)) for one in found]
        return found
    return [
        FileSubscription(at, text, None, "", f"filter {at}" if len(texts) > 1 else "filter")
        for at, text in enumerate(texts, 1)
    ]


def _parse_filters(
    asked: list[FileSubscription], dialect: str, declared: DeclaredTypes, force: bool
) -> dict[int | str, Filter]:
    """The filters by id. A filter that can never match is refused; with `force`, a note is printed
    instead."""
    parsed = parse_all(asked, dialect, declared)
    if force:
        note_odd(parsed)
    else:
        for one, filter_ in parsed:
            refuse_never(filter_, force, one.place if len(parsed) > 1 else "")
    return {one.id: filter_ for one, filter_ in parsed}


def _time(on: str, given: str | None) -> str | None:
    is_flights = on == backtest_tables.FLIGHTS and not Path(on).exists()
    return "time_hour" if given is None and is_flights else given


def _need_matplotlib() -> None:
    """Fail early if Matplotlib is missing: counting the rows may take an hour."""
    from tidings.spark.backtests import load_matplotlib

    load_matplotlib()


# -- JSON lines --------------------------------------------------------------------------------


def _emit(found: Backtest, texts: dict[Any, str], seconds: float) -> None:
    label = found.every.label
    starts = [label(start) for start in found.stretches]
    emit(
        {
            "rows": found.rows, "untimed": found.untimed, "time": found.time,
            "every": found.every.name, "stretches": len(starts), "filters": len(found),
            "seconds": round(seconds, 3),
        }
    )  # fmt: skip
    never = set(found.never())
    for id_ in found.ids:
        about, counts = found[id_], found.counts(id_)
        at = counts.nonzero()[0].tolist()
        emit(
            {
                "id": id_, "filter": texts[id_], "total": about.total, "untimed": about.untimed,
                "share": about.share, "mean": about.mean, "most": about.most,
                "busiest": None if about.busiest is None else label(about.busiest),
                "first": _iso(about.first), "last": _iso(about.last),
                "fired": [[starts[one], int(counts[one])] for one in at],
                "samples": [one.row for one in found.samples(id_)], "never": id_ in never,
            }
        )  # fmt: skip


def _iso(time: Any) -> str | None:
    return None if time is None else f"{time.astype('datetime64[s]')}Z"


# -- tables and charts -------------------------------------------------------------------------


def _show(found: Backtest, texts: dict[Any, str], seconds: float, most: int | None) -> None:
    noisiest = found.noisiest()
    shown = noisiest[:most]
    if shown:
        show(_table(found, texts, shown), "", whole=len(texts) > 1)
        show_rest(len(noisiest) - len(shown), "more filter")
    if noisiest and len(found.stretches):
        only = found.ids[0] if len(found) == 1 else None
        title = texts[only] if only is not None else f"all {len(found):,} filters together"
        show(plain_text(f"fired per {found.every.name}: {title}", "bold"))
        show(*map(plain_text, found.plot_text(CHART, only).splitlines()), "")
    _show_samples(found, texts, shown)
    silent = found.never_fired()
    if silent:
        names = ", ".join(cut(_name(id_, texts), 60) for id_ in silent[:NOISIEST])
        more = f" and {len(silent) - NOISIEST:,} more" if len(silent) > NOISIEST else ""
        show(plain_text(f"never fired: {names}{more}"), "")
    fired = sum(found.total(id_) for id_ in noisiest)
    untimed = f", {found.untimed:,} of them without a time" if found.untimed else ""
    stretch = found.every.name
    span = count_of(len(found.stretches), stretch, f"times {stretch}" if " " in stretch else "")
    show(
        f"{count_of(len(found), 'filter')} fired {count_of(fired, 'time')} on "
        f"{count_of(found.rows, 'row')}{untimed}; {span} with rows; {seconds:.1f} s"
    )


def _name(id_: Any, texts: dict[Any, str]) -> str:
    """The id of a filter if the user gave one, else its text."""
    return texts[id_] if isinstance(id_, int) else str(id_)


def _table(found: Backtest, texts: dict[Any, str], ids: list[Any]) -> Any:
    label = found.every.label
    rows = []
    for id_ in ids:
        about = found[id_]
        rows.append(
            [
                cut(_name(id_, texts), 40), f"{about.total:,}", f"{about.mean:,.1f}",
                f"{about.most:,}", _percent(about.share),
                "" if about.first is None else label(about.first),
                "" if about.last is None else label(about.last),
                found.sparkline(id_, LINE),
            ]
        )  # fmt: skip
    per = f"per {found.every.name}#"
    return table(["filter", "fired#", per, "most#", "rows#", "first#", "last#", "over time"], rows)


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.1f} %" if percent >= 0.1 or not percent else "< 0.1 %"


def _show_samples(found: Backtest, texts: dict[Any, str], ids: list[Any]) -> None:
    few = len(ids) <= FEW
    rows = []
    for id_ in ids:
        for one in found.samples(id_) if few else found.samples(id_)[:1]:
            row = {name: value for name, value in one.row.items() if name != found.time}
            said = ", ".join(f"{name} {_value(value)}" for name, value in row.items())
            when = "" if one.time is None else one.time.astype("datetime64[m]")
            rows.append([cut(_name(id_, texts), 40), str(when).replace("T", " "), said])
    if rows:
        if len(found) == 1:
            show(table(["first rows#", "what they say"], [row[1:] for row in rows]), "")
        else:
            show(table(["filter", "first rows#", "what they say"], rows), "")


def _value(value: Any) -> str:
    return "null" if value is None else str(value)
