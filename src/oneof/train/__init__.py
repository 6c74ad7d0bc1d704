"""Training: the loop, batches, checkpoints, and where and how to compute.

A trial is prepared by an estimator, trained here, and finished by the estimator::

    trial = model.prepare(X, y)
    model.finish(train(trial))
"""

from oneof.errors import Paused, TrainingDiverged
from oneof.train.batch import Batch, Data
from oneof.train.parallel.grouping import train_together
from oneof.train.trainer import train
from oneof.train.trial import Trial

__all__ = ["Batch", "Data", "Paused", "TrainingDiverged", "Trial", "train", "train_together"]
