"""RSS and Atom feeds as a source of Spark, `tidings-feeds`, from servers that are not trusted.

    fetch_pool: processes with a deadline ──feed_http, feed_documents──> entries
                                                                           |
    Spark <── feeds: offsets are numbers of spool files <── feed_spool <───┘

    feeds.py            the source and its options
    feed_columns.py     its columns, which pipeline files are checked against without PySpark
    feed_spool.py       what was fetched, kept in numbered files until Spark has done with it
    fetch_pool.py       each feed in a process that can be killed
    feed_http.py        one document over HTTP; redirects are followed with care
    feed_documents.py   documents to entries

Used only inside `spark`: users call `tidings.spark.register`, or name feeds in a pipeline file.
Start at feeds.py.
"""
