"""Trains one trial: with recorded steps on a GPU, else step by step."""

from collections.abc import Iterator
from contextlib import contextmanager

from oneof.io.progress import EpochProgress
from oneof.train.loop import TrainingRun, run_epochs
from oneof.train.parallel.graphs import RecordedRun
from oneof.train.runtime import cudnn_flags, seed_for, seeded, threads
from oneof.train.trial import Trial


def train(trial: Trial) -> Trial:
    """Train a prepared trial for all its epochs, or until its score stops rising, and return it.

    With validation rows the weights of the best epoch are kept. A checkpoint that exists is continued. When
    ``pause`` says so after an epoch, the checkpoint is written and `Paused` raised. A training that diverges ends,
    and ``trial.diverged`` is the error that `finish` raises.
    """
    with trial.checkpoint_in_use(), progress_of(trial), surroundings(trial):
        run_epochs(RecordedRun(trial) if trial.recordable else TrainingRun(trial))
    return trial


@contextmanager
def progress_of(trial: Trial) -> Iterator[None]:
    """Show inside the block how far a trial is, where that is wanted."""
    method = trial.method
    with EpochProgress(type(method).__name__, method.epochs, method.verbose > 0) as trial.progress:
        yield


@contextmanager
def surroundings(trial: Trial) -> Iterator[None]:
    """Compute inside the block with the threads, the random numbers and the libraries' modes of a trial."""
    method, device = trial.method, trial.data.weight.device
    with (
        threads(method.thread_count()),
        seeded(seed_for(trial.setup.seed, "noise"), device),
        cudnn_flags(method.deterministic),
    ):
        yield
