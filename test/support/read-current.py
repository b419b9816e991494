"""Prints the current records of a Delta table of versions at each of the given versions, as deltalake and Polars read them."""

import datetime
import decimal
import json
import sys

import polars as pl
from deltalake import DeltaTable

folder, identifier, *versions = sys.argv[1:]
epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return str((value - epoch) // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, decimal.Decimal) else repr(value)


def as_text(rows):
    return [{name: text(value) for name, value in row.items()} for row in rows]


def newest(rows):
    current = {}
    for row in sorted(rows, key=lambda row: row["_change"]):
        current[row[identifier]] = row
    return [row for row in current.values() if not row["_deleted"]]


found = []
for version in map(int, versions):
    polars = (
        pl.scan_delta(folder, version=version)
        .sort("_change")
        .unique(identifier, keep="last")
        .filter(~pl.col("_deleted"))
        .collect()
    )
    deltalake = DeltaTable(folder, version=version).to_pyarrow_table().to_pylist()
    found.append({"deltalake": as_text(newest(deltalake)), "polars": as_text(polars.to_dicts())})
json.dump(found, sys.stdout)
