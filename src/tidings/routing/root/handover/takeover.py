"""Accepts parts of batches that were tagged elsewhere; each notification is numbered once.

    piece ──> its turn? ──> current nodes ──> number ──> journal ──(on the disk)──> Taken
                │
                └─ taken before: acknowledge again; not its turn, another life, too old: refuse

Each piece is one write to the journal: its notifications, and the progress of its source. After a
crash, the source sends the part again, and only the notifications that are not stored yet are
accepted. A part is acknowledged when its last piece is on the disk.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model import TidingsError
from tidings.routing.forwarding.neighbours import Context, Name
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.bodies import content_of
from tidings.routing.root.counts import Counts
from tidings.routing.root.handover.part_columns import Columns, Piece
from tidings.routing.root.handover.resolving import Resolving
from tidings.routing.root.handover.row_pieces import number_pieces
from tidings.routing.root.handover.source_progress import Sources
from tidings.routing.root.node_history import History
from tidings.routing.root.nodes import TypeNodes
from tidings.routing.root.problems import Problems
from tidings.routing.root.publishing import Outdated, Tagger
from tidings.routing.root.records import Block, PayloadColumns, Progress
from tidings.routing.root.relating import enclose
from tidings.routing.root.write_queue import WriteQueue


class TakeOver:
    """Accepts the parts of a channel."""

    def __init__(
        self,
        context: Context,
        history: History,
        sources: Sources,
        resolving: Resolving,
        counts: Counts,
        queue: WriteQueue,
        problems: Problems,
        tagger: Tagger,
        type_nodes: TypeNodes,
    ) -> None:
        self._context = context
        self._history = history
        self._sources = sources
        self._resolving = resolving
        self._counts = counts
        self._queue = queue
        self._problems = problems
        self._tagger = tagger
        self._type_nodes = type_nodes

    def split(self, message: m.HandOver) -> Sequence[Piece | m.HandOver]:
        """Split a part into pieces, which are accepted one after another. An invalid part is
        returned as it is; `take` then refuses it."""
        try:
            return Columns(message, self._context.limits.part_bytes).pieces()
        except TidingsError:
            return (message,)

    def take(self, sender: Name, message: m.HandOver) -> None:
        """Accept a whole part at once."""
        try:
            pieces = Columns(message, self._context.limits.part_bytes).pieces()
        except TidingsError as problem:
            self._answer(sender, message, str(problem))
            return
        for piece in pieces:
            self.take_piece(sender, piece)

    def take_piece(self, sender: Name, piece: Piece) -> None:
        """Accept the next piece of a part. The part is acknowledged when its last piece is on the
        disk. If a piece is refused, the other pieces of its part are ignored."""
        message = piece.message
        if piece.of.refused:
            return
        try:
            if self._queue.failed:
                self._refuse(sender, piece, self._queue.failed, later=True)
                return
            progress = self._sources.find_progress(message.source, message.batch, message.part)
            if progress is not None:
                self._need_known(message)
                self._take_rest(sender, piece, progress)
        except Outdated as problem:
            self._refuse(sender, piece, str(problem), version=problem.version)
        except TidingsError as problem:
            self._refuse(sender, piece, str(problem))
        except Exception:
            self._refuse(sender, piece, self._problems.report("take a part"), later=True)
        else:
            if piece.is_last:
                self._queue.hold((sender, self._make_taken(message)))

    def _need_known(self, message: m.HandOver) -> None:
        """Raise TidingsError if a part is not from this lineage, or if the history no longer has
        its version."""
        history = self._history
        if message.life != history.life:
            raise TidingsError(
                f"found a part that was tagged in life {message.life} of the channel, "
                f"expected life {history.life}: the rendezvous point has lost data and started a "
                "new life"
            )
        if not history.knows(message.version):
            raise Outdated(
                f"found a part that was tagged at version {message.version}, which is unknown or "
                f"too old; tag it again at version {history.version}",
                history.version,
            )

    def _take_rest(self, sender: Name, piece: Piece, before: Progress) -> None:
        """Accept the notifications of a piece that are not stored yet."""
        if piece.first > before.done:
            raise TidingsError(
                f"found notification {piece.first:,} of a part, expected notification "
                f"{before.done:,}"
            )
        if before.done > len(piece.of):
            raise TidingsError(
                f"found a part of {len(piece.of):,} notifications, expected at least "
                f"{before.done:,}, because that many are already stored"
            )
        rest = msgspec.structs.replace(piece, first=min(max(piece.first, before.done), piece.end))
        if not len(rest) and not piece.is_last:
            return
        message = piece.message
        progress = Progress(
            message.batch, message.part, max(before.done, piece.end), piece.is_last,
            piece.is_last and message.last, before.stamp + len(rest),
        )  # fmt: skip
        block = self._number(rest, progress)
        self._queue.append_block(block)
        self._counts.give_block(block)
        self._sources.advance(message.source, progress)
        self._sources.note(message.source, str(sender), self._context.now, len(rest))
        # last, because the block is in the journal already: nothing that follows may be left out
        self._type_nodes.add(map(content_of, _payloads(rest).each()))

    def _number(self, piece: Piece, progress: Progress) -> Block:
        """Resolve the nodes of notifications, and number the notifications. The numbers are not
        used up yet."""
        columns, message = piece.of, piece.message
        starts = columns.node_starts[piece.first : piece.end + 1]
        nodes = columns.nodes[starts[0] : starts[-1]]
        payloads = _payloads(piece)
        contents: list[bytes] = []
        if self._tagger.relating is not None:
            contents = [*map(content_of, payloads.each())]
        tags = self._resolving.renew(starts - starts[0], nodes, message.version, contents)
        marks = self._resolving.table.number(
            tags.starts, tags.nodes, tags.codes, self._counts.given_counts
        )
        first = progress.stamp - len(piece) + 1
        payloads = enclose(tags.fronts, number_pieces(payloads, first))
        serial = self._counts.given + 1
        return Block(message.source, progress, serial, marks, tags.matched, payloads)

    # -- answers -------------------------------------------------------------------------------

    def _refuse(
        self, sender: Name, piece: Piece, why: str, *, later: bool = False, version: int = 0
    ) -> None:
        piece.of.refused = True
        self._answer(sender, piece.message, why, later=later, version=version)

    def _answer(
        self, sender: Name, message: m.HandOver, why: str, *, later: bool = False, version: int = 0
    ) -> None:
        self._context.beyond["parts"] += 1
        taken = self._make_taken(message)
        answer = msgspec.structs.replace(taken, refusal=why, later=later, version=version)
        self._context.send(sender, answer)

    def _make_taken(self, message: m.HandOver) -> m.Taken:
        return m.Taken(self._context.epoch, message.source, message.batch, message.part)


def _payloads(piece: Piece) -> PayloadColumns:
    starts = piece.of.payload_starts[piece.first : piece.end + 1]
    return PayloadColumns(starts, piece.of.payloads)
