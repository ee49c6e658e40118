"""Small robots in URDF, made to be looked into."""

from pathlib import Path

import numpy as np

LEG = """<?xml version="1.0"?>
<!-- a robot <robot> with one leg -->
<robot name="hopper">
  <material name="blue"><color rgba="0.1 0.2 0.9 1"/></material>
  <link name="base"/>
  <link name="trunk">
    <inertial><origin xyz="0 0 0.05"/><mass value="4.0"/>
      <inertia ixx="0.05" ixy="0.001" ixz="0" iyy="0.06" iyz="0" izz="0.04"/></inertial>
    <visual><geometry><box size="0.3 0.2 0.1"/></geometry><material name="blue"/></visual>
    <collision><geometry><box size="0.32 0.22 0.1"/></geometry></collision>
  </link>
  <link name="thigh">
    <inertial><origin xyz="0 0 -0.1" rpy="0 0.3 0"/><mass value="1.5"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.004"/></inertial>
    <visual><origin xyz="0 0 -0.1"/><geometry>{thigh}</geometry></visual>
    <collision><origin xyz="0 0 -0.1"/><geometry><cylinder radius="0.03" length="0.2"/></geometry></collision>
  </link>
  <link name="wheel">
    <inertial><mass value="0.5"/><inertia ixx="0.002" ixy="0" ixz="0" iyy="0.003" iyz="0" izz="0.002"/></inertial>
    <collision><origin rpy="1.5707963 0 0"/><geometry><cylinder radius="0.06" length="0.04"/></geometry></collision>
  </link>
  <link name="foot">
    <inertial><mass value="0.2"/><inertia ixx="0.0002" ixy="0" ixz="0" iyy="0.0002" iyz="0" izz="0.0002"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <joint name="trunk_fixed" type="fixed"><parent link="base"/><child link="trunk"/><origin xyz="0 0 0.1"/></joint>
  <joint name="hip" type="revolute"><parent link="trunk"/><child link="thigh"/><origin xyz="0.05 0 -0.05"/>
    <axis xyz="0 1 0"/><limit lower="-1.2" upper="0.8" effort="40" velocity="10"/>
    <dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="spin" type="continuous"><parent link="thigh"/><child link="wheel"/><origin xyz="0 0 -0.2"/>
    <axis xyz="0 1 0"/></joint>
  <joint name="foot_fixed" type="fixed"><parent link="wheel"/><child link="foot"/><origin xyz="0 0 -0.1"/></joint>
  <transmission name="t"><joint name="hip"/></transmission>
  <gazebo reference="foot"><mu1>1</mu1></gazebo>
</robot>
"""


def write_robot(path: Path, *, thigh: str = '<box size="0.05 0.05 0.2"/>', text: str = LEG) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace("{thigh}", thigh))
    return path


def write_stl(path: Path, size: tuple[float, float, float] = (0.05, 0.05, 0.2)) -> Path:
    """A box as a binary STL."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(size) / 2
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [corners[[a, b, c]] for a, b, c, d in quads] + [corners[[a, c, d]] for a, b, c, d in quads]
    record = np.dtype([("normal", "<f4", 3), ("points", "<f4", (3, 3)), ("attribute", "<u2")])
    triangles = np.zeros(len(faces), record)
    triangles["points"] = faces
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(80) + np.uint32(len(faces)).tobytes() + triangles.tobytes())
    return path
