"""What callbacks cost 4,096 environments: without a hook of episodes, and with on_episode_end."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from mimickit.envs.base_env import BaseEnv, DoneFlags
from mimickit.media import Callback, Episode, Run
from mimickit.media.callback_env import CallbackEnv
from mimickit.media.store import MediaStore
from tests.benchmarks.bench_engine import make_env
from tests.benchmarks.timing import Row, at_most, in_turns

NUM_ENVS = 4096
ROUNDS, WARMUP = 25, 15


class Ends(Callback):
    """Looks at the end of every episode."""

    def __init__(self) -> None:
        self.count, self.total = 0, 0.0

    def on_episode_end(self, episode: Episode, env_index: int) -> None:
        self.count += 1
        self.total += episode.episode_return


def stepper(env: BaseEnv) -> Callable[[], None]:
    """A function that takes a step in all environments, as an agent does, and begins new episodes."""
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        action = 0.3 * torch.randn(NUM_ENVS, env.action_space.shape[0], generator=generator)
        done = env.step(action)[2]
        env.reset(torch.nonzero(done != DoneFlags.NULL).squeeze(-1))

    return step


def run() -> list[Row]:
    """The two rows of callbacks: the same environments stepped in turns, bare and with callbacks around them."""
    ends, inner = Ends(), make_env(NUM_ENVS)
    with tempfile.TemporaryDirectory() as folder:

        def around(callbacks: Sequence[Callback]) -> CallbackEnv:
            return CallbackEnv(inner, callbacks, Run(Path(folder), inner, MediaStore(Path(folder))))

        ways = {"none": inner, "idle": around([Callback(), Callback(), Callback()]), "ends": around([ends])}
        spent = in_turns({name: stepper(env) for name, env in ways.items()}, rounds=ROUNDS, warmup=WARMUP)
    rate = {name: f"{NUM_ENVS / seconds:,.0f} steps/s" for name, seconds in spent.items()}
    each = ends.count / (ROUNDS + WARMUP)

    def against_none(name: str, what: str, bound: float) -> Row:
        return at_most(what, measured=rate[name], baseline=f"no callbacks {rate['none']}",
                       ratio=spent[name] / spent["none"], bound=bound)  # fmt: skip

    return [
        against_none("idle", "4,096 envs, callbacks without a hook of episodes", 1.01),
        against_none("ends", f"4,096 envs, on_episode_end ({each:.0f} a step)", 1.05),
    ]


if __name__ == "__main__":
    from tests.benchmarks.timing import table

    torch.set_num_threads(1)
    print(table(run()))
