"""The conventional way to train on images, as a yardstick: ordinary PyTorch without anything of the engine.

Workers of a DataLoader make three views of every image, one by one, with torchvision's transforms (where it is not
installed, with the same operations of Pillow). Networks are float32 and contiguous; every view passes them by
itself; the loss is read after every step; the judged rows come from a DataLoader without augmentation. Only the
formulas (`oneof.functional`) and the networks are shared.
"""

import random
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, repeat
from math import ceil
from typing import Any

import numpy as np
import torch
from speed_measure import BATCH, Figures, Shape, forget, gpu_memory, random_problem
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from oneof import functional as F
from oneof.augment.policies import SUB_POLICIES, setting
from oneof.data import PartialLabels
from oneof.nn.networks import NETWORKS

try:
    from PIL import Image, ImageEnhance, ImageOps
except ImportError:
    Image = None

# Workers, and the batches that are skipped and counted; more are skipped than eager workers hold ready.
AMOUNTS = {"cuda": (8, 20, 30), "cpu": (2, 1, 3)}
Step = Callable[[Any], Any]


class Images(Dataset):
    """Images with their views, candidate sets and numbers."""

    def __init__(self, parts: list[PartialLabels], views: list[list[Step]]) -> None:
        self.x = np.concatenate([part.x for part in parts])
        self.candidates = torch.tensor(np.concatenate([part.candidates for part in parts]))
        self.views = views

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[list[Tensor], Tensor, int]:
        image = Image.fromarray(self.x[i])
        return [_apply(steps, image) for steps in self.views], self.candidates[i], i


class Proden:
    """PRODEN: one network, and weights of the labels."""

    def __init__(self, shape: Shape, candidates: Tensor) -> None:
        self.f = _network(shape, shape.classes)
        self.networks = [self.f]
        self.w = F.uniform(candidates)

    def loss(self, views: list[Tensor], candidates: Tensor, index: Tensor) -> Tensor:
        """Return the mean loss of a batch."""
        u = [self.f(x) for x in views]
        w = self.w[index]
        self.w[index] = F.posterior(u[0].detach(), candidates)
        return F.mean([F.soft_cross_entropy(each, w) for each in u]).mean()


class Cc:
    """CC: one network, and no table."""

    def __init__(self, shape: Shape, candidates: Tensor) -> None:
        self.f = _network(shape, shape.classes)
        self.networks = [self.f]

    def loss(self, views: list[Tensor], candidates: Tensor, index: Tensor) -> Tensor:
        """Return the mean loss of a batch."""
        return F.mean([F.candidate_nll(self.f(x), candidates) for x in views]).mean()


class Idgp:
    """IDGP after its warm-up: two networks, and what g has said at the first visit."""

    a, b, gamma, d = 10.0, 1.0, 0.7, 0.5
    likelihood_weight, distractor_prior_weight = 0.01, 0.1

    def __init__(self, shape: Shape, candidates: Tensor) -> None:
        self.f, self.g = _network(shape, shape.classes), _network(shape, 2 * shape.classes)
        self.networks = [self.f, self.g]
        self.v = torch.zeros(len(candidates), 2 * shape.classes, device=candidates.device)

    def loss(self, views: list[Tensor], candidates: Tensor, index: Tensor) -> Tensor:
        """Return the mean loss of a batch."""
        scale = self.a, self.b, self.gamma
        past = F.log_prior_weight(self.v[index], *scale)
        losses = []
        for x in views:
            u, v = self.f(x), self.g(x)
            w = F.dirichlet_weights(F.log_prior_weight(u.detach(), *scale), candidates)
            log_weights = F.log_mix(past, F.log_prior_weight(v.detach(), *scale), self.d)
            A, B = (self.distractor_prior_weight * each for each in F.beta_weights(*log_weights.chunk(2, -1)))
            l = F.label_scores(u, *scale, candidates)  # noqa: E741
            s = F.distractor_logits(*v.chunk(2, -1), *scale, candidates)
            nll = F.generation_nll(l, s, candidates)
            losses.append(self.likelihood_weight * nll + F.prior_nll(l, s, w, A, B))
        return F.mean(losses).mean()


LEARNERS = {"idgp": Idgp, "proden": Proden, "cc": Cc}


