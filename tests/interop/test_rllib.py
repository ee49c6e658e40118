"""RLlib in its own environment: clips in the results of training and of evaluation, and in Ray's W&B logger."""

import pytest

pytest.importorskip("ray")
import ray

from mimickit.config import project_root
from mimickit.media.types import Video
from tests.house.wandb_reader import read_history
from tests.video.films import read_frames


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    ray.init(num_cpus=5, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": str(project_root())}})
    yield
    ray.shutdown()


@pytest.mark.timeout(600)
def test_two_env_runners_bring_clips_of_training_and_evaluation(cluster, tmp_path):
    from tests.interop.rllib_ppo import train

    results = train(tmp_path, 2)
    for result in results:
        for part, runners in ((result, {"env_runner_1", "env_runner_2"}), (result["evaluation"], {"env_runner_1"})):
            media = part["episode_media"]["episode_video"]
            assert {item.path.parent.name for item in media} == runners
            for item in media:
                assert isinstance(item, Video)
                item.validate("episode_video")
                assert len(read_frames(item.path)) == item.num_frames > 1
    paths = [item.path for result in results for item in result["episode_media"]["episode_video"]]
    assert len(set(paths)) == len(paths) == 4
    assert list((tmp_path / "final").glob("*.mp4"))


@pytest.mark.timeout(600)
def test_rays_wandb_logger_has_them(cluster, tmp_path):
    from tests.interop.rllib_ppo import tune

    tune(tmp_path, 2)
    rows = read_history(tmp_path)
    for key, count in (("episode_media/episode_video", 2), ("evaluation/episode_media/episode_video", 1)):
        assert [row[f"{key}/count"] for row in rows if f"{key}/count" in row] == [count] * 2
    copies = list(tmp_path.glob("wandb/offline-run-*/files/media/videos/**/*.mp4"))
    assert len(copies) == 6
    assert all(read_frames(copy) for copy in copies)
