"""Descriptions of characters, and robots by name, fetched by the real pip, from a folder or wherever it finds them."""

import hashlib
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from mimickit.anim.char_file import load_spec
from mimickit.anim.description import robot_names
from mimickit.anim.mjcf import read_mjcf
from mimickit.anim.source import CharacterError
from tests.anim.robots import LEG, write_robot, write_stl

WHEEL = "toy_robots-1.2.0-py3-none-any.whl"
FILE = "toy_robots/urdf/hopper.urdf"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which pip finds one wheel with a robot in it, and a cache folder of the test's own."""
    folder = tmp_path / "index"
    folder.mkdir()
    mesh = write_stl(tmp_path / "thigh.stl")
    text = LEG.replace("{thigh}", '<mesh filename="package://toy_robots/meshes/thigh.stl"/>')
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr(FILE, text)
        wheel.write(mesh, "toy_robots/meshes/thigh.stl")
        wheel.writestr("toy_robots/__init__.py", "raise SystemExit")
        facts = "Metadata-Version: 2.1\nName: toy-robots\nVersion: 1.2.0\n"
        wheel.writestr("toy_robots-1.2.0.dist-info/METADATA", facts)
        wheel.writestr("toy_robots-1.2.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("MIMICKIT_CACHE", str(tmp_path / "cache"))
    return folder


def describe(tmp_path: Path, index: Path, **changes: object) -> Path:
    digest = hashlib.sha256((index / WHEEL).read_bytes()).hexdigest()
    content = {"package": "toy-robots", "version": "1.2.0", "sha256": digest, "file": FILE, **changes}
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_wheel_is_fetched_once_and_nothing_of_it_is_run(tmp_path: Path, index: Path) -> None:
    path = describe(tmp_path, index)
    assert [body.name for body in read_mjcf(path).bodies] == ["base", "trunk", "thigh", "wheel", "foot"]
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.name == "toy-robots-1.2.0"
    assert not list(folder.rglob("*.py"))
    (index / WHEEL).unlink()
    assert load_spec(path).compile().nmesh == 1


def test_a_wheel_of_other_content_is_refused(tmp_path: Path, index: Path) -> None:
    with pytest.raises(CharacterError, match=r"toy\.yaml: sha256 of .*: expected 0123, found [0-9a-f]{64}"):
        read_mjcf(describe(tmp_path, index, sha256="0123"))
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, index: Path) -> None:
    path = describe(tmp_path, index)
    wheel = (index / WHEEL).read_bytes()
    (index / WHEEL).unlink()
    with pytest.raises(CharacterError) as error:
        read_mjcf(path)
    for word in (str(path), "pip download --no-deps toy-robots==1.2.0", f"into {tmp_path}/cache"):
        assert word in str(error.value)
    (tmp_path / "cache" / WHEEL).write_bytes(wheel)  # as the error says
    assert read_mjcf(path).num_dofs == 2


def test_a_file_that_the_wheel_lacks(tmp_path: Path, index: Path) -> None:
    with pytest.raises(CharacterError, match=r"toy\.yaml: file: no 'toy_robots/no.xml' in the package toy-robots-1"):
        read_mjcf(describe(tmp_path, index, file="toy_robots/no.xml"))


def test_several_that_fetch_at_once_all_have_it(tmp_path: Path, index: Path) -> None:
    path = describe(tmp_path, index)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(read_mjcf(path).num_dofs)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2, 2, 2]
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["toy-robots-1.2.0"]


