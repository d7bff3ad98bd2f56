"""An attack as a process.

    python -m tests.broker.hostile.attacker NAME ROOT EDGE SIDE SEED OUT

It goes on until SIGTERM, and writes what it did and how often it was refused to a file. Beside that
file it makes another one after its first stroke, because on a busy machine it takes long to start.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from pathlib import Path

from tests.broker.hostile import connecting, publishing, routing, subscribing, tagging
from tests.broker.hostile.attack import Attack, Ports
from tests.broker.hostile.raw import Over

ATTACKS: dict[str, type[Attack]] = {
    "everything": subscribing.Everything,
    "backtracking": subscribing.Backtracking,
    "cesql": subscribing.Cesql,
    "large": subscribing.Large,
    "churn": subscribing.Churn,
    "questions": subscribing.Questions,
    "sizes": publishing.Sizes,
    "others": publishing.Others,
    "fuzz": publishing.Fuzz,
    "slow": publishing.Slow,
    "tagged": tagging.Tagged,
    "places": connecting.Places,
    "half-open": connecting.HalfOpen,
    "hellos": connecting.Hellos,
    "forged": routing.Forged,
    "claims": routing.Claims,
    "liar": routing.Liar,
}


def main() -> None:
    name, root, edge, side, seed, out = sys.argv[1:]
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    begun = Path(f"{out}.begun")
    attack = ATTACKS[name](Ports(int(root), int(edge), int(side)), random.Random(int(seed)))
    while not over:
        start = time.monotonic()
        try:
            attack.strike()
            attack.counts["strokes"] += 1
        except Over:
            attack.forget_ended()
        if not begun.exists():
            begun.touch()
        attack.take(max(0.0, min(0.1, attack.pause)))
        time.sleep(max(0.02, attack.pause - (time.monotonic() - start)))
    attack.close()
    Path(out).write_text(json.dumps(attack.counts))


if __name__ == "__main__":
    main()
