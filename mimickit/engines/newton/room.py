"""Whether all contacts found room in the solver: mujoco-warp drops those that don't."""

import logging
from typing import Any

import torch
import warp as wp  # noqa: TID253  (this module is imported by engines on Newton alone)

_log = logging.getLogger("mimickit.engines")


class ContactRoom:
    """Says once that contacts were dropped, and what to change."""

    def __init__(self, solver: Any, engine: str) -> None:
        """solver: a SolverMuJoCo that has not stepped yet; engine: whose max_contacts it is."""
        from mujoco_warp import OverflowType

        solver.mjw_model.opt.warn_overflow = False  # it would print at every step, and name its own fields
        self._overflow = wp.to_torch(solver.mjw_data.overflow)
        self._kinds = int(OverflowType.NEFC | OverflowType.BROADPHASE | OverflowType.NARROWPHASE)
        self._room = int(solver.mjw_data.naconmax) // int(solver.mjw_data.nworld)
        self._engine, self._told = engine, False

    def check(self) -> None:
        """To be called now and then; costs next to nothing."""
        if self._told:
            return
        full = (self._overflow & self._kinds) != 0
        if bool(full.any()):
            self._told = True
            env = int(torch.nonzero(full)[0])
            _log.warning(
                "engine %s: environment %d had more contacts than the %d there is room for; some have no effect. Set "
                "max_contacts in the engine's file to more", self._engine, env, self._room,
            )  # fmt: skip
