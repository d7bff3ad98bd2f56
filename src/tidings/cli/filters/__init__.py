"""Commands on files of filters: check, convert, match, explain, doctor, graph.

    check.py      what a filter means (anatomy.py), and whether it is a good one
    convert.py    filters of one dialect in another
    match.py      which subscriptions are told of which events (ledger.py keeps who is told what)
    explain.py    why an event matches, or why not (explanation.py shows it)
    doctor.py     what is wrong with a file of filters (findings.py)
    graph.py      which filter covers which: table, tree or picture
    hints.py      notes on filters and events that do not fit each other

Used by app.py and the demo. Start at match.py.
"""