def test_a_description_adds_drives_and_a_pose(tmp_path: Path) -> None:
    write_robot(tmp_path / "robot/hopper.urdf", thigh='<mesh filename="package://parts/thigh.stl"/>')
    write_stl(tmp_path / "some/where/thigh.stl")
    content = {
        "file": "robot/hopper.urdf",
        "packages": {"parts": "some/where"},
        "drives": [
            {"joints": ["hip"], "stiffness": 70, "damping": 3, "torque_limit": 25, "armature": 0.01},
            {"joints": ["sp.*"], "torque_limit": 5},
        ],
        "home": {"hip": 0.5, "spin": 2.0},
    }
    path = tmp_path / "hopper.yaml"
    path.write_text(yaml.safe_dump(content))
    info = read_mjcf(path)
    hip, spin = (joint for joint in info.joints if joint.dof_dim)
    values = [hip.stiffness, hip.damping, hip.torque_limit, hip.armature, spin.stiffness, spin.torque_limit]
    np.testing.assert_allclose(np.ravel(values), [70, 3, 25, 0.01, 10, 5])
    np.testing.assert_allclose(info.home[6:], [0.5, 2.0], atol=1e-6)
    # it stands on its wheel, 0.06 m about a place 0.2 m from the hip, which is 0.05 m above the root
    assert info.home[2] == pytest.approx(0.2 * np.cos(0.5) + 0.06 - 0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"file": 3}, ["file: expected the path"]),
        ({"file": "none.urdf"}, ["no such character file", "none.urdf"]),
        ({"fle": "x"}, ["unknown key 'fle'", "'file'"]),
        ({"package": "toy", "version": 1.2}, ["version: expected text in quotes, found 1.2"]),
        ({"drives": {"hip": 1}}, ["drives: expected a list"]),
        ({"drives": [{"joints": ["hipp"], "stiffness": 1}]}, ["no joint's name is 'hipp'", "'hip'"]),
        ({"drives": [{"joints": ["h("], "stiffness": 1}]}, ["'h('", "regular expression"]),
        ({"drives": [{"joints": ["hip"], "stiff": 1}]}, ["drives[0]", "unknown key 'stiff'", "'stiffness'"]),
        ({"drives": [{"joints": ["hip"], "damping": -1}]}, ["drives[0]", "damping: expected 0 or more"]),
        ({"drives": [{"stiffness": 1}]}, ["drives[0]", "joints: expected a list"]),
        ({"home": {"knee": 1}}, ["no joint's name is 'knee'"]),
        ({"home": {"hip": "low"}}, ["home: hip: expected a number, found 'low'"]),
        ({"home": [1]}, ["home: expected 'name: value' lines"]),
    ],
)
def test_mistakes_in_a_description_are_named(tmp_path: Path, changes: dict[str, object], words: list[str]) -> None:
    write_robot(tmp_path / "hopper.urdf")
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump({"file": "hopper.urdf", **changes}))
    with pytest.raises(CharacterError) as error:
        read_mjcf(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_an_unknown_robot_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(CharacterError, match=r"robot:unitree_g: no robot 'unitree_g'; did you mean 'unitree_g1'"):
        read_mjcf("robot:unitree_g")
    command = [sys.executable, "run.py", "--mode", "view", "--env_config", "data/envs/char_stand_test_env.yaml",
               "--env.char_file", "robot:g0", "--out_dir", str(tmp_path / "out")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--env.char_file: robot:g0: no robot 'g0'; known: unitree_g1, unitree_go1" in done.stderr + done.stdout


@pytest.mark.parametrize(("robot", "dofs", "mass"), [("unitree_g1", 29, 33.3), ("unitree_go1", 12, 12.7)])
def test_real_robots_by_name(robot: str, dofs: int, mass: float) -> None:
    assert robot in robot_names()
    try:
        info = read_mjcf(f"robot:{robot}")
    except CharacterError as error:
        if "couldn't fetch" not in str(error):
            raise
        pytest.skip(str(error))
    assert info.num_dofs == dofs
    assert sum(body.mass for body in info.bodies) == pytest.approx(mass, abs=0.1)
    for joint in info.joints:
        assert 0.0 < joint.torque_limit[0] < 200.0
        assert joint.stiffness[0] == (250.0 if "ankle" in joint.name else 2.0 * joint.torque_limit[0])
        assert joint.armature[0] > 0.0
        lower, upper = joint.limits[0]
        assert lower - 1e-6 <= info.home[6 + joint.dof_start] <= upper + 1e-6
