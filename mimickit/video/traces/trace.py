"""Traces: the body poses of what was filmed, from which it can be filmed again. The format is in docs/trace.md.

A zip archive: trace.json says who is on stage, assets/ holds the characters with their meshes, and every chunk of
states is a few .npy arrays of differences and a states.json. A trace whose writer was killed is read as far as it goes.
"""

import contextlib
import functools
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.video.errors import VideoError
from mimickit.video.files.names import PART_SUFFIX, TRACE_SUFFIX
from mimickit.video.snapshot import (
    FORCE_STEPS,
    POS_STEPS,
    ROT_STEPS,
    ActorSpec,
    FloatArray,
    Moment,
    Snapshot,
    bounded_force,
    plain,
)
from mimickit.video.traces.trace_assets import AssetPacker, AssetReader
from mimickit.video.traces.zip_scan import scan_zip

FORMAT = "mimickit-trace-1"
_CHUNK = 64  # states: about two seconds
_LEVEL = 1  # of compression: 6 takes twice as long and saves a twentieth
_HEADER, _INDEX = "trace.json", "index.json"
_KINDS = {"pos": ("<i4", POS_STEPS), "rot": ("<i2", ROT_STEPS), "contact": ("<i2", FORCE_STEPS)}


class TraceError(VideoError):
    """A trace that can't be read; the message names the file."""


@dataclass(frozen=True)
class EnvCast:
    """Who is on stage in one environment."""

    env_id: int
    actors: tuple[ActorSpec, ...]
    body_counts: tuple[int, ...]
    """Bodies of each actor."""


