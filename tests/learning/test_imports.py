"""learning/ knows nothing of filming or physics: read from its imports."""

import ast
from pathlib import Path

import pytest

import mimickit.learning

FILES = sorted(Path(mimickit.learning.__path__[0]).rglob("*.py"))
ALLOWED = {"learning", "envs", "loggers", "media", "util"}


def _imports(tree: ast.AST) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_imports_point_down_and_away_from_filming(path: Path) -> None:
    for name in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        assert parts[0] not in {"mujoco", "cv2", "imageio_ffmpeg", "newton", "isaaclab"}, name
        if parts[0] == "mimickit":
            assert parts[1] in ALLOWED, name
            assert "record" not in name.lower(), name
            assert parts[:2] != ["mimickit", "envs"] or parts[2] == "base_env", name
