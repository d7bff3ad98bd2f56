"""RSS and Atom feeds as a Spark source, `tidings-feeds`. The servers of feeds are not trusted.

    fetch_pool: processes with a deadline ──feed_http, feed_documents──> entries
                                                                           |
    Spark <── feeds: offsets are numbers of spool files <── feed_spool <───┘

    feeds.py            the source and its options
    feed_columns.py     its columns; pipeline files are checked against them without PySpark
    feed_spool.py       fetched entries, in numbered files until Spark has processed them
    fetch_pool.py       fetches each feed in a process that can be killed
    feed_http.py        fetches one document over HTTP; follows only safe redirects
    feed_documents.py   parses documents into entries

This folder is used only inside `spark`: users call `tidings.spark.register`, or name feeds in a
pipeline file. Start at feeds.py.
"""
