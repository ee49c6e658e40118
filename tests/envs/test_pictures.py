"""render(): single pictures of the present state, which disturb nothing."""

import numpy as np
import torch

from mimickit.envs.base_env import EnvMode
from tests.envs.test_filming import make, run
from tests.video.films import read_frames


def test_pictures_are_of_the_environments_that_are_asked_for():
    env = make(None, n=3)
    run(env, 5)
    pictures = env.render()
    assert [picture.shape for picture in pictures] == [(96, 128, 3)] * 3
    assert all(picture.dtype == np.uint8 and picture.std() > 5 for picture in pictures)
    (second,) = env.render([1])
    assert np.abs(second.astype(int) - pictures[1]).mean() < 2.0
    assert np.abs(pictures[0].astype(int) - pictures[1]).mean() > 0.5  # other moments of the clip
    env.close()


def test_a_picture_is_a_frame_of_the_film(tmp_path):
    env = make(tmp_path, n=2, video={"camera": "side", "quality": "high"})
    env.set_mode(EnvMode.TEST)
    env.reset()
    pictures = [env.render([0])[0]]
    for _ in range(5):
        env.step(torch.zeros(2, 28))
        pictures.append(env.render([0])[0])
    env.set_mode(EnvMode.TRAIN)
    (clip,) = env.pop_media()["test_video"]
    frames = read_frames(clip.path)
    assert len(frames) == len(pictures)
    for frame, picture in zip(frames, pictures, strict=True):
        assert np.abs(frame.astype(int) - picture).mean() < 4.0  # what H.264 loses
    env.close()


def test_pictures_show_the_ghost_and_overlays():
    plain, ghost = make(None, n=1), make(None, n=1, video={"ghost": "beside", "overlay": "true"})
    shown = []
    for env in (plain, ghost):
        env.reset()
        shown.append(env.render()[0].astype(int))
        env.close()
    assert np.abs(shown[0] - shown[1]).mean() > 2.0


def test_rendering_is_invisible_to_the_physics():
    traces = []
    for renders in (False, True):
        env = make(None, n=2)
        trace = run(env, 10)
        if renders:
            env.render()
        trace += run(env, 10)
        traces.append(trace)
        env.close()
    assert all(torch.equal(a, b) for a, b in zip(*traces, strict=True))
