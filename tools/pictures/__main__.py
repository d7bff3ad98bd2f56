"""Write all pictures to docs/pictures. `make pictures` runs this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.pictures.hops import hops
from tools.pictures.lanes import network_lane, pipeline_lane, two_lanes
from tools.pictures.micro_batch import micro_batch
from tools.pictures.rank_space import rank_space
from tools.pictures.shapes import PALETTES, Drawing
from tools.pictures.subscription import subscription

HOME = Path(__file__).resolve().parents[2] / "docs" / "pictures"
PICTURES: dict[str, Callable[[], Drawing]] = {
    "two-lanes": two_lanes,
    "pipeline-lane": pipeline_lane,
    "network-lane": network_lane,
    "hops": hops,
    "rank-space": rank_space,
    "micro-batch": micro_batch,
    "subscription": subscription,
}


def draw_all() -> dict[str, str]:
    """The text of every SVG file, by file name."""
    return {
        f"{name}-{palette}.svg": draw().svg(colours)
        for name, draw in PICTURES.items()
        for palette, colours in PALETTES.items()
    }


def main() -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    written = draw_all()
    for name, text in written.items():
        (HOME / name).write_text(text)
    print(f"{len(written)} files written to {HOME}")


if __name__ == "__main__":
    main()
