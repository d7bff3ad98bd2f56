"""Admission: which clients may connect to a node, under which names, with which permissions, and
how many.

    connect ──> stranger ──Hello──> permissions: token, name ──> places: a free one ──> neighbour
                   `── too late, too much, no token ──> refused, counted, told why

    listen.py              where a node listens, and what it requires of clients
    permissions.py         maps tokens and certificates to names and rights; who may send what
    refused_answers.py     the answers to messages that are refused
    grants.py              the signed grants that agents present
    tickets.py             the tickets that a node signs for its clients
    direct_tickets.py      tickets that admit agents to the rendezvous point itself
    signing.py             keys, and the grants and tickets that are signed with them
    connection_limits.py   bounds on strangers and on how much they send
    neighbour_places.py    which places guests, named agents and routers may take

Used only inside `broker`. For the guarantees, see docs/security.md. Start at permissions.py.
"""
