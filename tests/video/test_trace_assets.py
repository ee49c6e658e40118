"""A trace needs nothing beside it: meshes, textures and included files go with it, each once."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.video.config import VideoConfig
from mimickit.video.pages.mesh_thinning import thinned
from mimickit.video.pages.replay_geometry import MeshStore, figure_of
from mimickit.video.snapshot import ActorSpec
from mimickit.video.traces.refilm import film, trace_footage
from mimickit.video.traces.trace import EnvCast, Trace, TraceHeader, TraceWriter
from tests.anim.robots import write_robot, write_stl
from tests.anim.usd_robots import require_usd, write_walker

MJCF = """<mujoco>
  <compiler meshdir="parts" texturedir="looks"/>
  <include file="more/assets.xml"/>
  <worldbody><body name="base" pos="0 0 0.5"><freejoint/>
    <geom type="mesh" mesh="box" material="paint"/>
    <body name="arm" pos="0 0 0.3"><joint axis="0 1 0"/><geom type="mesh" mesh="box" material="tiles"/></body>
  </body></worldbody>
</mujoco>"""
ASSETS = """<mujoco><asset>
  <texture name="paint" type="2d" file="paint.png"/><material name="paint" texture="paint"/>
  <texture name="tiles" type="cube" fileright="paint.png" fileleft="tiles.png" fileup="tiles.png" filedown="tiles.png"
    filefront="tiles.png" fileback="tiles.png"/><material name="tiles" texture="tiles"/>
  <mesh name="box" file="box.stl"/>
</asset></mujoco>"""


def write_mjcf(folder: Path) -> Path:
    for name, color in (("paint", (0, 0, 220)), ("tiles", (0, 200, 0))):  # BGR
        (folder / "looks").mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / f"looks/{name}.png"), np.full((8, 8, 3), color, dtype=np.uint8))
    write_stl(folder / "parts/box.stl", (0.3, 0.2, 0.25))
    (folder / "more").mkdir()
    (folder / "more/assets.xml").write_text(ASSETS)
    (folder / "robot.xml").write_text(MJCF)
    return folder / "robot.xml"


def write_urdf(folder: Path) -> Path:
    write_stl(folder / "meshes/thigh.stl")
    return write_robot(folder / "urdf/hopper.urdf", thigh='<mesh filename="package://hopper/meshes/thigh.stl"/>')


def write_usd(folder: Path) -> Path:
    require_usd()
    folder.mkdir(parents=True)
    return write_walker(folder / "walker.usda", meters=0.01, up="Y")


def write_description(folder: Path) -> Path:
    write_urdf(folder)
    (folder / "hopper.yaml").write_text("file: urdf/hopper.urdf\nhome: {hip: 0.4}\n")
    return folder / "hopper.yaml"


def frames(folder: Path) -> list[NDArray[np.uint8]]:
    return [cv2.imread(str(path)) for path in sorted(folder.glob("*.png"))]


@pytest.mark.parametrize(
    ("write", "num_files"), [(write_mjcf, 4), (write_urdf, 1), (write_usd, 1), (write_description, 1)]
)
def test_a_trace_is_filmed_again_when_the_files_are_gone(
    tmp_path: Path, write: Callable[[Path], Path], num_files: int
) -> None:
    path = write(tmp_path / "original")
    config = VideoConfig(format="png", width=160, height=120, camera="side", quality="draft", out_dir=tmp_path)
    engine = MujocoEngine({"control_mode": "pos", "control_freq": 30, "sim_freq": 120}, num_envs=1, video=config)
    engine.create_obj(engine.create_env(), ObjType.ARTICULATED, path, "robot", start_pos=(0, 0, 0.8))
    engine.create_obj(0, ObjType.ARTICULATED, path, "twin", start_pos=(0, 0.7, 0.8), color=(0.2, 0.2, 1.0))
    engine.initialize_sim()
    with engine.recording(tmp_path / "live") as recorder:
        for _ in range(4):
            engine.step()
    engine.close()
    clip = recorder.last_clip
    assert clip is not None
    assert clip.trace is not None
    live = frames(clip.path)
    shutil.rmtree(tmp_path / "original")
    with Trace(clip.trace) as trace:
        (again_clip,) = film(trace_footage(trace), config, tmp_path / "again")
        again = frames(again_clip.path)
    assert len(live) == len(again) == 5
    assert all(np.array_equal(one, other) for one, other in zip(live, again, strict=True))
    with zipfile.ZipFile(clip.trace) as archive:
        names = [name for name in archive.namelist() if name.startswith("assets/")]
    assert len(names) == len(set(names)) == 1 + num_files  # for two actors


def test_textures_are_seen_in_the_film_and_as_one_colour_on_the_page(tmp_path: Path) -> None:
    path = write_mjcf(tmp_path / "r")
    cast = EnvCast(0, (ActorSpec("r", path),), (2,))
    figure = figure_of(cast, 0, None, MeshStore())
    base, arm = (geom["rgba"][:3] for geom in figure["geoms"])
    np.testing.assert_allclose(base, np.array([220, 0, 0]) / 255, atol=0.01)
    assert arm[1] > 0.6


def test_a_killed_writer_s_trace_holds_the_characters(tmp_path: Path) -> None:
    path = write_urdf(tmp_path / "hopper")
    writer = TraceWriter(tmp_path / "a.trace.part", TraceHeader(0.1, "x", (EnvCast(0, (ActorSpec("r", path),), (5,)),)))
    writer.abort()
    mesh = (tmp_path / "hopper/meshes/thigh.stl").read_bytes()
    shutil.rmtree(tmp_path / "hopper")
    with Trace(tmp_path / "a.trace.part") as trace:
        (actor,) = trace.casts[0].actors
    assert list(actor.asset_files.values()) == [mesh]


def test_meshes_are_thinned_out_for_a_page_and_keep_their_shape() -> None:
    count = 200  # of a sphere's rings
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, count), np.linspace(0, np.pi, count))
    vertices = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], axis=-1).reshape(-1, 3)
    corner = (np.arange(count - 1)[:, None] * count + np.arange(count - 1)).ravel()
    upper = np.stack([corner, corner + count, corner + 1], axis=1)
    lower = np.stack([corner + 1, corner + count, corner + count + 1], axis=1)
    faces = np.concatenate([upper, lower])
    found, thin = thinned(vertices, faces, 4000)
    assert 2000 < len(thin) <= 4000
    assert thin.max() < len(found)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=0.02)
    a, b, c = (found[thin[:, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    assert area == pytest.approx(4 * np.pi, rel=0.05)
    outwards = (np.cross(b - a, c - a) * (a + b + c)).sum(1)
    before = (np.cross(*(vertices[faces[:, k]] - vertices[faces[:, 0]] for k in (1, 2))) * vertices[faces[:, 0]]).sum()
    assert np.mean(np.sign(outwards) == np.sign(before)) > 0.98  # faces keep their side
    same, kept = thinned(vertices, faces, len(faces))
    assert same is vertices
    assert kept is faces
