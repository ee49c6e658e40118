"""Which tests are filmed, and which episodes of training in between."""

from mimickit.video.config import VideoConfig


class FilmSchedule:
    """Counts tests and samples against every, final and train_every of a VideoConfig."""

    def __init__(self, config: VideoConfig) -> None:
        self._config = config
        self._tests = 0  # that could have been filmed
        self._due_at = 0.0  # samples
        self._is_due = False

    def takes_test(self, *, is_last: bool) -> bool:
        """Whether the test that begins now is filmed; is_last: training has ended before it."""
        number, every = self._tests, self._config.every
        self._tests += 1
        return bool(every and number % every == 0) or (is_last and self._config.final)

    def see_progress(self, samples: int) -> None:
        """Training has taken so many samples."""
        every = self._config.train_every
        if every is not None and samples >= self._due_at:
            self._is_due, self._due_at = True, samples + every

    def takes_episode(self) -> bool:
        """Whether the episode of training that begins now is filmed."""
        is_due, self._is_due = self._is_due, False
        return is_due