def measure_conventional(shape: Shape, method: str, device: str) -> Figures:
    """Return seconds an epoch, judging included, scaled from some batches."""
    if Image is None:
        return {"error": "needs Pillow, which is not installed"}
    forget()
    views, source = make_views(shape)
    problem = random_problem(shape)
    workers, skipped, counted = AMOUNTS[device]
    with torch.device(device):
        learner = LEARNERS[method](shape, torch.tensor(problem.train.candidates))
    parameters = [parameter for network in learner.networks for parameter in network.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-3)

    def step(batch: Any) -> None:
        images, candidates, index = batch
        loss = learner.loss([x.to(device) for x in images], candidates.to(device), index.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    def judge(batch: Any) -> None:
        with torch.no_grad():
            learner.f(batch[0][0].to(device)).softmax(-1).cpu()

    load = partial(DataLoader, num_workers=workers, pin_memory=device == "cuda")
    size = min(BATCH, shape.rows)
    training = load(Images([problem.train], views), size, shuffle=True, drop_last=True)
    a_step = _seconds_per_batch(training, step, skipped, counted)
    learner.f.eval()
    judged = load(Images([problem.validation, problem.test], [views[0][-1:]]), BATCH)  # only made tensors
    a_judgement = _seconds_per_batch(judged, judge, skipped, counted)
    seconds = shape.steps * a_step + ceil((shape.validation + shape.test) / BATCH) * a_judgement
    figures = {"seconds": seconds, "scaled_from_steps": counted, "workers": workers, "transforms": source}
    return figures | gpu_memory(device)


def _seconds_per_batch(loader: Iterable[Any], work: Step, skipped: int, counted: int) -> float:
    """Return the mean time of so many batches after the first; each ends with a value that is read back."""
    batches = chain.from_iterable(repeat(loader))
    for _ in range(skipped):
        work(next(batches))
    begun = time.perf_counter()
    for _ in range(counted):
        work(next(batches))
    return (time.perf_counter() - begun) / counted


def _network(shape: Shape, outputs: int) -> torch.nn.Module:
    return NETWORKS[shape.network]((_channels(shape), *shape.row[:2]), outputs)


def _channels(shape: Shape) -> int:
    return shape.row[2] if len(shape.row) == 3 else 1


def _apply(steps: list[Step], image: Any) -> Any:
    for step in steps:
        image = step(image)
    return image


# --- views: one weak and two strong ones; AutoAugment on three channels -----------------------------------


def make_views(shape: Shape) -> tuple[list[list[Step]], str]:
    """Return the steps of every view, the last of which makes a tensor, and whose they are."""
    channels = _channels(shape)
    try:
        weak, policy, finish = _torchvision(shape.row[0], channels)
        source = "torchvision"
    except (ImportError, RuntimeError):  # not installed, or built for another torch
        weak, policy, finish = [_crop, _flip], _auto_augment, _finish
        source = "Pillow"
    strong = [*weak, *[policy] * (channels == 3), _cutout]
    return [[*weak, finish], [*strong, finish], [*strong, finish]], source


def _torchvision(size: int, channels: int) -> tuple[list[Step], Step, Step]:
    from torchvision import transforms as T  # noqa: PLC0415  optional

    weak = [T.RandomCrop(size, padding=4, padding_mode="reflect"), T.RandomHorizontalFlip()]
    finish = T.Compose([T.ToTensor(), T.Normalize([0.5] * channels, [0.25] * channels)])
    return weak, T.AutoAugment(T.AutoAugmentPolicy.CIFAR10), finish


def _cutout(image: Any) -> Any:
    width, height = image.size
    image = image.copy()
    image.paste(Image.new(image.mode, (16, 16)), (random.randrange(width) - 8, random.randrange(height) - 8))
    return image


def _crop(image: Any) -> Any:
    pixels = np.asarray(image)
    padded = np.pad(pixels, [(4, 4), (4, 4), (0, 0)][: pixels.ndim], mode="reflect")
    top, left = random.randint(0, 8), random.randint(0, 8)
    return Image.fromarray(padded[top : top + len(pixels), left : left + pixels.shape[1]])


def _flip(image: Any) -> Any:
    return ImageOps.mirror(image) if random.random() < 0.5 else image


def _finish(image: Any) -> Tensor:
    pixels = np.asarray(image, dtype=np.float32).reshape(image.height, image.width, -1)
    return (torch.from_numpy(pixels.transpose(2, 0, 1) / 255) - 0.5) / 0.25


def _auto_augment(image: Any) -> Any:
    for name, probability, level in random.choice(SUB_POLICIES):
        operation, centre, spread = setting(name, level)
        if random.random() < probability:
            image = _OPERATIONS[operation](image, centre + random.choice((-1, 1)) * spread)
    return image


def _affine(image: Any, *rows: float) -> Any:
    return image.transform(image.size, Image.Transform.AFFINE, rows, fillcolor=(128, 128, 128))


_OPERATIONS: dict[str, Callable[[Any, float], Any]] = {
    "rotate": lambda image, degrees: image.rotate(degrees, fillcolor=(128, 128, 128)),
    "shear_x": lambda image, share: _affine(image, 1, share, 0, 0, 1, 0),
    "shear_y": lambda image, share: _affine(image, 1, 0, 0, share, 1, 0),
    "translate_x": lambda image, share: _affine(image, 1, 0, share * image.width, 0, 1, 0),
    "translate_y": lambda image, share: _affine(image, 1, 0, 0, 0, 1, share * image.height),
    "posterize": lambda image, bits: ImageOps.posterize(image, int(bits)),
    "solarize": lambda image, level: ImageOps.solarize(image, level),
    "autocontrast": lambda image, _: ImageOps.autocontrast(image),
    "equalize": lambda image, _: ImageOps.equalize(image),
    "brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "color": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
}
