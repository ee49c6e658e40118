"""Opens a GL context without a display, when something is first to be drawn, on the thread that draws.

mujoco.Renderer takes whatever GL was chosen while mujoco was imported, which without a display and without
MUJOCO_GL is one that can't work. Here the choice is made late and by trying.
"""

import atexit
import contextlib
import importlib
import logging
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from mimickit.video.errors import VideoError

_OFF = ("disable", "disabled", "off", "false", "0")
_WINDOWED = ("glfw", "glx", "wgl", "enable", "enabled", "on", "true", "1")
_INSTALL_HINT = (
    "EGL comes with the GPU's driver, or to draw on the CPU with: apt-get install libegl1 libgl1-mesa-dri; "
    "OSMesa with: apt-get install libosmesa6. MUJOCO_GL=egl or MUJOCO_GL=osmesa asks for one of them only"
)
logging.getLogger("OpenGL.acceleratesupport").setLevel(logging.WARNING)  # says that it does without an extra
_before_exit: list[Callable[[], None]] = []


class GLContext(Protocol):
    """An off-screen GL context of mujoco's."""

    def make_current(self) -> None:
        """Make it the calling thread's context."""

    def free(self) -> None:
        """Give it back, on the thread that uses it."""


def candidate_backends() -> list[str]:
    """GL backends to try, in order; only MUJOCO_GL where it is set. Raises VideoError if it allows none."""
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if wanted in _OFF:
        raise VideoError(f"no GL to draw with: MUJOCO_GL={wanted} turns drawing off; unset it to film")
    if wanted and wanted not in (*_WINDOWED, "egl", "osmesa", "cgl"):
        raise VideoError(f"no GL to draw with: MUJOCO_GL={wanted} is not known; expected egl, osmesa or glfw")
    if platform.system() != "Linux":
        return ["cgl", "glfw"] if platform.system() == "Darwin" else ["glfw"]
    if wanted in ("egl", "osmesa"):
        return [wanted]
    if wanted and has_display:
        return ["glfw"]
    return ["egl", "osmesa", "glfw"] if has_display else ["egl", "osmesa"]


def open_context(width: int, height: int) -> GLContext:
    """A GL context made current on the calling thread. Raises VideoError saying what was tried and what to
    install.
    """
    failures = []
    for name in candidate_backends():
        try:
            with _undone_on_failure(name):
                context: GLContext = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
                context.make_current()
        except Exception as error:  # every driver fails in its own way
            # PyOpenGL without its library trips over None
            missing = isinstance(error, AttributeError | ImportError) and "NoneType" in str(error)
            cause = "its library can't be loaded" if missing else str(error) or type(error).__name__
            failures.append(f"{name}: {cause}")
            continue
        _arm_exit()
        return context
    raise VideoError(f"no GL to draw with ({'; '.join(failures)}). {_INSTALL_HINT}")


@contextlib.contextmanager
def _undone_on_failure(name: str) -> Iterator[None]:
    """A backend that fails leaves PyOpenGL bound to it; put modules and environment back so that the next can
    be tried.
    """
    variables = {key: os.environ.get(key) for key in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    modules = set(sys.modules)
    if name == "osmesa":
        os.environ["MUJOCO_GL"] = name  # MuJoCo's C code reads it to find OSMesa's functions
    try:
        yield
    except BaseException:
        for key, value in variables.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        for module in set(sys.modules) - modules:
            if module.split(".")[0] == "OpenGL" or module == f"mujoco.{name}" or module.startswith(f"mujoco.{name}."):
                del sys.modules[module]
        raise


def call_before_exit(callback: Callable[[], None]) -> None:
    """Have callback called when the interpreter ends, while contexts opened so far or later still work."""
    _before_exit.append(callback)
    _arm_exit()


def _arm_exit() -> None:
    # mujoco.egl registers the end of EGL when it opens its first context, and what was registered last is
    # called first
    atexit.unregister(_run_before_exit)
    atexit.register(_run_before_exit)


def _run_before_exit() -> None:
    for callback in _before_exit:
        callback()
