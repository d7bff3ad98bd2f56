"""Many filters at once, exactly: rank space, the batch join, and the Matcher that runs on them.

    filter ──form──> boxes ─┐
                            ├─> segment: flat arrays over codes ──join──> pairs of event and filter
    event ──rank_space──> codes ─┘                              ──probe─> filters of one event

    matcher.py      the public class: parts, write_buffer.py, merges in the background
    matcher_state.py, register.py    what it holds at one moment; ids and slots
    batches.py      a batch against all parts, in pieces and threads
    rank_space/     values to small integers, one rank space for each term
    segments/       filters compiled into arrays; batches joined with them, single events looked up
    covering/       the same join on filters: which covers which, in bulk
    tallies/        from matches to tags and counts
    disk/           matchers and snapshots as folders of mapped Arrow files
    jit/            how kernels are compiled, cached and handed arrays
    array_fields.py what the arrays of a named tuple hold, said once
    oracle.py       the naive matcher, which the engine is tested against
    warming.py      kernels loaded before the first event needs them

It knows filters and events, and nothing of nodes. It alone imports Numba. Users get `Matcher` from
`tidings`; the folders' exports are for graph, snapshots, network, spark and studies. Start at
matcher.py, then segments/segment.py; docs/matching.md says how it works.
"""

from tidings.matching.matcher import Matcher
from tidings.matching.warming import load_kernels

__all__ = ["Matcher", "load_kernels"]
