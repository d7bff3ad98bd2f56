"""The command `tidings backtest`: how often filters would have fired on a table of past events.

    backtest_command.py   the command, its tables and its charts
    backtest_tables.py    opens the table with Spark: files, stdin, or the demo's flights
    job_bar.py            a progress bar for slow Spark jobs

The work is done in `spark`. Used by app.py and bench. Start at backtest_command.py.
"""
