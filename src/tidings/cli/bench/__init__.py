"""`tidings bench`: measures speed on this machine, and compares revisions.

    bench_command.py    match, updates, graph, compare
    bench_bdd.py        decision diagrams with implications
    bench_relations.py  the relation repository
    bench_build.py      compiles very many subscriptions on Spark
    bench_backtest.py   many filters on many flights, in bounded memory
    bench_spark.py      tagging compared with joins; pipelines from end to end
    bench_chain.py      the whole chain, from rows through Spark and routers to agents
    bench_route.py      the network compared with mosquitto and nats-server

bench_command.py also registers build and backtest; app.py registers the rest. The measurements are
in `studies`, except those of build and backtest, which are in this folder. docs/performance.md
quotes the output of these commands. Used only by app.py. Start at bench_command.py.
"""
