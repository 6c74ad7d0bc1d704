"""What is measured: the cases of every section, the more important ones first."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

from speed_measure import BATCH, Figures, Shape, carry_out, measure, measure_apart, measure_gain
from speed_reference import measure_conventional

from oneof import METHODS

CIFAR = Shape("CIFAR-10, ResNet-32", (32, 32, 3), 10, "resnet32", 45_000, 5_000, 10_000)
FASHION = Shape("Fashion-MNIST, LeNet", (28, 28), 10, "lenet", 54_000, 6_000, 10_000)
LOST = Shape("Lost, linear", (108,), 16, "linear", 898, 112, 112)
MSRCV2 = Shape("MSRCv2, linear", (48,), 23, "linear", 1_406, 176, 176)
GROWING = Shape("table, linear", (50,), 10, "linear", 10_000, 1_000, 1_000)

TOGETHER = {CIFAR: 5, FASHION: 10}
STACKS = (5, 10, 60)
GROWTH = {"n": (10_000, 100_000, 1_000_000), "K": (10, 100, 1_000, 10_000), "T": (1, 4, 16, 64)}
CPU_STEPS = 4  # of an epoch on images, which would take an hour
RUNNER_EPOCHS = 500
SECTIONS = ("images", "reference", "tables", "growth")


class Case(NamedTuple):
    """A measurement, and its place in the tables."""

    section: str
    problem: str
    method: str
    form: str
    trials: int
    run: Callable[[], Figures]


def all_cases(device: str, share: float) -> list[Case]:
    """Return the cases of all sections in the order in which they are measured."""
    others = [name for name in METHODS if name != "idgp"]
    reference, tables, growth = (make(device, share) for make in (reference_cases, table_cases, growth_cases))
    if device == "cpu":
        return [*(_scaled_image(shape, name, share) for shape in TOGETHER for name in ("idgp", "cc")),
                *reference, *tables, *growth]  # fmt: skip
    image = partial(_image, share=share)
    return [
        *idgp_cases(image),
        *reference,
        *(image(shape, name, "one trial") for shape in TOGETHER for name in others),
        *tables,
        *growth,
        *(image(shape, name, "together", trials) for shape, trials in TOGETHER.items() for name in others),
    ]


# --- images -----------------------------------------------------------------------------------------------


def idgp_cases(image: Callable[..., Case]) -> Iterator[Case]:
    """IDGP in all its forms."""
    for shape, trials in TOGETHER.items():
        yield image(shape, "idgp", "one trial")
        yield image(shape, "idgp", "together", trials)
        yield image(shape, "idgp", "one trial, fp32", precision="fp32")
        yield image(shape, "idgp", "one trial, deterministic", deterministic=True)


def _image(shape: Shape, method: str, form: str, trials: int = 1, share: float = 1.0, **settings: Any) -> Case:
    """Three views, bfloat16, on the GPU. IDGP warms up until its snapshots are complete."""
    warm = 4 if method == "idgp" else 1
    settings = {"views": "weak+strong+strong", "precision": "bf16", "warm": warm} | settings
    run = partial(measure, shape.of(share), method, "cuda", trials, **settings)
    return Case("images", shape.name, method, form, trials, run)


def _scaled_image(shape: Shape, method: str, share: float) -> Case:
    """Three views on the CPU: an epoch of a few steps, scaled to a whole one."""
    whole = shape.of(share)
    part = whole.of(min(1.0, CPU_STEPS * BATCH / whole.rows))

    def run() -> Figures:
        figures = measure(part, method, "cpu", most=1, views="weak+strong+strong")
        scale = whole.steps / part.steps
        return figures | {"seconds": scale * figures["seconds"], "scaled_from_steps": part.steps}

    return Case("images", shape.name, method, "one trial", 1, run)


def reference_cases(device: str, share: float) -> Iterator[Case]:
    """The conventional way."""
    for shape in TOGETHER:
        for method in ("idgp", "proden"):
            run = partial(measure_conventional, shape.of(share), method, device)
            yield Case("reference", shape.name, method, "conventional", 1, run)


# --- tables -----------------------------------------------------------------------------------------------


def table_cases(device: str, share: float) -> Iterator[Case]:
    """One trial alone and stacks, with one thread and with two; on a GPU threads do not matter."""
    counts = (1, 2) if device == "cpu" else (1,)
    for shape, (method, cls), trials, threads in product((LOST, MSRCV2), METHODS.items(), (1, *STACKS), counts):
        views = "jitter+jitter+jitter" if cls.needs_views else None
        points = max(1, trials // 5)  # of a grid, with five seeds
        settings = {"most": 100, "enough": 0.3, "points": points, "views": views, "threads": threads}
        run = partial(measure, shape.of(share), method, device, trials, **settings)
        yield Case("tables", shape.name, method, f"threads: {threads}", trials, run)
    if device == "cpu":
        gain = partial(
            measure_gain, 2, LOST.of(share), "idgp", device, 30, most=200, enough=2, threads=1, points=12
        )
        yield Case("tables", LOST.name, "idgp", "two processes of 30, in turns with one alone", 60, gain)
        whole = partial(carry_out, max(1, round(share * RUNNER_EPOCHS)))
        yield Case("tables", LOST.name, "idgp", "by the runner, two workers", 60, whole)


# --- growth -----------------------------------------------------------------------------------------------


def growth_cases(device: str, share: float) -> Iterator[Case]:
    """Ever more rows, classes and trials."""

    @cache  # where the three lines meet
    def grown(method: str, n: int, K: int, T: int) -> Figures:
        shape = GROWING._replace(classes=K).of(share * n / GROWING.rows)
        return (measure_apart if device == "cpu" else measure)(shape, method, device, T, most=20)

    for method in ("idgp", "proden"):
        for variable, values in GROWTH.items():
            for value in values:
                sizes = {name: least for name, (least, *_) in GROWTH.items()} | {variable: value}
                yield Case("growth", variable, method, str(value), sizes["T"], partial(grown, method, **sizes))
