"""record_and_save_video() with Stable-Baselines3: its policies, wrappers, environments and logger."""

import io
import json

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from PIL import Image
from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, Logger, Video, configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mimickit import record_and_save_video
from mimickit.interop.gymnasium_env import GymnasiumEnv
from mimickit.interop.sb3 import SB3VecEnv
from tests.interop.conftest import MODEL
from tests.interop.pictures import LENGTH, Square
from tests.interop.test_record import FRAMES, SHORT, check
from tests.video.films import describe, read_frames


@pytest.fixture
def trained(make_walk):
    """PPO, trained for a moment in four normalised environments."""
    venv = VecNormalize(VecMonitor(SB3VecEnv(make_walk(4, **SHORT))))
    return PPO("MlpPolicy", venv, n_steps=8, batch_size=16, n_epochs=1, seed=0, device="cpu").learn(32)


def test_an_algorithm_and_its_policy_in_a_normalised_vector_of_four(trained, tmp_path):
    """One video, in a new nested folder, without a logger; the statistics stay."""
    venv, folder = trained.get_env(), tmp_path / "a" / "b" / "c"
    before = [venv.obs_rms.mean.copy(), venv.obs_rms.count, venv.ret_rms.count, venv.training]
    clip = record_and_save_video(folder, trained, venv)
    check(clip, clip.episodes[0].length + 1)
    assert [path.name for path in folder.glob("*.mp4")] == [clip.path.name] == ["humanoid_walk_000000000032.mp4"]
    assert clip.samples == 32
    after = [venv.obs_rms.mean, venv.obs_rms.count, venv.ret_rms.count, venv.training]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    again = record_and_save_video(folder, trained.policy, venv)
    np.testing.assert_array_equal(read_frames(clip.path), read_frames(again.path))


def test_our_model_sees_what_it_was_trained_on_below_a_normaliser(trained, tmp_path):
    clip = record_and_save_video(tmp_path, MODEL, trained.get_env())
    check(clip)
    assert clip.mean_return > 0.9 * 15  # with normalised observations it would stumble


def test_a_vector_of_ours_made_of_single_environments(make_walk, tmp_path):
    venv = DummyVecEnv([lambda: GymnasiumEnv(make_walk(1, **SHORT))] * 2)
    check(record_and_save_video(tmp_path, MODEL, venv))


@pytest.mark.parametrize("vector", [DummyVecEnv, SubprocVecEnv])
def test_any_vector_that_renders(tmp_path, vector):
    venv = vector([Square, Square])
    venv.metadata["render_fps"] = 12
    clip = record_and_save_video(tmp_path, lambda obs: np.ones((2, 2)), venv, {"env": 1, "num_episodes": 2})
    check(clip, 2 * LENGTH)
    assert clip.fps == 12
    assert [(episode.env_id, episode.length, episode.outcome) for episode in clip.episodes] == [(1, LENGTH, "done")] * 2
    venv.close()


def test_its_logger_has_the_film_and_keeps_what_training_has_recorded(trained, tmp_path):
    class Own(KVWriter):
        """A format that somebody wrote for their own logs."""

        written: list = []  # noqa: RUF012

        def write(self, key_values, key_excluded, step=0):
            self.written.append((key_values, step))

        def close(self):
            pass

    folder = tmp_path / "log"
    logger = configure(str(folder), ["tensorboard", "json", "csv", "log"])
    logger.output_formats.append(Own())
    logger.record("train/loss", 0.5)  # not dumped yet
    clip = record_and_save_video(tmp_path, trained, trained.get_env(), {"step": 7}, logger)
    assert logger.name_to_value == {"train/loss": 0.5}
    logger.dump(8)
    logger.close()

    events = EventAccumulator(str(folder), size_guidance={"images": 0}).Reload()
    (image,) = events.Images("policy_video")
    assert (image.step, image.width, image.height) == (7, clip.width, clip.height)
    gif = Image.open(io.BytesIO(image.encoded_image_string))
    assert gif.n_frames == clip.num_frames
    first = read_frames(clip.path)[0].astype(float)
    assert np.abs(np.asarray(gif.convert("RGB"), dtype=float) - first).mean() < 12  # of 255: a GIF has few colours
    rows = [json.loads(line) for line in (folder / "progress.json").read_text().splitlines()]
    assert rows == [{"policy_video": str(clip.path)}, {"train/loss": 0.5}]
    assert (folder / "progress.csv").read_text().split() == ["train/loss", "0.5"]
    (values, step), _ = Own.written
    assert step == 7
    assert isinstance(values["policy_video"], Video)
    assert values["policy_video"].frames.shape == (1, clip.num_frames, 3, clip.height, clip.width)


def test_a_logger_without_outputs_is_no_mistake(trained, tmp_path):
    logger = Logger(folder=None, output_formats=[])
    assert record_and_save_video(tmp_path, trained, trained.get_env(), None, logger).path.is_file()


def test_the_film_is_playable_for_others(trained, tmp_path):
    clip = record_and_save_video(tmp_path, trained, trained.get_env(), {"max_steps": 3})
    told = describe(clip.path)
    for word in ("h264", "yuv420p", "128x96"):
        assert word in told
    assert len(read_frames(clip.path)) == clip.num_frames <= FRAMES
