"""Code that commands share: input, output, errors and shutdown.

    options.py, amounts.py       shared options with their help; amounts such as 10k
    declared_types.py            reads the value of --types; its help is in options.py
    input_files.py, events.py, arrow.py, subscription_files.py    lines, events, subscriptions
    screen.py, text_trees.py     tables, progress and trees for people, JSON lines for programs
    command_errors.py            one paragraph on stderr and an exit code, never a traceback
    shutdown.py, watchdog.py     SIGTERM and Ctrl-C: a clean end, or a kill after a while

Used only inside `cli`, by every command. Start at command_errors.py and screen.py.
"""
