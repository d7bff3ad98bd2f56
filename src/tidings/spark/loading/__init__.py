""""""

from tidings.spark.loading.log_snapshots import home_of, latest_attributes, list_set_aside
from tidings.spark.loading.restated import Aside

__all__ = [
    "Aside",
    "home_of",
    "latest_attributes",
    "list_set_aside",
]
