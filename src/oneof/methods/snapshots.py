"""Snapshots of Eq. 10 and 11 of the IDGP paper: what a network said about each row at an earlier epoch."""

from typing import NamedTuple

import torch
from torch import Tensor

from oneof import functional as F
from oneof.train.batch import Batch


class Snapshot(NamedTuple):
    """Logs of what Eq. 10 and 11 mix, of each row at its first visit from an epoch on."""

    table: Tensor  # (..., N, C)
    taken: Tensor  # (..., N, 1), boolean: whether the row has been visited since
    all_taken: bool  # whether this is known of all rows: then nothing is written any more
    epoch: int
    share: float  # of the snapshot in the mixture

    def is_complete(self) -> bool:
        """Tell whether all rows have their snapshot."""
        return self.all_taken or (self.share > 0 and bool(self.taken.all()))

    def mixed_with(self, present: Tensor, batch: Batch) -> Tensor:
        """Return the present logs (views, ..., B, C), from ``epoch`` on mixed with the snapshot.

        Rows that have no snapshot yet get one, from the first view.
        """
        if self.share == 0 or batch.before(self.epoch):
            return present
        snapshot = batch.take(self.table)
        if not self.all_taken:
            snapshot = torch.where(batch.take(self.taken), snapshot, present[0])
            batch.put(self.table, snapshot)
            batch.put(self.taken, torch.ones_like(batch.take(self.taken)))
        return F.log_mix(snapshot, present, self.share)
