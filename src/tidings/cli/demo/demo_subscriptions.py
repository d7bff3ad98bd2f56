"""The demo's subscriptions: the filters of some three hundred people with roles around an airport,
such as duty manager.

The subscriptions are generated from the small tables below, so each run has the same people and
filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, cycle

from tidings.cli.common.subscription_files import FileSubscription

NAMES = """Ana Ben Chloe Dev Elif Femi Gita Hugo Ines Jun Kofi Lena Mateo Nia Omar Priya Quinn Rosa
Sven Tala Uma Viktor Wen Ximena Yusuf Zoe Aldo Bea Cyrus Dina Emil Freya Goran Hana Ivo Jasmin Kai
Luz Milo Noor Otis Petra Remy Saga Tomas Ulla Vera Will Xiu Yara Zeno"""

DESKS = {
    "EWR": "UA EV B6 WN US DL AA",
    "JFK": "B6 DL AA 9E MQ UA VX",
    "LGA": "DL MQ AA US EV UA B6 WN FL",
}
HUBS = {"EWR": "UA EV", "JFK": "B6 DL AA", "LGA": "DL MQ US"}
STATIONS = """ORD ATL LAX BOS MCO CLT SFO FLL MIA DCA DTW DFW RDU TPA DEN IAH MSP PBI BNA LAS SJU
IAD BUF PHX CLE STL MDW CVG SEA MSY"""
FLEETS = {
    "B6": "N%JB", "MQ": "N%MQ", "UA": "N%UA", "AA": "N%AA", "US": "N%UW", "9E": "N%XJ",
    "WN": "N%WN", "EV": "N1%", "VX": "N%VA", "DL": "N9%D_",
}  # fmt: skip
PLANES = ["N725MQ N722MQ N723MQ", "N711MQ N713MQ", "N258JB N298JB N353JB", "N328AA N338AA",
          "N534MQ N542MQ N531MQ", "N190JB N183JB", "N0EGMQ N735MQ"]  # fmt: skip
CARRIERS = "UA B6 EV DL AA MQ US 9E WN VX FL AS"
REGIONS = {  # latitude, longitude, km
    "Chicago": (41.88, -87.63, 60), "South Florida": (26.2, -80.2, 90),
    "the Bay Area": (37.6, -122.2, 60), "greater Los Angeles": (33.9, -118.1, 80),
    "Washington": (38.9, -77.2, 50), "New England": (42.4, -71.5, 180),
    "greater Houston": (29.8, -95.3, 50), "the Carolinas": (35.5, -80.0, 160),
    "the Gulf coast": (30.0, -89.0, 220), "Texas": (31.0, -98.0, 330),
    "the Rockies": (39.9, -107.0, 420), "the Great Lakes": (42.5, -82.0, 260),
    "the Northwest": (46.5, -122.5, 180), "Tennessee": (35.8, -86.4, 230),
    "upstate New York": (42.9, -76.8, 190),
}  # fmt: skip
ROUTES = [
    "LGA-ATL", "JFK-LAX", "LGA-ORD", "JFK-SFO", "LGA-CLT", "EWR-ORD", "JFK-BOS", "LGA-MIA",
    "JFK-MCO", "EWR-BOS", "EWR-SFO", "LGA-DTW", "EWR-CLT", "EWR-ATL", "LGA-DCA", "EWR-MCO",
    "LGA-DFW", "EWR-LAX", "JFK-SJU", "LGA-FLL", "EWR-FLL", "LGA-DEN", "JFK-LAS", "JFK-TPA",
    "EWR-IAH", "JFK-FLL", "EWR-DFW", "LGA-STL", "EWR-DTW", "JFK-BUF",
]  # fmt: skip
DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
FOLLOWED = """AA 133, DL 1885, VX 27, VX 411, AA 117, AA 1, DL 181, B6 219, EV 5712, VX 407, VX 251,
AA 1611, AA 1357, B6 431, AA 119, B6 703, AA 181, B6 359, AA 59, VX 413, UA 15, DL 2159, B6 371,
DL 2391, B6 1783"""
WATCHES = {
    "head of operations": "dep_delay > 360 OR arr_delay > 360",
    "duty manager": "dep_delay > 240",
    "night manager": "dep_delay > 180 AND hour >= 21",
    "small carriers": "NOT carrier IN ('UA', 'B6', 'EV', 'DL', 'AA') AND dep_delay > 240",
    "cancellations": "dep_time IS NULL",
    "long haul": "distance > 2000 AND dep_time IS NULL",
    "Pacific": "dest IN ('HNL', 'ANC') AND dep_delay > 15",
    "red-eyes": "distance >= 1800 AND hour >= 20 AND dep_delay > 90",
    "never arrived": "dep_time IS NOT NULL AND arr_time IS NULL",
    "diversions": "air_time IS NULL AND arr_time IS NOT NULL",
    "fuel": "air_time > 400",
    "short hops": "distance < 200 AND dep_delay > 150",
    "holidays": "month = 12 AND day BETWEEN 20 AND 31 AND dep_delay > 120",
    "Thanksgiving": "month = 11 AND day BETWEEN 27 AND 30 AND dep_delay > 60",
    "July storms": "month = 7 AND hour BETWEEN 15 AND 20 AND dep_delay > 200",
    "blizzard of February": "month = 2 AND day IN (8, 9) AND dep_time IS NULL",
    "early birds": "dep_delay <= -20",
    "made up an hour": "dep_delay - arr_delay >= 60",
    "evening rush": "sched_dep_time BETWEEN 1700 AND 1859 AND dep_delay > 150",
    "no tail number": "tailnum IS NULL AND carrier != 'US'",
    "first wave": "sched_dep_time < 600 AND dep_delay > 30",
}


def make_subscriptions() -> list[FileSubscription]:
    """All subscriptions of the demo. Each subscriber is a person with a role."""
    names = cycle(NAMES.split())
    asked = chain(
        _write_desks(), _write_control(), _write_stations(), _write_crews(), _write_hangars(),
        _write_analysts(), _write_regions(), _write_travellers(), _write_families(),
        WATCHES.items(),
    )  # fmt: skip
    return [
        FileSubscription(number, text, f"{next(names)}, {role}", "demo", f"subscription {number}")
        for number, (role, text) in enumerate(asked, 1)
    ]


RolesAndFilters = Iterator[tuple[str, str]]  # role, filter


def _write_desks() -> RolesAndFilters:
    """The filters of the carriers' desks. A deputy's filter means the same as the filter of a desk,
    so both filters share a node."""
    for origin, carriers in DESKS.items():
        for carrier, late in zip(carriers.split(), cycle((60, 75, 90)), strict=False):
            own = f"origin = '{origin}' AND carrier = '{carrier}'"
            yield f"{carrier} desk at {origin}", f"{own} AND dep_delay > {late}"
            yield f"{carrier} rebooking at {origin}", f"{own} AND dep_time IS NULL"
            if carrier in HUBS[origin]:
                same = (
                    f"NOT (carrier != '{carrier}' OR origin != '{origin}' OR dep_delay <= {late})"
                )
                yield f"{carrier} deputy at {origin}", same
                yield f"{carrier} chief at {origin}", f"{own} AND dep_delay > 180"


def _write_control() -> RolesAndFilters:
    """Filters that cover the filters of desks: they match every flight that those match."""
    yield "network control", "dep_delay > 45"
    for origin in DESKS:
        yield f"{origin} control", f"origin = '{origin}' AND dep_delay > 50"
    for carrier in CARRIERS.split():
        yield f"{carrier} control", f"carrier = '{carrier}' AND dep_delay > 55"


def _write_stations() -> RolesAndFilters:
    for station, late in zip(STATIONS.split(), cycle((90, 120, 60)), strict=False):
        yield f"station {station}", f"dest = '{station}' AND arr_delay > {late}"
    for station in STATIONS.split()[:15]:
        evening = "hour >= 19 AND arr_delay BETWEEN 30 AND 90"
        yield f"late shift {station}", f"dest = '{station}' AND {evening}"


def _write_crews() -> RolesAndFilters:
    for origin in DESKS:
        for first in (10, 13, 16, 19, 22):
            window = f"hour(time_hour) BETWEEN {first} AND {first + 2}"
            if first == 22:
                window = "(hour(time_hour) >= 22 OR hour(time_hour) <= 1)"
            late = "dep_delay BETWEEN 100 AND 180"
            yield f"crews {origin} from {first} UTC", f"origin = '{origin}' AND {window} AND {late}"


def _write_hangars() -> RolesAndFilters:
    for carrier, tails in FLEETS.items():
        own = f"carrier = '{carrier}' AND tailnum LIKE '{tails}'"
        yield f"{carrier} hangar", f"{own} AND dep_delay > 180"
    for planes in PLANES:
        tails = ", ".join(f"'{tail}'" for tail in planes.split())
        yield "maintenance", f"tailnum IN ({tails}) AND (dep_delay > 60 OR dep_time IS NULL)"


def _write_analysts() -> RolesAndFilters:
    for carrier in CARRIERS.split():
        yield f"analyst for {carrier}", f"carrier = '{carrier}' AND arr_delay - dep_delay > 45"
        yield (f"analyst for {carrier}",
               f"carrier = '{carrier}' AND dep_delay > 30 AND arr_delay <= 0")  # fmt: skip


def _write_regions() -> RolesAndFilters:
    for (region, (lat, lon, km)), origin in zip(REGIONS.items(), cycle(DESKS), strict=False):
        near = f"within_km(dest_lat, dest_lon, {lat}, {lon}, {km})"
        late = f"origin = '{origin}' AND hour >= 18 AND dep_delay > 120"
        yield f"hotels in {region}", f"{late} AND {near}"


def _write_travellers() -> RolesAndFilters:
    for number, route in enumerate(ROUTES):
        origin, dest = route.split("-")
        for step, (first, last) in enumerate(((6, 9), (16, 19))):
            day = (number + 3 * step) % 5 + 1  # Monday to Friday
            trip = f"origin = '{origin}' AND dest = '{dest}' AND hour BETWEEN {first} AND {last}"
            yield (f"flies {route} on {DAYS[day]}s",
                   f"{trip} AND dayofweek(time_hour) = {day + 1} "
                   "AND (dep_delay > 45 OR dep_time IS NULL)")  # fmt: skip


def _write_families() -> RolesAndFilters:
    for flight in FOLLOWED.split(","):
        carrier, number = flight.split()
        yield (f"waits for {carrier} {number}",
               f"carrier = '{carrier}' AND flight = {number} AND arr_delay > 30")  # fmt: skip