@dataclass(frozen=True)
class TraceHeader:
    """What is known when a recording begins."""

    dt: float
    """Seconds between two states."""
    engine: str
    casts: tuple[EnvCast, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Anything else, as JSON can hold it: seed, model_file, samples, ..."""
    video: Mapping[str, Any] = field(default_factory=dict)
    """How it was filmed: fields of VideoConfig."""


class TraceWriter:
    """Writes a trace state by state. Memory holds one chunk; a chunk that is written survives the process."""

    def __init__(self, part: Path, header: TraceHeader) -> None:
        """Raises VideoError where part can't be written, here and in the methods."""
        self.part = part
        self.num_states = 0
        self._counts = [cast.body_counts for cast in header.casts]
        self._waiting: list[Moment] = []
        self._chunks: list[list[int]] = []  # first state and number of states of each
        with self._errors_named():
            self._file = part.open("wb")
            self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
            self._write_header(header)

    def write(self, moment: Moment) -> None:
        """Add a state. The moment is kept until its chunk is written and must not be changed."""
        if self._waiting and _shape(self._waiting[0]) != _shape(moment):
            self._flush()
        self._waiting.append(moment)
        self.num_states += 1
        if len(self._waiting) >= _CHUNK:
            self._flush()

    def close(self, ending: Mapping[str, Any]) -> None:
        """Write what is known at the end (episodes, ...) and the index; the part is complete then."""
        self._flush()
        with self._errors_named():
            index = {"num_states": self.num_states, "chunks": self._chunks, **ending}
            self._zip.writestr(_INDEX, json.dumps(index, default=str))
            self._zip.close()
            self._file.close()

    def abort(self) -> None:
        """Stop without complaint; what was written stays in the part."""
        self._zip.fp = None  # else it would complete itself when it is forgotten
        with contextlib.suppress(OSError):
            self._file.close()

    def _write_header(self, header: TraceHeader) -> None:
        casts, assets = [], AssetPacker()
        for cast in header.casts:
            actors = []
            for actor, count in zip(cast.actors, cast.body_counts, strict=True):
                actors.append({
                    "name": actor.name, **assets.add(actor), "num_bodies": count, "color": actor.color,
                    "alpha": actor.alpha,
                })  # fmt: skip
            casts.append({"env": cast.env_id, "actors": actors})
        content: dict[str, Any] = {"format": FORMAT, "dt": header.dt, "engine": header.engine, "casts": casts}
        content |= {"facts": plain(header.facts), "video": dict(header.video)}
        self._zip.writestr(_HEADER, json.dumps(content, default=str))
        for name, data in assets.members.items():
            self._zip.writestr(name, data)
        self._file.flush()

    def _flush(self) -> None:
        moments, self._waiting = self._waiting, []
        if not moments:
            return
        name, first = f"states/{len(self._chunks):06d}", self.num_states - len(moments)
        ghosts, has_contacts = [len(s.ghosts) for s in moments[0]], bool(moments[0][0].contacts)
        arrays = {"pos": [_strung(m, 0) for m in moments], "rot": [_strung(m, 1) for m in moments]}
        if has_contacts:
            arrays["contact"] = [np.concatenate([f for s in m for f in s.contacts]) for m in moments]
        facts = {
            "first": first, "count": len(moments), "ghosts": ghosts, "contacts": has_contacts,
            "time": [m[0].time for m in moments],
            "step": [m[0].step for m in moments],
            "cut": [[int(s.is_cut) for s in m] for m in moments],
            "annotations": [_columns([m[i].annotations for m in moments]) for i in range(len(ghosts))],
        }  # fmt: skip
        with self._errors_named():
            for kind, values in arrays.items():
                stacked = bounded_force(np.stack(values)) if kind == "contact" else np.stack(values)
                self._zip.writestr(f"{name}/{kind}.npy", _pack(stacked, *_KINDS[kind]))
            self._zip.writestr(f"{name}/states.json", json.dumps(facts, separators=(",", ":")))
            self._file.flush()
        self._chunks.append([first, len(moments)])

    def _errors_named(self) -> "_NamedErrors":
        return _NamedErrors(self.part)


class _NamedErrors:
    """Turns the system's errors into ones that name the trace."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError):
            raise VideoError(f"{self._path}: can't be written: {error.strerror or error}") from error


class Trace:
    """A trace that is read: any state at once, one chunk in memory."""

    def __init__(self, path: str | Path) -> None:
        """Raises TraceError for a file that isn't there or is no trace."""
        self.path = Path(path)
        try:
            self._archive: Any = _open_archive(self.path)
            header = self._json(_HEADER)
            if header.get("format") != FORMAT:
                raise TraceError(f"{self.path}: expected a trace of format {FORMAT}, found {header.get('format')!r}")
            self.dt = float(header["dt"])
            if not 0.0 < self.dt < math.inf:
                raise TraceError(f"{self.path}: dt: expected a number above 0 (s), found {self.dt}")
            self.engine = str(header["engine"])
            self.facts: dict[str, Any] = dict(header["facts"])
            self.video: dict[str, Any] = dict(header["video"])
            assets = AssetReader(self._archive)
            self.casts = tuple(_cast(cast, assets) for cast in header["casts"])
            self._read_index()
        except (OSError, zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError) as error:
            if isinstance(error, TraceError):
                raise
            reason = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            raise TraceError(f"{self.path}: not a trace that can be read: {reason}") from error
        self._chunk = functools.lru_cache(maxsize=2)(self._read_chunk)

    def __len__(self) -> int:
        return self.num_states

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def duration(self) -> float:
        """Seconds from the first state to the last."""
        return max(self.num_states - 1, 0) * self.dt

    @property
    def states_size(self) -> int:
        """Bytes that the states take in the file, without the characters."""
        names = [name for name in self._archive.namelist() if name.startswith("states/")]
        archive = self._archive
        if isinstance(archive, zipfile.ZipFile):
            return sum(archive.getinfo(name).compress_size for name in names)
        return sum(archive.size(name) for name in names)

    def state(self, index: int) -> Moment:
        """The state `index` (from 0) of all its environments. Raises IndexError, TraceError."""
        if not 0 <= index < self.num_states:
            raise IndexError(f"{self.path}: expected a state of 0 to {self.num_states - 1}, found {index}")
        number = int(np.searchsorted(self._firsts, index, side="right")) - 1
        return self._chunk(number)[index - int(self._firsts[number])]

    def states(self, start: int = 0, stop: int | None = None) -> Iterator[Moment]:
        """States from start up to, not including, stop (default: the end)."""
        for index in range(start, self.num_states if stop is None else min(stop, self.num_states)):
            yield self.state(index)

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._archive.close()

    # ------------------------------------------------------------------ reading

    def _json(self, name: str) -> Any:
        return json.loads(self._archive.read(name))

    def _read_index(self) -> None:
        names = set(self._archive.namelist())
        self.is_complete = _INDEX in names
        if self.is_complete:
            self.ending: dict[str, Any] = self._json(_INDEX)
            self._firsts = np.array([first for first, _ in self.ending["chunks"]], dtype=np.int64)
            self.num_states = int(self.ending["num_states"])
            return
        chunks = sorted(name for name in names if name.endswith("/states.json"))
        counts = [int(self._json(name)["count"]) for name in chunks]
        self.ending, self.num_states = {}, sum(counts)
        self._firsts = np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, np.int64)

    def _read_chunk(self, number: int) -> list[Moment]:
        name = f"states/{number:06d}"
        try:
            facts = self._json(f"{name}/states.json")
            kinds = ["pos", "rot", *(["contact"] if facts["contacts"] else [])]
            arrays = {kind: _unpack(self._archive.read(f"{name}/{kind}.npy"), _KINDS[kind][1]) for kind in kinds}
            return [self._moment(facts, arrays, row) for row in range(facts["count"])]
        except (OSError, zipfile.BadZipFile, zlib.error, KeyError, IndexError, TypeError, ValueError) as error:
            raise TraceError(f"{self.path}: {name} can't be read: {type(error).__name__}: {error}") from error

    def _moment(self, facts: Mapping[str, Any], arrays: Mapping[str, FloatArray], row: int) -> Moment:
        at, force_at, snapshots = 0, 0, []
        for index, cast in enumerate(self.casts):
            counts = [*cast.body_counts, *cast.body_counts[: facts["ghosts"][index]]]
            edges = at + np.concatenate(([0], np.cumsum(counts)))
            at = int(edges[-1])
            poses = [
                (arrays["pos"][row, a:b], arrays["rot"][row, a:b])
                for a, b in zip(edges, edges[1:], strict=False)
            ]  # fmt: skip
            num_actors, contacts = len(cast.actors), []
            if facts["contacts"]:
                for count in cast.body_counts:
                    contacts.append(arrays["contact"][row, force_at : force_at + count])
                    force_at += count
            snapshots.append(Snapshot(
                time=facts["time"][row], env_id=cast.env_id, step=facts["step"][row],
                poses=poses[:num_actors], ghosts=poses[num_actors:], is_cut=bool(facts["cut"][row][index]),
                contacts=contacts, annotations=_row_of(facts["annotations"][index], row),
            ))  # fmt: skip
        return tuple(snapshots)


