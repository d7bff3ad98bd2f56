"""`tidings bench`: how fast it is here, and whether a change made it faster or slower.

    bench_command.py    match, updates, graph, compare; adds build and backtest, app.py the rest
    bench_build.py      compile very many subscriptions on Spark
    bench_backtest.py   many filters on many flights, in bounded memory
    bench_spark.py      tagging against joins; pipelines from end to end
    bench_route.py      the network beside mosquitto and nats-server

The work is done in `studies`, but build and backtest measure here; docs/performance.md quotes what
these commands print. Used only by app.py. Start at bench_command.py.
"""
