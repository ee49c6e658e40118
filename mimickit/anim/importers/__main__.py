"""python -m mimickit.anim.importers: the shipped humanoid clips, made again from where they come from."""

import argparse
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from mimickit.anim.char_model import CharModel
from mimickit.anim.importers.deepmimic_json import import_clip
from mimickit.anim.importers.humanoid_clips import HUMANOID_CLIPS
from mimickit.anim.motion import MotionError, save_motion
from mimickit.anim.source import CharacterError

_DATA = Path(__file__).resolve().parents[3] / "data"
_IN_WHEEL = "pybullet_data/data/motions"


def main(argv: list[str] | None = None) -> int:
    """Convert clips as the arguments say; 0, or 1 after an error told on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m mimickit.anim.importers",
        description="Convert the DeepMimic humanoid clips of the pybullet wheel "
        "(pip download --no-deps pybullet==3.2.7) to this project's motion files.",
    )
    parser.add_argument("--source", type=Path, required=True, help="the wheel, or a folder of humanoid3d_*.txt")
    parser.add_argument("--out", type=Path, default=_DATA / "motions/humanoid", help="folder for the .npz files")
    parser.add_argument("--char_file", type=Path, default=_DATA / "assets/humanoid/humanoid.xml")
    parser.add_argument("--clips", nargs="+", choices=sorted(HUMANOID_CLIPS), default=sorted(HUMANOID_CLIPS))
    args = parser.parse_args(argv)
    try:
        char = CharModel.from_file(args.char_file)
        read = _reader(args.source)
        args.out.mkdir(parents=True, exist_ok=True)
        for name in args.clips:
            text = read(f"humanoid3d_{name}.txt")
            motion = import_clip(text, char, HUMANOID_CLIPS[name], source=f"{args.source}: {name}")
            path = args.out / f"humanoid_{name}.npz"
            save_motion(path, motion)
            mode = motion.loop_mode.name.lower()
            print(f"{path}: {motion.num_frames} frames, {motion.length:.3f} s, {motion.fps:.2f} fps, {mode}")
    except (CharacterError, MotionError, OSError, KeyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _reader(source: Path) -> Callable[[str], str]:
    """A function that reads a clip's text by file name, out of a wheel or a folder."""
    if source.is_dir():
        return lambda name: (source / name).read_text(encoding="utf-8")
    try:
        archive = zipfile.ZipFile(source)
    except zipfile.BadZipFile as error:
        raise MotionError(f"{source}: expected the pybullet wheel or a folder of humanoid3d_*.txt: {error}") from None
    return lambda name: archive.read(f"{_IN_WHEEL}/{name}").decode("utf-8")


if __name__ == "__main__":
    sys.exit(main())
