"""MimicKit: physics-based motion imitation in which every physics engine films itself."""

from mimickit.util.mujoco_import import ensure_mujoco_importable

ensure_mujoco_importable()
