""""""

from tidings.spark.session.failures import in_one_sentence
from tidings.spark.session.session import on_this_machine, prepare

__all__ = [
    "in_one_sentence",
    "on_this_machine",
    "prepare",
]
