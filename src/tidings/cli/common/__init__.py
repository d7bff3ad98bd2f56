"""What commands share: how they read, what they show, how they fail and how they end.

    options.py, amounts.py, declared.py    options of several commands; 10k and 1M; --types
    files.py, events.py, arrow.py, subscriptions.py    lines, events and subscriptions from files
    screen.py, trees.py      tables, progress and trees for people, JSON lines for programs
    errors.py                one paragraph on stderr and an exit code, never a traceback
    ending.py, watchman.py   SIGTERM and Ctrl-C: in order, or killed after a while

Used only inside `cli`, by every command. Start at errors.py and screen.py.
"""
