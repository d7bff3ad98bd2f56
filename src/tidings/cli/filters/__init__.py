"""Commands that work on filters: check, convert, match, explain, doctor, graph.

    check_command.py      what a filter means (anatomy.py), with warnings
    convert_command.py    translates filters from one dialect to another
    match_command.py      which events match which subscriptions; match_counts.py counts them
    explain_command.py    why an event matches, or why not
    doctor_command.py     what is wrong with a file of filters (findings.py)
    graph_command.py      which filter covers which: table, tree or picture
    implications.py       decision diagrams: which tests are inferred from others;
                          diagram_picture.py draws them
    hints.py              notes on filters and events that do not fit each other

Used by app.py and the demo. Start at match_command.py.
"""
