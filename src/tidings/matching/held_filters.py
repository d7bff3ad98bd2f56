"""The filters of a matcher, while they are added, removed and merged.

Filters are stored in *parts*, which are large immutable segments. A *write buffer* takes newly
added filters; removed filters are marked dead until a merge drops them.

    add ----> write buffer (a dict index, searched immediately)
                |  sealed into a part when a batch arrives, or when it is full
                v
    parts:  [ large ] [ small ] [ small ]   --merge, in the background-->   [ large ]
              every part has its own rank space; a match searches all of them

Readers use the current state and never wait for a merge; a merge builds a new state and then swaps
it in. Sealing also builds a new state; a batch waits for this state, because the batch must be
matched against all filters. Three locks are always taken in this order: _merging (for one merge at
a time), _sealing (for one new part at a time; while it is held, slots keep their numbers), _lock
(for the state; held only briefly).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from tidings.filters import Attributes, Filter, parse
from tidings.filters.canonical import Form
from tidings.matching.diagrams.segment_trees import AUTO, ENGINES
from tidings.matching.jit.gil import shorten_turns
from tidings.matching.matcher_state import MatcherState, SealedPart, seal_tests
from tidings.matching.register import Register
from tidings.matching.segments.assembly import merge_segments
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import build_segment, gather_boxes, segment_of
from tidings.matching.write_buffer import WriteBuffer
from tidings.model import FilterError, RefusedFilters, TidingsError, id_pairs

Array = npt.NDArray[Any]
Functions = Mapping[str, Callable[..., Any]]
# once there are this many fresh filters, they are sealed into a part in the background
SEAL_AT = 1024
MOST_PARTS = 4
PRUNE = 16  # diagrams are pruned when one in this many filters has been removed


class HeldFilters:
    """Filters with their ids, in parts that can be matched. `Matcher` matches events against
    them."""

    def __init__(
        self,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
        engine: str = AUTO,
    ) -> None:
        if engine not in ENGINES:
            names = ", ".join(map(repr, ENGINES))
            raise TidingsError(f"found engine={engine!r}, expected one of {names}")
        self.attributes = attributes
        self.engine = engine
        self.functions = functions
        self._background = background
        self._merging = threading.Lock()
        self._sealing = threading.Lock()
        self._lock = threading.RLock()
        self._state = MatcherState((), (WriteBuffer(),), Register())
        self._dead_count = 0
        self._unpruned = 0  # how many filters were removed since diagrams were pruned
        self._changes = 0  # counts the starts and the ends of changes, so it is odd during a change
        # whether an event matched many fresh filters, which are slow to match
        self._crowded = False
        self._worker: threading.Thread | None = None
        self.refused: dict[Hashable, FilterError] = {}
        """Filters that `add_many` left out with `errors="collect"`, by id."""
        self.set_aside: dict[str, str] = {}
        """Filters of the snapshot that are now refused, with the reason. They match nothing."""

    # -- add, remove, replace ------------------------------------------------------------------

    def add(self, id: Hashable, filter: Filter | str) -> None:
        """Add a filter under an id; the next match includes it."""
        form = self._parse(filter).form
        with self._changing():
            self._refuse_known([id])
            self._put(id, filter, form)
        self._tidy()

    def add_many(
        self,
        pairs: Iterable[tuple[Hashable, Filter | str]] | Mapping[Any, Filter | str],
        *,
        errors: str = "raise",
    ) -> int:
        """Add (id, filter) pairs, or a mapping, in bulk, and return how many were added.

        If some filters are refused, no filter is added, and RefusedFilters lists the refused ones.
        With `errors="collect"` the other filters are added, and `refused` has the reason for each
        id that was left out.
        """
        if errors not in ("raise", "collect"):
            raise TidingsError(f"found errors={errors!r}, expected 'raise' or 'collect'")
        taken: dict[Hashable, Filter | str] = {}
        refused: dict[Hashable, FilterError] = {}
        given = pairs.items() if isinstance(pairs, Mapping) else pairs
        forms = self._forms(given, taken, refused, errors)
        few = list(itertools.islice(forms, SEAL_AT))
        if len(few) < SEAL_AT:
            with self._changing():
                self._refuse_known(taken)
                for (id_, filter_), form in zip(taken.items(), few, strict=True):
                    self._put(id_, filter_, form)
        else:
            many = gather_boxes(enumerate(itertools.chain(few, forms)))
            with self._sealing:
                with self._lock:
                    self._refuse_known(taken)
                    start = self._state.register.size
                    for id_, filter_ in taken.items():
                        self._state.register.give(id_, filter_)
                try:
                    sealed = self._seal_segment(segment_of(many, start=start))
                except BaseException:
                    with self._changing():
                        self._forget(taken, start)
                    raise
                with self._changing():
                    state = self._state
                    self._state = replace(state, parts=(*state.parts, sealed))
        self.refused |= refused
        self._tidy()
        return len(taken)

    def _forms(
        self,
        pairs: Iterable[tuple[Hashable, Filter | str]],
        taken: dict[Hashable, Filter | str],
        refused: dict[Hashable, FilterError],
        errors: str,
    ) -> Iterator[Form]:
        """Yield the form of each filter one by one, so that not all of them are in memory at once.
        The pairs read so far are put into `taken`, or into `refused`."""
        for id_, filter_ in id_pairs(pairs):
            if id_ in taken or id_ in refused:
                raise TidingsError(f"the id {id_!r} occurs twice, expected once")
            try:
                form = self._parse(filter_).form
            except FilterError as problem:
                refused[id_] = problem
                continue
            taken[id_] = filter_
            yield form
        if refused and errors == "raise":
            raise RefusedFilters(refused, len(taken) + len(refused))

    def remove(self, id: Hashable) -> None:
        """Remove the filter of an id; the next match does not include it."""
        with self._changing():
            register = self._state.register
            self._kill(register.slot(id))
            del register.slots[id]
        self._tidy()

    def replace(self, id: Hashable, filter: Filter | str) -> None:
        """Replace the filter of an id, atomically."""
        form = self._parse(filter).form
        with self._changing():
            old = self._state.register.slot(id)
            self._put(id, filter, form)
            self._kill(old)
        self._tidy()

    def __len__(self) -> int:
        return len(self._state.register)

    def __repr__(self) -> str:
        count = len(self)
        return f"<Matcher of {count:,} filter{'' if count == 1 else 's'}>"

    def __contains__(self, id: object) -> bool:
        return id in self._state.register.slots

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Make the changes in the block atomic: a reader that is active at the same time starts
        again."""
        with self._lock:
            self._changes += 1
            try:
                yield
            finally:
                self._changes += 1

    def _parse(self, filter_: Filter | str) -> Filter:
        if isinstance(filter_, Filter):
            return filter_
        return parse(filter_, attributes=self.attributes, functions=self.functions)

    def _refuse_known(self, ids: Iterable[Hashable]) -> None:
        slots = self._state.register.slots
        for id_ in ids:
            if id_ in slots:
                raise TidingsError(f"the id {id_!r} already has a filter; use replace() instead")

    def _forget(self, ids: Iterable[Hashable], start: int) -> None:
        """Release assigned slots that are not in any part yet."""
        register = self._state.register
        for slot, id_ in enumerate(ids, start):
            if register.slots.get(id_) == slot:
                register.kill(slot)
                del register.slots[id_]

    def _put(self, id_: Hashable, filter_: Filter | str, form: Form) -> None:
        slot = self._state.register.give(id_, filter_)
        self._state.fresh[-1].add(slot, form)

    def _kill(self, slot: int) -> None:
        self._state.register.kill(slot)
        self._dead_count += 1
        self._unpruned += 1
        for fresh in self._state.fresh:
            fresh.discard(slot)

    # -- seal and merge ------------------------------------------------------------------------

    def _seal_segment(self, segment: Segment) -> SealedPart:
        found = SealedPart.of(segment, self.engine)
        if any(sealed.part.is_probed for sealed in self._state.parts):
            found.part.prepare()
        return found

    def _seal(self) -> tuple[MatcherState, Array]:
        """Seal the fresh filters into a part, so that batches can be joined with them.

        Returns the state from the start of this call plus the new part, and the slots that were
        dead at the start. So a batch is matched against every filter exactly once, even if a filter
        is being replaced.
        """
        with self._lock:  # usually there is nothing to seal, so no need to wait for `_sealing`
            state = self._state
            if len(state.fresh) == 1 and not state.fresh[0]:
                return state, state.register.dead.copy()
        with self._sealing:
            with self._lock:
                state = self._state
                dead = state.register.dead.copy()
                items = [item for fresh in state.fresh for item in fresh.items()]
                if not items:
                    return state, dead
                self._state = replace(state, fresh=(*state.fresh, WriteBuffer()))
            sealed = self._seal_segment(build_segment(items))
            with self._lock:
                now = self._state
                self._state = MatcherState((*now.parts, sealed), now.fresh[-1:], now.register)
        if not self._background:
            self._join_small()
        return replace(state, parts=(*state.parts, sealed)), dead

    def _join_small(self) -> None:
        """Keep the number of parts low without merging all of them each time: as long as the last
        two parts are of similar size, they are merged, like carries in a binary counter."""
        if not self._merging.acquire(blocking=False):
            return  # a full merge is already running
        try:
            while True:
                with self._lock:
                    parts = self._state.parts
                    dead = self._state.register.dead[: self._state.register.size].copy()
                sizes = [len(sealed.part.segment.arrays.box_slot) for sealed in parts[-2:]]
                if len(sizes) < 2 or sizes[0] > 2 * sizes[1]:
                    return
                merged = merge_segments([sealed.part.segment for sealed in parts[-2:]], dead)
                joined = seal_tests(merged, parts[-2:], self.engine)
                with self._lock:
                    newer = self._state.parts[len(parts) :]
                    self._state = replace(self._state, parts=(*parts[:-2], joined, *newer))
        finally:
            self._merging.release()

    def _tidy(self) -> None:
        """Start the background thread if there is enough to seal or merge."""
        if not self._background:
            return
        state = self._state
        due = sum(sealed.statistics.due() for sealed in state.parts) > 0
        fresh = state.fresh_count >= SEAL_AT or (self._crowded and state.fresh_count > 0)
        unlinked = not all(sealed.is_linked for sealed in state.parts)
        if due or fresh or unlinked or self._is_pruning_due(state) or self._are_many(state):
            with self._lock:
                if self._worker is None or not self._worker.is_alive():
                    self._worker = threading.Thread(target=self._tend, args=(due,), daemon=True)
                    self._worker.start()

    def _tend(self, due: bool) -> None:
        """Seal the fresh filters and merge parts of similar size. Merge all parts if there are many
        of them, if many filters are dead, or if a merge is `due` (because the access tests may no
        longer suit the events)."""
        with shorten_turns():
            self._crowded = False
            self._seal()
            self._join_small()
            with self._lock:
                self._state.register.id_array()  # used to look up the ids of matches in parts
            self._link()
            if self._is_pruning_due(self._state):
                self._prune()
        if due or self._are_many(self._state):
            self.merge()

    def _link(self) -> None:
        """Find the implications of new diagrams. Until these are found, events are matched with
        arrays that have no edges."""
        for sealed in self._state.parts:
            if sealed.diagrams is not None:
                sealed.diagrams.link()

    def _is_pruning_due(self, state: MatcherState) -> bool:
        count = sum(sealed.diagram_count for sealed in state.parts)
        return count > 0 and self._unpruned > max(PRUNE, len(state.register) // PRUNE)

    def _prune(self) -> None:
        """Take removed filters out of diagrams. The implications between all other filters are
        kept.

        A batch that began before a filter was removed still finds the filter, because the state of
        the batch keeps the old diagrams. A part that was merged in the meantime contains no removed
        filters.
        """
        with self._lock:
            state, self._unpruned = self._state, 0
            dead = state.register.dead.copy()
        pruned = {id(sealed): _prune_part(sealed, dead) for sealed in state.parts}
        with self._lock:
            now = self._state
            parts = tuple(pruned.get(id(sealed), sealed) for sealed in now.parts)
            self._state = replace(now, parts=parts)

    def _are_many(self, state: MatcherState) -> bool:
        return len(state.parts) > MOST_PARTS or self._is_wasteful(state.register)

    @staticmethod
    def _is_wasteful(register: Register) -> bool:
        """Whether more than a quarter of the slots belong to removed filters."""
        return register.gone > max(SEAL_AT, register.size // 4)

    def merge(self) -> None:
        """Merge all parts into one, without removed filters. Matching continues meanwhile."""
        with self._merging, shorten_turns():
            self._crowded = False
            self._seal()
            with self._sealing, self._lock:  # no part is being built with these slots
                before = self._state
                dead = before.register.dead[: before.register.size].copy()
                count = self._dead_count
            parts = before.parts
            wasteful = self._is_wasteful(before.register)
            settled = not parts or (len(parts) == 1 and not count and not parts[0].has_drifted)
            if settled and not wasteful:
                self._link()
                return
            new: tuple[SealedPart, ...] = ()
            if parts:
                merged = merge_segments([sealed.part.segment for sealed in parts], dead)
                if wasteful:
                    merged.slots = (np.cumsum(dead == 0) - 1).astype(np.uint32)[merged.slots]
                new = (seal_tests(merged, parts, self.engine),)
            if wasteful:
                register = before.register.compact(dead)
                with self._sealing, self._lock:
                    self._renumber(len(parts), new, register, dead)
                    self._dead_count -= count
            else:
                with self._lock:
                    newer = self._state.parts[len(parts) :]
                    self._state = replace(self._state, parts=(*new, *newer))
                    self._dead_count -= count
            self._link()

    def _renumber(
        self, merged_parts: int, new: tuple[SealedPart, ...], register: Register, dead: Array
    ) -> None:
        """Swap in new parts, and a register with new slot numbers."""
        state = self._state
        number = register.catch_up(state.register, dead)
        for fresh in state.fresh:
            fresh.renumber(number)
        newer = (sealed.renumber(number) for sealed in state.parts[merged_parts:])
        self._state = MatcherState((*new, *newer), state.fresh, register)


def _prune_part(sealed: SealedPart, dead: Array) -> SealedPart:
    """The same part, with diagrams that no longer contain dead filters."""
    if sealed.diagrams is None:
        return sealed
    slots = sealed.diagrams.slots
    gone = slots[dead[slots] != 0]
    return replace(sealed, diagrams=sealed.diagrams.remove(gone)) if gone.size else sealed
