"""Reads the records of an offline W&B run: a file of LevelDB log blocks that hold protobuf messages."""

import json
import struct
import time
from pathlib import Path

BLOCK = 32768  # bytes
HEADER = struct.Struct("<IHB")  # checksum, length, type of a chunk
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def read_records(run_folder: Path) -> list:
    """The records (protobuf messages) of the one finished offline run below a run folder."""
    (file,) = run_folder.glob("wandb/offline-run-*/*.wandb")
    for _ in range(100):  # W&B's own process writes the file, and may be a moment behind
        records = list(_parse(file.read_bytes()))
        if any(record.HasField("exit") for record in records):
            return records
        time.sleep(0.1)
    raise AssertionError(f"{file}: the run was not finished")


def _parse(data: bytes):
    from wandb.proto import wandb_internal_pb2

    assert data[:4] in (b":W&B", b"")
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
