"""Count the matches of each filter over time, in one pass over all matches.

Shapes, for n events, m matches, N filters, B time buckets and k samples:

    starts int64 [n + 1], places int64 [m]    the matches, event by event
    slots int64 [n]                           the time bucket of each event, < 0 if unknown
    times, orders int64 [n]
"""

from __future__ import annotations

from tidings.matching.jit.kernel_compiler import kernel


@kernel
def count_fires(starts, places, slots, times, counts, untimed, first, last):  # type: ignore[no-untyped-def]
    """Add the matches to `counts` (uint32 [B, N]), `untimed`, `first` and `last` (int64 [N])."""
    for event in range(starts.shape[0] - 1):
        slot, time = slots[event], times[event]
        for at in range(starts[event], starts[event + 1]):
            place = places[at]
            if slot < 0:
                untimed[place] += 1
                continue
            counts[slot, place] += 1
            first[place] = min(first[place], time)
            last[place] = max(last[place], time)


@kernel
def keep_earliest(starts, places, times, orders, base, best_times, best_orders, best_rows):  # type: ignore[no-untyped-def]
    """Keep the k earliest matches of each filter, sorted by (time, order).

    best_times, best_orders, best_rows int64 [N, k]; the row of event e becomes base + e.
    """
    last = best_times.shape[1] - 1
    for event in range(starts.shape[0] - 1):
        time, order = times[event], orders[event]
        for at in range(starts[event], starts[event + 1]):
            place = places[at]
            worst = best_times[place, last]
            if time > worst or (time == worst and order >= best_orders[place, last]):
                continue
            to = last
            while to > 0 and (
                time < best_times[place, to - 1]
                or (time == best_times[place, to - 1] and order < best_orders[place, to - 1])
            ):
                best_times[place, to] = best_times[place, to - 1]
                best_orders[place, to] = best_orders[place, to - 1]
                best_rows[place, to] = best_rows[place, to - 1]
                to -= 1
            best_times[place, to] = time
            best_orders[place, to] = order
            best_rows[place, to] = base + event
