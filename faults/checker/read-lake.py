"""Prints the current records of all of an organisation's Delta tables as texts, one JSON list per record."""

import datetime
import decimal
import json
import os
import sys

from deltalake import DeltaTable

epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
folder, identifiers = sys.argv[1], json.loads(sys.argv[2])


def text(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return str((value - epoch) // datetime.timedelta(milliseconds=1))
    if isinstance(value, datetime.date):
        return value.isoformat()
    number = float(value) if isinstance(value, decimal.Decimal) else value
    return str(int(number)) if number == int(number) else repr(number)


for name in sorted(os.listdir(folder)):
    if not os.path.isdir(os.path.join(folder, name, "_delta_log")):
        continue
    rows = DeltaTable(os.path.join(folder, name)).to_pyarrow_table().to_pylist()
    if name == "interactions":
        current = {}
        for row in rows:
            if row["interaction_id"] in current:
                print(json.dumps([name, row["interaction_id"], "twice"]))
            current[row["interaction_id"]] = row
    else:
        identifier = identifiers[name]
        current = {}
        for row in sorted(rows, key=lambda row: row["_change"]):
            current[row[identifier]] = row
        current = {key: row for key, row in current.items() if not row["_deleted"]}
    for key, row in current.items():
        print(json.dumps([name, key, {field: text(value) for field, value in row.items()}]))
