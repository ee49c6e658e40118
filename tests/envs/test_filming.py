"""TEST mode films itself: what is on the film, what its side file says, and that the physics never notices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from mimickit.engines.engine import ObjType
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.base_env import EnvMode
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.media.types import Video
from mimickit.video.config import VideoConfig
from tests.video.films import read_frames

ENV_FILE = "data/envs/deepmimic_humanoid_walk_env.yaml"
CHAR_FILE = "data/assets/humanoid/humanoid.xml"
SMALL = {"width": 128, "height": 96}


def make(out_dir: Path | None, *, n: int = 4, video: dict[str, Any] | None = None, **changes: Any) -> DeepMimicEnv:
    config = {**yaml.safe_load(Path(ENV_FILE).read_text()), **changes}
    filming = VideoConfig.from_mapping(
        {**SMALL, "enabled": out_dir is not None, "out_dir": out_dir, **(video or {})}, "test"
    )
    engine = MujocoEngine({"control_mode": "pos", "control_freq": 30, "sim_freq": 120}, num_envs=n, video=filming)
    return DeepMimicEnv(config, engine, num_envs=n, seed=5)


def run(env: DeepMimicEnv, steps: int, *, noise: float = 0.3) -> list[torch.Tensor]:
    """Observations, rewards and states of a rollout whose falls are reset."""
    g = torch.Generator().manual_seed(7)
    trace = [env.reset()]
    for _ in range(steps):
        action = noise * torch.randn(env.num_envs, env.action_space.shape[0], generator=g)
        obs, reward, done, _ = env.step(action)
        trace += [obs, reward, done, env._engine.get_state()]
        env.reset(torch.nonzero(done).squeeze(-1))
    return trace


def film(env: DeepMimicEnv, steps: int) -> Video:
    env.set_mode(EnvMode.TEST)
    run(env, steps)
    env.set_mode(EnvMode.TRAIN)
    (media,) = env.pop_media()["test_video"]
    assert isinstance(media, Video)
    return media


def side_file(media: Video) -> dict[str, Any]:
    assert media.side_file is not None
    return json.loads(media.side_file.read_text())


@pytest.mark.parametrize(
    "video",
    [
        {},
        {"ghost": "beside", "overlay": "true", "camera": "orbit", "env": 2},
        {"ghost": "on", "overlay": "all", "views": "track,first_person", "envs": "0,3"},
        {"pick": "best,worst", "quality": "draft"},
        {"defer": True, "quality": "draft"},
    ],
)
def test_filming_is_invisible_to_the_physics(tmp_path: Path, video: dict[str, Any]) -> None:
    """Training, a whole test phase with resets, and training again: bit for bit the same with and without video."""
    traces = []
    for out_dir in (None, tmp_path):
        env = make(out_dir, video=video)
        trace = run(env, 20)
        for mode in (EnvMode.TEST, EnvMode.TRAIN):
            env.set_mode(mode)
            trace += run(env, 50 if mode is EnvMode.TEST else 20)
        traces.append(trace)
        assert bool(env.pop_media(wait=True)) == (out_dir is not None)
        env.close()
    assert len(traces[0]) == len(traces[1])
    assert all(torch.equal(a, b) for a, b in zip(*traces, strict=True))


def test_training_renders_nothing(tmp_path: Path) -> None:
    env = make(tmp_path)
    run(env, 10)
    assert env._engine._recorder is None
    assert env.pop_media() == {}
    env.close()
    assert list(tmp_path.iterdir()) == []


def test_one_episode_is_its_first_state_and_every_step(tmp_path: Path) -> None:
    env = make(tmp_path, n=1, episode_length=10 / 30, enable_early_termination=False)
    env.set_mode(EnvMode.TEST)
    env.reset()
    for _ in range(10):
        env.step(torch.zeros(1, 28))
    env.reset(torch.tensor([0]))  # the next episode begins, and is not on the film
    env.set_mode(EnvMode.TRAIN)
    (media,) = env.pop_media()["test_video"]
    assert len(read_frames(media.path)) == 11
    (episode,) = [e for e in side_file(media)["episodes"] if e["num_frames"]]
    assert (episode["first_frame"], episode["num_frames"], episode["length"]) == (0, 11, 10)
    assert episode["outcome"] == "time"


def test_boundaries_of_episodes_are_in_the_side_file(tmp_path: Path) -> None:
    env = make(tmp_path, n=2, episode_length=0.2, enable_early_termination=False, video={"env": 1})
    media = film(env, 18)
    facts = side_file(media)
    episodes = [e for e in facts["episodes"] if e["num_frames"]]
    assert [e["first_frame"] for e in episodes] == [0, 7, 14]
    assert [e["length"] for e in episodes] == [6, 6, 6]
    assert facts["num_frames"] == len(read_frames(media.path)) == 21
    assert facts["env_id"] == 1
    assert facts["seed"] == 5
    assert all(e["return"] > 0 for e in episodes)


def test_a_clip_lasts_as_long_as_its_control_steps(tmp_path: Path) -> None:
    env = make(tmp_path, n=1, enable_early_termination=False)
    media = film(env, 30)
    assert media.fps == 30
    assert abs(len(read_frames(media.path)) / media.fps - 30 / 30) <= 1 / 30 + 1e-6


def test_a_lower_frame_rate_keeps_real_time(tmp_path: Path) -> None:
    env = make(tmp_path, n=1, enable_early_termination=False, video={"fps": 15})
    media = film(env, 30)
    assert media.fps == 15
    assert abs(len(read_frames(media.path)) / 15 - 1.0) <= 1 / 15 + 1e-6


def test_the_fall_is_on_film_and_its_return_in_the_side_file(tmp_path: Path) -> None:
    env = make(tmp_path, n=1)
    env.set_mode(EnvMode.TEST)
    env.reset()
    total, steps = 0.0, 0
    while True:
        _, reward, done, _ = env.step(torch.zeros(1, 28))
        total, steps = total + float(reward), steps + 1
        if int(done):
            break
    env.set_mode(EnvMode.TRAIN)
    episode = side_file(env.pop_media()["test_video"][0])["episodes"][0]  # type: ignore[arg-type]
    assert episode["outcome"] == "fail"
    assert episode["return"] == pytest.approx(total, rel=1e-5)
    assert (episode["length"], episode["num_frames"]) == (steps, steps + 1)


def test_the_reference_ghost_is_seen_and_changes_nothing_else(tmp_path: Path) -> None:
    pictures = {}
    for ghost in ("off", "beside", "on"):
        env = make(tmp_path / ghost, n=1, video={"ghost": ghost})
        pictures[ghost] = read_frames(film(env, 4).path)[2].astype(int)
        env.close()
    for ghost in ("beside", "on"):
        assert (np.abs(pictures[ghost] - pictures["off"]).max(-1) > 25).mean() > 0.0005, ghost


def test_a_reference_that_the_environment_shows_stands_where_it_says(tmp_path: Path) -> None:
    near = make(tmp_path / "near", n=1, visualize_ref_char=True)
    off = make(tmp_path / "off", n=1, visualize_ref_char=True, ref_char_offset=[0.0, 0.0, 0.7])
    shown = []
    for env in (near, off):
        env.set_mode(EnvMode.TEST)
        env.reset()
        shown.append(env._film_ghost(0)[0][0] - env._reference.body_pos[0, 0].numpy())
        assert env._engine.get_video_recorder().wants_ghost
        env.close()
    np.testing.assert_allclose(shown[0], 0.0)
    np.testing.assert_allclose(shown[1], np.tile([0.0, 0.0, 0.7], (15, 1)), atol=1e-6)


def test_clips_of_one_folder_are_all_kept(tmp_path: Path) -> None:
    for _ in range(2):
        env = make(tmp_path, n=1)
        film(env, 3)
        film(env, 3)
        env.close()
    clips = sorted(tmp_path.glob("*.mp4"))
    assert len(clips) == 4
    assert all(len(read_frames(clip)) >= 4 for clip in clips)


def test_every_second_test_is_filmed(tmp_path: Path) -> None:
    env = make(tmp_path, video={"every": 2, "quality": "draft"})
    filmed = []
    for number in range(4):
        env.set_training_progress(number)
        env.set_mode(EnvMode.TEST)
        run(env, 2)
        env.set_mode(EnvMode.TRAIN)
        filmed.append([media.path.name for media in env.pop_media().get("test_video", [])])
    env.close()
    assert filmed == [["humanoid_walk_000000000000.mp4"], [], ["humanoid_walk_000000000002.mp4"], []]
    page = (tmp_path / "index.html").read_text()
    assert all(name in page for names in filmed for name in names)


def test_best_and_worst_are_those_of_all_environments(tmp_path: Path) -> None:
    env = make(tmp_path, video={"pick": "best,worst", "quality": "draft"}, episode_length=0.5)
    env.set_mode(EnvMode.TEST)
    env.reset()
    returns, going = torch.zeros(4), torch.ones(4, dtype=torch.bool)
    g = torch.Generator().manual_seed(1)
    while going.any():
        _, reward, done, _ = env.step(0.5 * torch.randn(4, env.action_space.shape[0], generator=g))
        returns += torch.where(going, reward, 0.0)
        going &= done == 0
        env.reset(torch.nonzero(done).squeeze(-1))
    env.set_mode(EnvMode.TRAIN)
    media = env.pop_media()
    env.close()
    for pick, index in (("best", int(returns.argmax())), ("worst", int(returns.argmin()))):
        (clip,) = media[f"test_video_{pick}"]
        assert isinstance(clip, Video)
        facts = side_file(clip)
        assert facts["env_id"] == index
        assert facts["episodes"][0]["return"] == pytest.approx(float(returns[index]), abs=1e-4)


def test_film_number_4095_of_4096_shows_its_own_character(tmp_path: Path) -> None:
    def picture(env_id: int, n: int, height: float) -> np.ndarray:
        engine = MujocoEngine(
            {"control_mode": "pos", "control_freq": 30, "sim_freq": 120}, num_envs=n,
            video=VideoConfig(enabled=True, out_dir=tmp_path / f"{n}_{env_id}_{height}", env=env_id, **SMALL),
        )  # fmt: skip
        for _ in range(n):
            engine.create_obj(engine.create_env(), ObjType.ARTICULATED, CHAR_FILE, "c", start_pos=(0, 0, 0.9))
        engine.initialize_sim()
        engine.set_root_pos(torch.tensor([env_id]), 0, torch.tensor([0.0, 0.0, height]))
        with engine.recording():
            engine.step()
        clip = engine.get_video_recording()
        assert clip is not None
        assert clip.env_id == env_id
        return read_frames(clip.path)[0].astype(int)

    many, alone, other = picture(4095, 4096, 1.3), picture(0, 1, 1.3), picture(0, 1, 0.9)
    assert np.abs(many - alone).max() <= 2
    assert np.abs(other - alone).max() > 50
