"""Batch normalisation by the moments of whole steps, of which every worker has some rows."""

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from oneof.train.workers.group import Group


class SharedNorm(_BatchNorm):
    """A normalisation of torch whose moments are those of the rows of all workers.

    torch's own SyncBatchNorm refuses CPUs, and parts without rows.
    """

    group: Group

    def forward(self, x: Tensor) -> Tensor:
        """Return x (B, C, ...) normalised channel by channel."""
        tracks = self.training and self.track_running_stats
        if not self.training and self.running_mean is not None:
            return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        axes = [axis for axis in range(x.dim()) if axis != 1]
        shape = [-1 if axis == 1 else 1 for axis in range(x.dim())]
        values = x if x.dtype == torch.float64 else x.float()
        mean, count = self._mean(values, axes)
        centred = values - mean.view(shape)
        variance, _ = self._mean(centred.square(), axes)
        if tracks:
            self._track(mean.detach(), variance.detach(), count)
        out = centred * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            out = out * self.weight.view(shape) + self.bias.view(shape)
        return out.to(x.dtype)

    def _mean(self, values: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
        """Return the mean (C,) over all workers, and of how many values it is ()."""
        own = values.new_full((1,), values.numel() // values.shape[1])
        total = self.group.sum(torch.cat([values.sum(axes), own]))
        return total[:-1] / total[-1], total[-1].detach()

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running averages as torch does: of variances without bias."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_((variance * count / (count - 1)).to(self.running_var.dtype), share)


def share_norms(module: nn.Module, group: Group) -> None:
    """Let every batch normalisation inside a module see the rows of all workers; weights and names stay."""
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            layer.__class__ = SharedNorm
            layer.group = group  # type: ignore[assignment]
