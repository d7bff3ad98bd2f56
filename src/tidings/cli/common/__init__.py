"""Code that commands share: input, output, errors and shutdown.

    options.py, amounts.py, declared_types.py    shared options; amounts such as 10k; --types
    input_files.py, events.py, arrow.py, subscription_files.py    lines, events, subscriptions
    screen.py, text_trees.py     tables, progress and trees for people, JSON lines for programs
    command_errors.py            one paragraph on stderr and an exit code, never a traceback
    shutdown.py, watchdog.py     SIGTERM and Ctrl-C: a clean end, or a kill after a while

Used only inside `cli`, by every command. Start at command_errors.py and screen.py.
"""
