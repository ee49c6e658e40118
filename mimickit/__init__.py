"""MimicKit: physics-based motion imitation in which every physics engine films itself."""

from typing import TYPE_CHECKING, Any

from mimickit.util.mujoco_import import ensure_mujoco_importable

if TYPE_CHECKING:
    from mimickit.factory import load_agent, make_env
    from mimickit.interop.record import record_and_save_video

__all__ = ["load_agent", "make_env", "record_and_save_video"]
_HOMES = {
    "load_agent": "mimickit.factory",
    "make_env": "mimickit.factory",
    "record_and_save_video": "mimickit.interop.record",
}

ensure_mujoco_importable()


def __getattr__(name: str) -> Any:
    """What is heavy is imported when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mimickit' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
