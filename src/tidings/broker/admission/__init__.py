"""Who may connect to a node, under which name and with which permissions, and how many may.

    connect ──> stranger ──Hello──> permissions: token, name ──> places: a free one ──> neighbour
                   `── too late, too much, no token ──> refused, counted, told why

    listen.py              where a node listens, and what it asks of those who connect
    permissions.py         tokens and certificates to names and rights; who may send which message
    connection_limits.py   bounds on strangers and on what they send
    places.py              which places guests, named agents and routers may take

Used only inside `broker`; docs/security.md says what is promised. Start at permissions.py.
"""
