""""""

from tidings.spark.compiling.compiled import home_of, latest_attributes, set_aside
from tidings.spark.compiling.restated import Aside

__all__ = [
    "Aside",
    "home_of",
    "latest_attributes",
    "set_aside",
]
