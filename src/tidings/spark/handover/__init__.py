"""Hands rows from Spark to a rendezvous point, each batch exactly once: the sink
`tidings-rendezvous`.

    task     rows ──────>             makes them durable
             <────── kept
    driver   commit ────>             makes the batch durable, delivers it
             <─ committed             or `missing`, if the point lacks rows of the batch

    rendezvous_sink.py     the sink, and the function `hand_over`
    handover.py            the protocol as a state machine, without I/O
    handover_messages.py   its messages
    handover_link.py       a connection that survives a restart of the point
    payloads.py            encodes rows as bytes

The rendezvous point in `broker` does not speak this protocol yet and refuses it, as
docs/pipelines.md says; only the tests have a receiver (tests/spark/standin.py). This folder is used
only inside `spark`; users get `hand_over` and `Target` from `tidings.spark`. Start at handover.py.
"""
