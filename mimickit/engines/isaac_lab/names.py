"""Words that the Isaac Lab engine's parts share, without anything of Isaac Lab."""

NEWTON, PHYSX = "newton", "physx"
PHYSICS = ("auto", NEWTON, PHYSX)
INSTALL = (
    "pip install -r requirements.txt -r requirements-isaaclab.txt, then "
    "pip install --no-deps --ignore-requires-python isaaclab==3.0.0"
)
