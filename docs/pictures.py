"""Makes the pictures of the docs, but for the README's first, with the program itself: python -m docs.pictures

Needs a Chromium for the two pages; without one their pictures stay as they are.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2

from mimickit.video.config import VideoConfig
from mimickit.video.traces.compare import compare, find_contender
from mimickit.video.traces.refilm import film, trace_footage
from mimickit.video.traces.trace import Trace

OUT = Path(__file__).parent / "film"
SIZE = {"width": 480, "height": 270}
MODES = ("track", "side", "front", "top", "orbit", "chase", "first_person")
ROBOTS = ("g1", "go1")
STRIPS = {  # s into the clip
    "humanoid_spinkick": (0.0, 0.3, 0.5, 0.63, 0.77, 1.0), "humanoid_cartwheel": (0.0, 0.9, 1.2, 1.5, 1.8, 2.5),
    "humanoid_backflip": (0.5, 0.8, 0.93, 1.07, 1.2, 1.6),
}  # fmt: skip
PATH = """
- {time: 0, eye: [4, -5, 2.5], target: [1, 0, 0.9], fov: 40}
- {time: 3, eye: [7, 2.5, 1.2], target: [3, 0, 0.9], fov: 45}
"""
PICTURES: dict[str, dict[str, Any]] = {
    **{f"camera_{name}": {"camera": name, "ghost": "off"} for name in MODES},
    "camera_still": {"camera": "still", "position": (2.5, -4.5, 1.6), "target": (2.5, 0, 0.9)},
    "views_split": {"views": "track,side,front,top"},
    "views_pip": {"views": "track,first_person,top", "view_layout": "pip"},
    "envs_tiles": {"envs": "0,1,2,3"},
    "envs_scene": {"envs": "0,1,2,3,4", "env_layout": "scene"},
    "envs_overlaid": {"envs": "0,1,2", "env_layout": "overlaid"},
    "ghost_on": {"ghost": "on"},
    "ghost_beside": {"ghost": "beside"},
    "overlay_line": {"overlay": "time,episode,return,samples,run"},
    "overlay_chart": {"overlay": "chart"},
    "overlay_contacts": {"overlay": "contacts"},
    "overlay_key_bodies": {"overlay": "key_bodies"},
    "overlay_error": {"overlay": "error"},
    "overlay_all": {"overlay": "all"},
    "quality_draft": {"quality": "draft"},
    "quality_standard": {"quality": "standard"},
    "quality_high": {"quality": "high"},
}


def run_policy(folder: Path, model: str, **flags: str) -> Path:
    """Test a shipped policy; returns the trace of its first five environments."""
    words = {"mode": "test", "video": "true", "video_quality": "draft", "num_envs": "5", "test_episodes": "5",
             "video_envs": "0,1,2,3,4", "model_file": f"data/models/{model}/model.pt", "out_dir": str(folder / model),
             "env.episode_length": "4", **flags}  # fmt: skip
    command = [sys.executable, "run.py", *(word for key, value in words.items() for word in (f"--{key}", value))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next((folder / model / "videos").glob("*.trace"))


def last_frame(folder: Path) -> Any:
    """The last picture of a folder of frames."""
    return cv2.imread(str(max(folder.glob("*.png"))))


def save(name: str, picture: Any) -> None:
    """Write a picture of the page."""
    cv2.imwrite(str(OUT / f"{name}.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 88])
    print(OUT / f"{name}.jpg")


def shoot(trace_file: Path, work: Path, name: str, options: dict[str, Any]) -> None:
    """One picture: the last frame of a film of three seconds."""
    config = VideoConfig.from_mapping({**SIZE, "format": "png", "trace": False, **options}, name)
    ids = config.envs or (0,)
    with Trace(trace_file) as trace:
        (clip,) = film(trace_footage(trace, ids, first=20, stop=81, run="walk_seed0"), config, work / name)
    save(name, last_frame(clip.path))


def pages(traces: list[Path]) -> None:
    """The replay page and the page of a run's clips, in a browser."""
    from mimickit.video.pages.replay import write_replay
    from mimickit.video.pages.run_index import write_index
    from tests.video.browser import Browser, find_browser

    if find_browser() is None:
        print("no browser: the pictures of the pages stay as they are")
        return
    work = traces[0].parent
    pages = {
        "replay": (write_replay(traces[:1], work / "replay.html"), "#t=2.4&paused=1"),
        "index": (write_index(work), ""),
    }
    for name, (page, words) in pages.items():
        with tempfile.TemporaryDirectory() as profile:
            browser = Browser(Path(profile), size=(1000, 600))
            try:
                browser.open(page, words)
                browser.wait_for("document.readyState === 'complete'")
                for _ in range(20):  # software rendering takes a moment to settle
                    picture = browser.screenshot()
                save(f"page_{name}", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
            finally:
                browser.close()


def strip(run_folder: Path, times: Sequence[float], rows: slice, columns: slice) -> Any:
    """Parts of a film's frames at some times (s), beside each other."""
    files = sorted((run_folder / "videos").glob("*/*.png"))
    return cv2.hconcat([cv2.imread(str(files[round(time * 30)]))[rows, columns] for time in times])


def robots(work: Path) -> None:
    """Strips of films of the robots, as they are put down; pip fetches their files."""
    for robot in ROBOTS:
        command = [sys.executable, "run.py", "--mode", "view", "--env_config", "data/envs/char_stand_test_env.yaml",
                   "--env.char_file", f"robot:unitree_{robot}", "--env.episode_length", "2.5",
                   "--video_size", "640x480", "--video_format", "png", "--video_quality", "high",
                   "--out_dir", str(work / robot)]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        save(f"robot_{robot}", strip(work / robot, (0.0, 0.8, 1.6, 2.4), slice(60, 420), slice(140, 500)))


def policies(work: Path) -> None:
    """Strips of films of the shipped policies, one below the other."""
    strips = []
    for model, times in STRIPS.items():
        flags = {"video_format": "png", "video_envs": "0", "video_quality": "high", "video_camera": "side"}
        run_policy(work, model, video_size="640x360", **flags)
        strips.append(strip(work / model, times, slice(30, 330), slice(200, 440)))
    save("policies", cv2.vconcat(strips))


def main() -> None:
    """Make all of them, or those named on the command line."""
    OUT.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        walk = run_policy(work, "humanoid_walk", video_poster="true")
        run = run_policy(work, "humanoid_run", video_envs="0")
        (work / "path.yaml").write_text(PATH)
        pictures = {**PICTURES, "camera_dolly": {"camera": "dolly", "camera_path": work / "path.yaml"}}
        for name, options in pictures.items():
            if not wanted or name in wanted:
                shoot(walk, work, name, options)
        if not wanted or "compare" in wanted:
            config = VideoConfig.from_mapping({**SIZE, "format": "png", "overlay": "time,return", "max_seconds": 2}, "")
            contenders = [find_contender(walk, "walk"), find_contender(run, "run")]
            (clip,) = compare(contenders, config, work / "compare")
            save("compare", last_frame(clip.path))
        if not wanted or "pages" in wanted:
            pages([walk, run])
        if not wanted or "robots" in wanted:
            robots(work)
        if not wanted or "policies" in wanted:
            policies(work)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
