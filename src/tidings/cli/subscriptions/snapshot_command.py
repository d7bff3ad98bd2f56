"""`tidings snapshot`: compiles subscriptions into a folder, and inspects such folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli.common import options
from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput, report, report_errors
from tidings.cli.common.declared_types import read_types
from tidings.cli.common.screen import (
    count_of,
    cut,
    emit,
    facts,
    report_steps,
    say,
    show,
    show_rest,
    table,
    track,
)
from tidings.cli.common.subscription_files import note_odd, parse_all, read_subscriptions
from tidings.cli.subscriptions.snapshot_tree import show_tree
from tidings.files import local_path, scheme_of

if TYPE_CHECKING:
    from tidings.snapshots import Snapshot

LARGEST, FILES = 10, 6  # rows that tables show without --all

snapshot = typer.Typer(rich_markup_mode=None)

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The snapshot.", hidden=True)]


@snapshot.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Compile subscriptions into a folder that is mapped into memory; inspect such a folder."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def build_snapshot(
    file: Annotated[
        str,
        typer.Argument(metavar="SUBSCRIPTIONS", help="The filters (- is stdin).", hidden=True),
    ],
    folder: Folder,
    number: Annotated[
        int, typer.Option("--number", metavar="N", min=0, help="The version of the snapshot.")
    ] = 1,
    types: options.Types = None,
    others: options.Others = False,
    dialect: options.Dialect = options.DEFAULT_DIALECT,
    filters_format: options.FiltersFormat = None,
    json: options.Json = False,
) -> None:
    """Compile the subscriptions of a file into the folder DIR.

    SUBSCRIPTIONS has the same format as for `tidings match --filters`. DIR is created, or replaced
    if it is a snapshot. Equal filters become one node of a content graph.
    Notes on stderr name filters that can never match or always match.

    With --json, one object: version, subscriptions, never (how many of them can never match),
    nodes, edges, roots, index_bytes.
    """
    declared = read_types(types, others)
    load_pyarrow()
    from tidings.snapshots import Snapshot

    listed = track(read_subscriptions(file, filters_format), "reading filters")
    parsed = parse_all(listed, dialect, declared)
    note_odd(parsed)
    pairs = [(one.id, filter_) for one, filter_ in parsed]
    done = 0
    with report_steps() as note:

        def count_placed(more: int) -> None:
            nonlocal done
            done += more
            note(f"ordering by covering: {done:,} of {count_of(len(pairs), 'filter')}")

        count_placed(0)
        made = Snapshot.build(pairs, declared.attributes, number=number, progress=count_placed)
        note("writing")
        made.save(folder)
    stats = made.stats()
    if json:
        emit(stats)
    else:
        say(
            f"{folder}: {count_of(stats['subscriptions'], 'subscription')}, "
            f"{count_of(stats['nodes'], 'node')}, {count_of(stats['edges'], 'edge')}"
        )


def show_snapshot(
    folder: Folder,
    tree: Annotated[
        bool, typer.Option("--tree", help="Draw the top of the content graph.")
    ] = False,
    every: options.All = False,
    json: options.Json = False,
) -> None:
    """Show the contents of a snapshot.

    The largest nodes are those with the most subscriptions. The columns are those that filters
    test; the type of a column is that of the values that it is compared with.

    With --tree, a node that several nodes cover is drawn below each of these nodes, but what lies
    below it is drawn only once. Deep graphs are drawn as several trees.

    With --json, one object: version, subscriptions, never, nodes, edges, roots, depth, index_bytes,
    deepest (numbers of nodes), largest (node, subscriptions, filter), columns (names with
    families), files (names with bytes).
    """
    opened = _open_snapshot(folder)
    from tidings.snapshots import Shape

    shape = Shape(opened)
    if tree and not json:
        show_tree(opened, shape, every)
        return
    stats: dict[str, Any] = {**opened.stats(), "depth": int(shape.depths.max(initial=0))}
    largest = [
        (int(shape.numbers[place]), int(shape.members[place]), opened.matcher.filter(place).sql())
        for place in shape.largest(len(shape.numbers) if every else LARGEST)
    ]
    tested = {
        ".".join(path): sorted(families)
        for path, families in sorted(opened.matcher.list_tested().items())
    }
    here = opened.path or Path(folder)
    sizes = {
        str(path.relative_to(here)): path.stat().st_size
        for path in sorted(here.rglob("*"))
        if path.is_file()
    }
    heavy = sorted(sizes.items(), key=lambda item: -item[1])[: None if every else FILES]
    if json:
        named = [
            dict(zip(("node", "subscriptions", "filter"), row, strict=True)) for row in largest
        ]
        emit({**stats, "deepest": shape.deepest(), "largest": named, "columns": tested,
              "files": sizes})  # fmt: skip
        return
    path = " > ".join(map(str, shape.deepest()))
    show(
        facts(
            [
                ("version", stats["version"]),
                ("subscriptions", f"{stats['subscriptions']:,}{_never(stats['never'])}"),
                ("nodes", f"{stats['nodes']:,}; no other node covers {stats['roots']:,} of them"),
                ("edges", f"{stats['edges']:,}"),
                ("deepest path", f"{count_of(stats['depth'], 'node')}: {cut(path, 60)}"),
                ("bytes", f"{sum(sizes.values()):,} in {count_of(len(sizes), 'file')}"),
            ]
        ),
        "",
        table(
            ["largest node#", "subscriptions#", "filter"],
            [(node, f"{count:,}", cut(text, 200)) for node, count, text in largest],
        ),
        "",
    )
    show_rest(len(shape.numbers) - len(largest), "more node")
    show(
        table(
            ["column", "compared with"],
            [
                (name, ", ".join(families) or "(used in expressions)")
                for name, families in tested.items()
            ],
        ),
        "",
        table(["largest file", "bytes#"], [(name, f"{size:,}") for name, size in heavy]),
    )


def _never(count: int) -> str:
    return f"; {count:,} of them can never match" if count else ""


def verify_snapshot(
    folder: Folder,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=1, help="Nodes to check.")
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the sample.")
    ] = 1,
    json: options.Json = False,
) -> int:
    """Check that a snapshot is intact, and that its edges are right.

    Compares all bytes with their checksums, and computes the coverings of some nodes again.

    With --json, one object: nodes, edges, pairs (how many of each were checked), problems.

    Exit code: 0 if the snapshot is sound, 1 if it is damaged or wrong, 2 if there is no snapshot.
    """
    if not scheme_of(folder) and not (local_path(folder, "a snapshot") / "manifest.json").exists():
        raise BadInput(f"'{folder}' is not a snapshot: it has no manifest.json")
    load_pyarrow()
    from tidings.matching.disk import SnapshotError
    from tidings.snapshots import Snapshot, Verification, verify_nodes

    try:
        with report_steps() as note:
            note("comparing checksums")
            opened = Snapshot.open(folder)
            note("computing coverings")
            found = verify_nodes(opened, sample, seed)
    except SnapshotError as problem:
        found = Verification(0, 0, 0, [str(problem)])
    if json:
        emit(found)
    elif not found.problems:
        say(
            f"sound: all checksums match; {count_of(found.nodes, 'node')}, "
            f"{count_of(found.edges, 'edge')} and {count_of(found.pairs, 'other pair')} agree with "
            "their filters"
        )
    if found.problems and not json:
        more = len(found.problems) - 1
        rest = f", and {count_of(more, 'more problem')} (--json lists them)" if more else ""
        report(SnapshotError(found.problems[0] + rest))
    return 1 if found.problems else 0


def _open_snapshot(folder: str) -> Snapshot:
    load_pyarrow()
    from tidings.snapshots import Snapshot

    return Snapshot.open(folder)


snapshot.command("build")(report_errors(build_snapshot))
snapshot.command("show")(report_errors(show_snapshot))
snapshot.command("verify")(report_errors(verify_snapshot))
