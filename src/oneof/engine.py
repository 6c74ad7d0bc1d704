"""The training loop: the only one, for every method, device and phase."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from oneof.augment import VIEWS
from oneof.features import Scaler

if TYPE_CHECKING:
    from oneof.base import PartialLabelClassifier
    from oneof.checkpoint import Checkpoint
    from oneof.progress import Progress


@dataclass(frozen=True)
class Data:
    """Training rows on the device, once. Leading axes (trials) may stand before the rows."""

    x: Tensor  # (..., N, *shape)
    candidates: Tensor  # (..., N, K), boolean
    weight: Tensor  # (..., N)
    scaler: Scaler

    def __len__(self) -> int:
        return self.candidates.shape[-2]

    @property
    def n_classes(self) -> int:
        """K, the number of classes."""
        return self.candidates.shape[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self.x.shape[self.candidates.dim() - 1 :])

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of the mathematics."""
        return self.weight.dtype


@dataclass(frozen=True)
class Batch:
    """The rows of one step: their views, candidate sets and numbers."""

    views: list[Tensor]  # each (..., B, *shape)
    candidates: Tensor  # (..., B, K), boolean
    index: Tensor  # (..., B)
    epoch: int

    @property
    def x(self) -> Tensor:
        """The first view, the one that label tables follow."""
        return self.views[0]

    def take(self, table: Tensor) -> Tensor:
        """Read these rows (..., B, C) of a table (..., N, C)."""
        return table.gather(-2, self._rows(table))

    def put(self, table: Tensor, values: Tensor) -> None:
        """Write these rows of a table; values carry no gradient."""
        table.scatter_(-2, self._rows(table), values.detach().to(table.dtype))

    def dirichlet(self, concentration: Tensor) -> Tensor:
        """Draw a Dirichlet sample (..., K), differentiable in its concentration."""
        sample: Tensor = torch.distributions.Dirichlet(concentration, validate_args=False).rsample()
        return sample

    def _rows(self, table: Tensor) -> Tensor:
        return self.index.unsqueeze(-1).expand(*self.index.shape, table.shape[-1])


@dataclass(frozen=True)
class Setup:
    """What is decided before a training begins."""

    seed: int
    held_out: Tensor  # numbers of the rows kept for validation
    scaler: Scaler


@dataclass
class State:
    """Where a training stands: all that is neither a weight nor a label table."""

    epoch: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = -1
    best_score: float = float("-inf")
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def stopped(self, patience: int | None) -> bool:
        """Tell whether the score has not risen for ``patience`` epochs."""
        return patience is not None and self.best_epoch >= 0 and self.epoch - 1 - self.best_epoch >= patience


def train(
    method: "PartialLabelClassifier",
    data: Data,
    setup: Setup,
    score: Callable[[], float] | None = None,
    checkpoint: "Checkpoint | None" = None,
    progress: "Progress | None" = None,
    on_epoch: Callable[[int], None] | None = None,
) -> State:
    """Train ``method`` on ``data`` for ``method.epochs`` epochs, or until ``score`` stops rising.

    With a ``score`` (of held-out rows, higher is better) the weights of the best epoch are kept. A checkpoint
    that exists is continued. The order of rows comes from a CPU generator, so that every device sees the same.
    """
    order = torch.Generator().manual_seed(seed_for(setup.seed, "order"))
    optimizer = torch.optim.SGD(method.parameter_groups(), lr=method.lr, momentum=method.momentum)
    state = State()
    with seeded(seed_for(setup.seed, "noise"), data.weight.device):
        if checkpoint is not None:
            state = checkpoint.restore(method, optimizer, order) or state
        while state.epoch < method.epochs and not state.stopped(method.patience):
            loss = _run_epoch(method, data, optimizer, order, state.epoch)
            state.history.setdefault("loss", []).append(loss)
            if score is not None:
                _keep_best(method, state, score())
            if on_epoch is not None:
                on_epoch(state.epoch)
            state.epoch += 1
            finished = state.epoch == method.epochs or state.stopped(method.patience)
            if checkpoint is not None:
                checkpoint.save(method, optimizer, order, setup, state, force=finished)
            if progress is not None:
                progress.update(state, finished)
    for name, tensor in method.weights().items():
        if name in state.best_weights:
            tensor.copy_(state.best_weights[name])
    return state


def _run_epoch(
    method: "PartialLabelClassifier",
    data: Data,
    optimizer: torch.optim.Optimizer,
    order: torch.Generator,
    epoch: int,
) -> float:
    """Pass over the rows once, in random order; return the mean loss, read back once."""
    for module in method.modules():
        module.train()
    method.start_epoch(epoch, data)
    size = min(method.batch_size, len(data))
    shuffled = torch.randperm(len(data), generator=order).to(data.weight.device)
    total = torch.zeros((), dtype=data.dtype, device=data.weight.device)
    steps = len(data) // size  # the remainder is dropped: every step has the same shape
    for k in range(steps):
        index = shuffled[k * size : (k + 1) * size]
        batch = make_batch(data, index, epoch, method.views)
        weight = data.weight[index]
        for losses in losses_of(method.step(batch)):
            loss = (weight * losses).sum() / weight.sum().clamp_min(1e-12)
            optimizer.zero_grad(set_to_none=True)  # a network that a loss does not reach stays as it is
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        total += loss.detach()
    return float(total / steps)


def losses_of(step: Tensor | Iterable[Tensor]) -> Iterable[Tensor]:
    """A step returns its losses (..., B), or yields several: the weights are updated at each."""
    return (step,) if isinstance(step, Tensor) else step


def make_batch(data: Data, index: Tensor, epoch: int, views: str | None) -> Batch:
    """Take the rows ``index`` of the data and make their views."""
    x = data.scaler.load(data.x[index], data.dtype)
    versions = [x] if views is None else VIEWS[views](x)
    return Batch(versions, data.candidates[index], index, epoch)


def _keep_best(method: "PartialLabelClassifier", state: State, score: float) -> None:
    state.history.setdefault("validation_score", []).append(score)
    if score > state.best_score:
        state.best_epoch, state.best_score = state.epoch, score
        state.best_weights = {name: tensor.clone() for name, tensor in method.weights().items()}


def resolve_device(name: str) -> torch.device:
    """Turn "auto", "cpu", "cuda" or "cuda:1" into a device that is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device is {name!r}, but must be 'auto', 'cpu', 'cuda' or 'cuda:1'") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device is {name!r}, but torch sees {torch.cuda.device_count()} GPUs here; use 'cpu' or 'auto'"
        )
    return device


def seed_for(seed: int, purpose: str) -> int:
    """Split one seed by purpose, so that changing one use of chance leaves the others as they were."""
    return int.from_bytes(sha256(f"{seed} {purpose}".encode()).digest()[:7])


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block and give its random state back afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with so many CPU threads inside the block; None changes nothing."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def evaluating(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Run networks in evaluation mode without gradients, then put their modes back."""
    modes = [(module, module.training) for module in modules]
    for module, _ in modes:
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.train(mode)
