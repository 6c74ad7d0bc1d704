"""Training: the loop, batches, checkpoints, and where and how to compute."""

from oneof.train.batch import Batch, Data

__all__ = ["Batch", "Data"]