def _cast(cast: Mapping[str, Any], assets: AssetReader) -> EnvCast:
    actors = [
        ActorSpec(name=actor["name"], color=actor["color"], alpha=actor["alpha"], **assets.fields(actor))
        for actor in cast["actors"]
    ]
    return EnvCast(int(cast["env"]), tuple(actors), tuple(int(actor["num_bodies"]) for actor in cast["actors"]))


def is_trace(path: Path) -> bool:
    """Whether the name says that it is a trace, complete or not."""
    return path.name.endswith((TRACE_SUFFIX, TRACE_SUFFIX + PART_SUFFIX))


# ---------------------------------------------------------------------- one chunk


def _shape(moment: Moment) -> list[tuple[int, int]]:
    return [(len(snapshot.ghosts), len(snapshot.contacts)) for snapshot in moment]


def _strung(moment: Moment, part: int) -> FloatArray:
    """Positions (0) or rotations (1) of all bodies of a moment: of each environment the actors, then the ghosts."""
    return np.concatenate([pose[part] for snapshot in moment for pose in (*snapshot.poses, *snapshot.ghosts)])


def _pack(values: FloatArray, dtype: str, steps: float) -> bytes:
    """(T, B, K) values as a .npy of whole steps: the first row, then the change from row to row (which may wrap
    around)."""
    steps_of = np.rint(values * steps).astype(dtype)
    changes = np.concatenate([steps_of[:1], np.diff(steps_of, axis=0)])
    file = io.BytesIO()
    np.save(file, changes, allow_pickle=False)
    return file.getvalue()


def _unpack(content: bytes, steps: float) -> FloatArray:
    changes: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    return np.asarray(np.cumsum(changes, axis=0, dtype=changes.dtype) / steps)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    rows = [plain(row) for row in rows]
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}


def _row_of(columns: Mapping[str, list[Any]], row: int) -> dict[str, Any]:
    return {key: values[row] for key, values in columns.items() if values[row] is not None}


def _open_archive(path: Path) -> Any:
    """The archive, or of one without an end what can be found by looking through it."""
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        return scan_zip(path)
