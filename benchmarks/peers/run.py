"""Compare tidings with its peers on one workload.

python benchmarks/peers/run.py --workload mixed --filters 10000
python benchmarks/peers/run.py --workload equality --peers event-ruler,a-tree --json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
from rich.console import Console

from tidings.model import TidingsError
from tidings.studies import (
    RECIPES,
    PeerSettings,
    absent_lines,
    compare_peers,
    peer_table,
    read_peers,
)

WIDE = 140  # columns, when the table goes to a file
FOLDER = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None, folder: Path = FOLDER) -> int:
    options = _parser().parse_args(arguments)
    out, notes = Console(highlight=False), Console(stderr=True, highlight=False)
    if not out.is_terminal:
        out = Console(highlight=False, width=WIDE)
    settings = PeerSettings(
        rounds=options.rounds,
        warm_up=options.warm_up,
        limit=options.limit,
        patience=options.patience,
    )
    try:
        if options.list:
            for name, peer in read_peers(folder).items():
                out.print(f"{name}: {peer.about}", markup=False)
            return 0
        report = compare_peers(
            options.workload,
            options.filters,
            options.events,
            seed=options.seed,
            folder=folder,
            chosen=options.peers.split(",") if options.peers else None,
            settings=settings,
            note=lambda text: notes.print(text, style="dim", markup=False, soft_wrap=True),
        )
    except TidingsError as problem:
        notes.print(f"error: {problem}", markup=False)
        return 2
    if options.json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        out.print(
            f"{report.workload}: {report.filters:,} filters, {report.events:,} events, one thread, "
            f"rounds: {report.rounds}",
            style="bold",
        )
        out.print(peer_table(report))
        for line in absent_lines(report):
            out.print(line, markup=False, soft_wrap=True)
    return 1 if any(one.status in {"wrong", "failed"} for one in report.outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=sorted(RECIPES), default="mixed")
    parser.add_argument("--filters", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=65_536)
    parser.add_argument("--peers", help="of peers or systems, with commas between; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="passes of each system, in turn")
    parser.add_argument("--warm-up", type=float, default=5, help="seconds before each pass")
    parser.add_argument("--limit", type=float, default=20, help="seconds of a pass")
    parser.add_argument("--patience", type=float, default=900, help="seconds to load the filters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--list", action="store_true", help="print the peers and leave")
    return parser


if __name__ == "__main__":
    sys.exit(main())
