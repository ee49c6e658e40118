"""The characters in a trace: their texts, and the meshes, textures and included files they refer to, each kept once."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimickit.anim.char_file import source_of
from mimickit.anim.source import CharacterError, CharacterSource
from mimickit.video.errors import VideoError
from mimickit.video.snapshot import ActorSpec


class AssetPacker:
    """Collects what a trace holds of its actors."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        """Contents of the archive's members, by name."""
        self._packed: dict[str, dict[str, Any]] = {}

    def add(self, actor: ActorSpec) -> dict[str, Any]:
        """What the header says of the actor's character: asset, asset_file and files. Raises VideoError."""
        path = str(actor.asset_file)
        if path not in self._packed:
            try:
                self._packed[path] = self._pack(_source(actor), len(self._packed))
            except CharacterError as error:
                raise VideoError(str(error)) from error
        return self._packed[path]

    def _pack(self, source: CharacterSource, number: int) -> dict[str, Any]:
        name = f"assets/{number}/{source.path.name}"
        self.members[name] = source.text.encode()
        files = {}
        for key, value in source.files.items():
            content = value if isinstance(value, bytes) else value.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:16]
            files[key] = f"assets/files/{digest}{'' if isinstance(value, bytes) else value.suffix}"
            self.members[files[key]] = content
        return {"asset": name, "asset_file": str(source.path.resolve()), "files": files}


class AssetReader:
    """Reads what AssetPacker packed."""

    def __init__(self, archive: Any) -> None:
        self._archive = archive
        self._read: dict[str, bytes] = {}

    def fields(self, actor: Mapping[str, Any]) -> dict[str, Any]:
        """Those of ActorSpec that say what the actor's character is."""
        files = {key: self._content(name) for key, name in actor.get("files", {}).items()}
        text = self._archive.read(actor["asset"]).decode("utf-8")
        return {"asset_file": actor["asset_file"], "asset_text": text, "asset_files": files}

    def _content(self, name: str) -> bytes:
        if name not in self._read:
            self._read[name] = self._archive.read(name)
        return self._read[name]


def _source(actor: ActorSpec) -> CharacterSource:
    if actor.asset_text is None:
        return source_of(actor.asset_file)
    return CharacterSource(Path(actor.asset_file), actor.asset_text, actor.asset_files)
