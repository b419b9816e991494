"""Writes a version of a Delta table to Parquet files, as read by deltalake and by Polars: folder, version, target folder."""

import sys

import polars
import pyarrow.parquet
from deltalake import DeltaTable

folder, version, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]

dataset = DeltaTable(folder, version=version).to_pyarrow_dataset()
with pyarrow.parquet.ParquetWriter(f"{target}/deltalake.parquet", dataset.schema) as writer:
    for batch in dataset.to_batches():
        writer.write_batch(batch)

polars.scan_delta(folder, version=version).sink_parquet(f"{target}/polars.parquet")
