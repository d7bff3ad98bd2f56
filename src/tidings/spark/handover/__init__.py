"""Handing rows from Spark to a rendezvous point, each batch once: the sink `tidings-rendezvous`.

    task     rows ──────>             makes them durable
             <────── kept
    driver   commit ────>             makes the batch durable, delivers it
             <─ committed             or `missing`, when rows it names are not there

    rendezvous_sink.py     the sink, and the function `hand_over`
    handover.py            the protocol as a state machine, without I/O
    handover_messages.py   its messages
    handover_link.py       a connection that outlives a restart of the other side
    payloads.py            rows as bytes

The rendezvous point of `broker` does not speak this protocol yet and refuses it, which
docs/pipelines.md says to users; only tests have another side (tests/spark/standin.py). Used only
inside `spark`; users get `hand_over` and `Target` from `tidings.spark`. Start at handover.py.
"""
