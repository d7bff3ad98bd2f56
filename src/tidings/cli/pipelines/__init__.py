"""Commands about pipelines: `tidings pipeline`, `outbox`, `dead-letters`, `types`.

    pipeline_command.py   run, check, status, verify; pipeline_files.py finds the file
    pipeline_init.py      writes a pipeline file for the data in a file
    pipeline_view.py      a running pipeline: a table that is redrawn, or a line for each batch
    pipeline_status.py    the status of a pipeline, from its files
    outbox_command.py, dead_letters_command.py    the rows of an outbox, and the refused ones
    pipeline_verify.py    checks that an outbox is intact
    types_command.py, samples.py    the types of a file's columns; samples.py infers them

The work is done in `spark`. Used by app.py, and in parts by the demo. Start at
pipeline_command.py.
"""
