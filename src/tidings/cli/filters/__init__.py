"""Commands on files of filters: check, convert, match, explain, doctor, graph.

    check_command.py      what a filter means (anatomy.py), and whether it is a good one
    convert_command.py    filters of one dialect in another
    match_command.py      which subscriptions are told of which events; match_counts.py counts them
    explain_command.py    why an event matches, or why not (explanation_view.py shows it)
    doctor_command.py     what is wrong with a file of filters (findings.py)
    graph_command.py      which filter covers which: table, tree or picture
    hints.py              notes on filters and events that do not fit each other

Used by app.py and the demo. Start at match_command.py.
"""
