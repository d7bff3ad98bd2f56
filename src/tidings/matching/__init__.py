"""Match events exactly against many filters at once: rank space, the batch join, the Matcher.

    filter ──form──> boxes ─┐
                            ├─> segment: flat arrays over codes ──join──> pairs of event and filter
    event ──rank_space──> codes ─┘                              ──probe─> filters of one event

    matcher.py      the public class: matches, explains, saves and opens
    held_filters.py the filters of a matcher: parts, write_buffer.py, merges in the background
    buffer_rows.py, buffer_row_kernels.py    rows of a batch that the write buffer may match
    matcher_state.py, register.py    the state of a matcher; ids and slots of its filters
    batch_pieces.py matches a batch against all parts, in pieces and threads
    match_results.py   the matches of a request by event and by filter; named parts that matched
    rank_space/     values to small integers, one rank space for each term
    diagrams/       filters with too many boxes, evaluated together as decision diagrams
    segments/       filters compiled into arrays; batches joined with them, single events looked up
    covering/       the same join on filters: which filters cover which, in bulk
    placing/        indexes that find which filters cover a new one, and which it covers
    tallies/        turns matches into tags and counts
    json_columns/   many flat JSON objects as a record batch, by kernels
    disk/           matchers and snapshots as folders of mapped Arrow files
    jit/            compiles and caches kernels, and passes arrays to them
    array_fields.py declares the arrays of a named tuple in one place
    oracle.py       the naive matcher against which the engine is tested
    effort.py       counts the tests that the engine evaluates for an event
    warming.py      loads kernels before the first event needs them

This room deals with filters and events, not with nodes. No other room imports Numba; the kernels of
other rooms use the decorators of jit/. Users import `Matcher` from `tidings`; the exports of the
folders are for other rooms. Start at matcher.py, then segments/segment.py; docs/matching.md
explains how matching works.
"""

from tidings.matching.match_results import Matches
from tidings.matching.matcher import Matcher
from tidings.matching.rank_space.columns import rows as events_of
from tidings.matching.rank_space.event_lists import batch_of
from tidings.matching.warming import load_kernels

__all__ = ["Matcher", "Matches", "batch_of", "events_of", "load_kernels"]
