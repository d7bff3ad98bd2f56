"""The program `tidings`: one module for each command, in a folder by subject.

    tidings COMMAND ... ──> app.py ──> the function of the command ──> a library room ──> the screen

    app.py           every command and its name, from its module: the folders export nothing
    filters/         check, convert, match, explain, doctor, graph
    subscriptions/   subscriptions, snapshot
    pipelines/       pipeline, backtest
    network/         router, up, top, publish, subscribe
    demo/, bench/    demo; bench and its subcommands
    common/          options, files, errors, screen, ending: what commands share

Commands hold no logic of their own: they read, call a room, and show what it gives. Heavy packages
are imported in the functions that need them. `main` is for the entry point of the package; nothing
else imports this room. Start at app.py; docs/command-line.md is for users.
"""

from tidings.cli.app import main

__all__ = ["main"]
