"""Meshes with fewer faces, for pages: vertices that lie in one cell of a grid become one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.video.snapshot import FloatArray

Faces = NDArray[Any]

_FINEST, _COARSEST = 256, 4  # cells along the longest side
_TRIES = 6  # halvings of the interval between them: to within a twentieth


def thinned(vertices: FloatArray, faces: Faces, max_faces: int) -> tuple[FloatArray, Faces]:
    """Vertices (V, 3) and faces (F, 3) on the finest grid that leaves at most max_faces; as they are if that many."""
    if len(faces) <= max_faces:
        return vertices, faces
    coarse, fine = _COARSEST, _FINEST
    best = _clustered(vertices, faces, coarse)
    for _ in range(_TRIES):
        cells = (coarse + fine) // 2
        found = _clustered(vertices, faces, cells)
        if len(found[1]) <= max_faces:
            best, coarse = found, cells
        else:
            fine = cells
    return best


def _clustered(vertices: FloatArray, faces: Faces, cells: int) -> tuple[FloatArray, Faces]:
    low, extent = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max())
    index = np.floor((vertices - low) / max(extent, 1e-9) * (cells - 1e-6)).astype(np.int64)
    keys = (index[:, 0] * (cells + 1) + index[:, 1]) * (cells + 1) + index[:, 2]
    _, owner, counts = np.unique(keys, return_inverse=True, return_counts=True)
    centers = np.stack([np.bincount(owner, weights=vertices[:, axis]) / counts for axis in range(3)], axis=1)
    moved = owner[faces]
    a, b, c = moved.T
    moved = moved[(a != b) & (b != c) & (c != a)]  # the others have shrunk to a line
    first = moved.argmin(axis=1)[:, None]
    turned = np.take_along_axis(moved, (first + np.arange(3)) % 3, axis=1)  # alike faces begin with the same vertex
    return centers, np.unique(turned, axis=0)
