"""Prints the rows of a Delta table at each of the given versions, as read by deltalake and by Polars."""

import datetime
import json
import sys

import polars
from deltalake import DeltaTable

folder, *versions = sys.argv[1:]


def text(value):
    if isinstance(value, datetime.datetime):
        if value.utcoffset() != datetime.timedelta(0):
            raise ValueError("a time that is not in UTC")
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return value.isoformat() if isinstance(value, datetime.date) else value


def ordered(rows):
    named = [{name: text(value) for name, value in row.items()} for row in rows]
    return sorted(named, key=lambda row: row["interaction_id"])


found = []
for version in map(int, versions):
    table = DeltaTable(folder, version=version)
    found.append(
        {
            "deltalake": ordered(table.to_pyarrow_table().to_pylist()),
            "polars": ordered(polars.read_delta(folder, version=version).to_dicts()),
            "position": table.transaction_version("acme"),
        }
    )
json.dump(found, sys.stdout)
