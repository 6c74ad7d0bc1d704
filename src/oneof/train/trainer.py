"""Trains one trial: with recorded steps on a GPU, else step by step."""

from torch import Tensor

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
    method, device = trial.method, trial.data.weight.device
    on_device = isinstance(trial.data.x, Tensor) and isinstance(trial.data.sets, Tensor)  # and dense
    recordable = device.type == "cuda" and on_device
    with (
        trial.checkpoint_in_use(),
        threads(method.thread_count()),
        EpochProgress(type(method).__name__, method.epochs, method.verbose > 0) as trial.progress,
        seeded(seed_for(trial.setup.seed, "noise"), device),
        cudnn_flags(method.deterministic),
    ):
        run_epochs(RecordedRun(trial) if recordable else TrainingRun(trial))
    return trial
