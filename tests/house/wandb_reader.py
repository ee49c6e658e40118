"""Reads the records of an offline W&B run: a file of LevelDB log blocks that hold protobuf messages."""

import json
import struct
from pathlib import Path

BLOCK = 32768  # bytes
HEADER = struct.Struct("<IHB")  # checksum, length, type of a chunk
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def read_records(run_folder: Path):
    """The records (protobuf messages) of the one offline run below a run folder."""
    from wandb.proto import wandb_internal_pb2

    (file,) = run_folder.glob("wandb/offline-run-*/*.wandb")
    data = file.read_bytes()
    assert data[:4] == b":W&B"
    position, payload = 7, b""
    while position + HEADER.size <= len(data):
        left = BLOCK - position % BLOCK
        if left < HEADER.size:
            position += left
            continue
        _, length, kind = HEADER.unpack_from(data, position)
        position += HEADER.size
        payload += data[position : position + length]
        position += length
        if kind in (FULL, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(payload)
            yield record
            payload = b""


def read_history(run_folder: Path) -> list[dict]:
    """The rows that were logged, in order."""
    records = (record.history for record in read_records(run_folder) if record.HasField("history"))
    return [{_name(item): json.loads(item.value_json) for item in row.item} for row in records]


def read_run(run_folder: Path):
    """The run's own record: name, group, tags, project, config."""
    return next(record.run for record in read_records(run_folder) if record.HasField("run"))


def _name(item) -> str:
    return item.key or "/".join(item.nested_key)
