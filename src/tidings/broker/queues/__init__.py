"""What waits at a node, and whose turn it is: nobody's flood delays what others say.

    publications ──> taken at once, or turns: owner, link, name ──> a slice of time ──> machine
    subscribe, ask, recover ──> backlog, after publications ──────> a slice of time ──> machine

    turns.py          fair turns by owner, then link, then name; a long turn counts as many
    publications.py   publications, which go first
    backlog.py        subscription work; a neighbour for which too much waits is not read from

Used only inside `broker`. Start at turns.py.
"""
