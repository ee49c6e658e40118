"""Isaac Lab's manager of Newton's MuJoCo solver, with graphs on the CPU too."""

from typing import Any

import warp as wp  # noqa: TID253  (this module is imported by the Isaac Lab engine alone)
from isaaclab.physics import PhysicsManager  # noqa: TID253
from isaaclab_newton.physics import NewtonMJWarpManager


class NewtonGraphManager(NewtonMJWarpManager):
    """On a GPU Isaac Lab launches a step as one CUDA graph. On the CPU it launches its few hundred kernels one by one,
    which takes several times as long as the physics; here they are a Warp graph as well. The first step runs plainly:
    it loads the kernels.
    """

    _cpu_graph: Any = None

    @classmethod
    def _simulate_physics_only(cls) -> None:
        if wp.get_device(PhysicsManager._device).is_cuda:
            super()._simulate_physics_only()
        elif NewtonGraphManager._cpu_graph is not None:
            wp.capture_launch(NewtonGraphManager._cpu_graph)
        else:
            super()._simulate_physics_only()
            with wp.ScopedCapture() as capture:
                super()._simulate_physics_only()
            NewtonGraphManager._cpu_graph = capture.graph

    @classmethod
    def _invalidate_graph(cls) -> None:
        NewtonGraphManager._cpu_graph = None
        super()._invalidate_graph()

    @classmethod
    def _solver_specific_clear(cls) -> None:
        NewtonGraphManager._cpu_graph = None
        super()._solver_specific_clear()
