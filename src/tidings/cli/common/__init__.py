"""What commands share: how they read, what they show, how they fail and how they end.

    options.py, amounts.py, declared_types.py    options of several commands; 10k and 1M; --types
    input_files.py, events.py, arrow.py, subscription_files.py    lines, events, subscriptions
    screen.py, trees.py          tables, progress and trees for people, JSON lines for programs
    command_errors.py            one paragraph on stderr and an exit code, never a traceback
    shutdown.py, watchdog.py     SIGTERM and Ctrl-C: in order, or killed after a while

Used only inside `cli`, by every command. Start at command_errors.py and screen.py.
"""
