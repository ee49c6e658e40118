"""Makes `import mujoco` safe on machines whose MUJOCO_GL names a GL that can't be loaded."""

import logging
import os
import sys

_NO_GL = "off"  # MuJoCo's own word for "choose no GL at import"

_log = logging.getLogger("mimickit.engines")


def ensure_mujoco_importable() -> None:
    """Import mujoco now if MUJOCO_GL could make a plain `import mujoco` fail.

    mujoco loads the GL that MUJOCO_GL names while it is being imported, and a missing library is an error
    there: on a machine where nothing can be filmed, nothing could be trained either. Here it is imported
    without a GL in that case; what is wrong is reported when something is to be filmed. Does nothing where
    MUJOCO_GL is unset.
    """
    if "mujoco" in sys.modules or not os.environ.get("MUJOCO_GL"):
        return
    wanted = os.environ["MUJOCO_GL"]
    platform = os.environ.get("PYOPENGL_PLATFORM")
    try:
        import mujoco
    except Exception:
        _restore("PYOPENGL_PLATFORM", platform)
        os.environ["MUJOCO_GL"] = _NO_GL
        try:
            import mujoco  # noqa: F401
        finally:
            os.environ["MUJOCO_GL"] = wanted


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def quiet_warnings() -> None:
    """MuJoCo writes its warnings to stderr and to a file in the working folder; make them debug lines."""
    import mujoco

    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda text: _log.debug("%s", text))
