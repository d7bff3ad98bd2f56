"""`tidings pipeline verify`: checks that an outbox is intact, commit by commit, file by file."""

from __future__ import annotations

from tidings.cli.common import options
from tidings.cli.common.command_errors import report
from tidings.cli.common.screen import (
    MOST_ROWS,
    count_of,
    emit,
    facts,
    plain_text,
    relative_path,
    show,
    track,
)
from tidings.cli.pipelines.pipeline_files import File, settings_of
from tidings.model import TidingsError


def verify_pipeline(file: File, every: options.All = False, json: options.Json = False) -> int:
    """Check the whole outbox of the pipeline that FILE describes; the pipeline may be running.

    Commits must have no gap up to the acknowledged end. The files that commits name must exist and
    be unchanged, byte for byte; there must be no other files. The numbers of every node must run 1,
    2, 3 and so on through all files. Nothing is changed.

    With --json, one object: outbox, batches, files, bytes, notifications, nodes, without_digest
    (files from before digests were introduced), aside (uncommitted attempts), problems
    (sentences).

    Exit code: 0 if the outbox is sound, 1 if something is wrong, 2 if there is no outbox.
    """
    settings = settings_of(file)
    from tidings.spark.outbox import Outbox, OutboxCheck

    outbox = Outbox(settings.at(settings.outbox.path))
    if not outbox.home.is_dir():
        raise TidingsError(f"outbox.path: there is no outbox in {outbox.path}")
    check = OutboxCheck(outbox)
    for _ in track(check.batches(), "checking batches", len(check)):
        pass
    found = check.found
    if json:
        emit(found)
        return 1 if found.problems else 0
    rows: list[tuple[str, object]] = [
        ("outbox", relative_path(found.outbox)),
        ("batches", f"{found.batches:,}"),
        ("files", f"{found.files:,}, {found.bytes:,} bytes"),
        ("notifications", f"{found.notifications:,} in {count_of(found.nodes, 'node')}"),
    ]
    if found.without_digest:
        rows.append(("no checksum", count_of(found.without_digest, "file")))
    wrong = found.problems
    verdict = (
        plain_text(count_of(len(wrong), "problem"), "red")
        if wrong
        else plain_text("sound", "green")
    )
    show(facts([*rows, ("verdict", verdict)]))
    for problem in wrong if every else wrong[:MOST_ROWS]:
        report(TidingsError(problem))
    if not every and len(wrong) > MOST_ROWS:
        report(TidingsError(f"and {len(wrong) - MOST_ROWS:,} more (--all shows them)"))
    return 1 if wrong else 0
