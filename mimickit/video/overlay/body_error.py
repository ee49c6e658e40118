"""How far each body is from its reference, and the colour that says so."""

import numpy as np

from mimickit.video.snapshot import ActorPose, FloatArray

ERROR_RANGE = 0.3
"""m, the error that has the last colour."""
# blue, over cyan and yellow, to red
_STOPS = (0.0, 0.3, 0.6, 1.0)
_COLORS = ((0.12, 0.36, 0.96), (0.25, 0.78, 0.86), (0.99, 0.80, 0.18), (0.90, 0.07, 0.07))


def body_errors(pose: ActorPose, reference: ActorPose) -> FloatArray:
    """(B,) distances (m) of an actor's bodies from the reference's, both seen from their own root.

    Their mean is what tests report as body_pos_err_m.
    """
    pos, ref = pose[0], reference[0]
    difference = (pos - pos[0]) - (ref - ref[0])
    return np.sqrt(np.einsum("bi,bi->b", difference, difference))


def error_colors(errors: FloatArray) -> FloatArray:
    """(..., 3) RGB in 0..1 of errors (...) in m."""
    share = np.asarray(errors) / ERROR_RANGE
    return np.stack([np.interp(share, _STOPS, channel) for channel in zip(*_COLORS, strict=True)], axis=-1)
