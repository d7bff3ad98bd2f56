"""tidings itself: one event at a time from JSON text, or in batches."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from passes import Task, lines_of, serve, serve_batches

import tidings
from tidings.studies import (
    StructuredFilter,
    new_matcher,
    parse_lines,
    schema_of_lines,
    settle,
    sql_of_tests,
)

BATCH = 65_536


def main() -> None:
    way, *arguments = sys.argv[1:]
    task = Task(arguments)
    decoder = msgspec.json.Decoder(StructuredFilter)
    filters = [decoder.decode(line) for line in Path(arguments[0]).read_bytes().splitlines()]
    start = time.perf_counter()
    matcher = new_matcher()
    matcher.add_many([(one.id, sql_of_tests(one.tests)) for one in filters])
    build_seconds = time.perf_counter() - start

    texts = [(size, b"\n".join(batch)) for size, batch in lines_of(task.events, BATCH)]
    schema = schema_of_lines(b"\n".join(task.events))
    batches = [(size, parse_lines(text, schema)) for size, text in texts]
    matcher.match_pairs(batches[0][1])  # so that the index knows what events are like
    settle(matcher)

    def from_json(text: bytes) -> int:
        return from_arrow(parse_lines(text, schema))

    def from_arrow(batch: Any) -> int:
        return len(matcher.match_pairs(batch)[0])

    version = tidings.__version__
    if way == "one":
        serve("tidings", version, task, build_seconds, lambda event: len(matcher.match(event)))
    elif way == "json":
        serve_batches("tidings json batch", version, task, build_seconds, texts, from_json)
    else:
        serve_batches("tidings batch", version, task, build_seconds, batches, from_arrow)


if __name__ == "__main__":
    main()
