"""What views cost, beside a step of ResNet-32: ``python benchmarks/views.py --device cuda --out views.json``.

A batch is 256 random images of 3 x 32 x 32 bytes. Figures are the median and the minimum of repeats, in
milliseconds. Prints a Markdown table, and writes a JSON file where ``--out`` names one. On a GPU, views are also
captured in a CUDA graph and replayed. kornia is measured where it can be imported.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from torch.nn.functional import cross_entropy

from oneof.augment.views import make_views
from oneof.nn.networks import NETWORKS

BATCH = 256
VIEWS = ("plain+strong+strong", "weak+strong+strong", "pico-weak+pico-strong")


def milliseconds(run: Callable[[], object], device: torch.device, repeats: int) -> dict[str, float]:
    """Run once to warm up, then take the median and the minimum time."""
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(1000 * (time.perf_counter() - begin))
    return {"median": round(median(times[1:]), 3), "min": round(min(times[1:]), 3)}


def captured(names: str, x: torch.Tensor) -> Callable[[], object]:
    """Capture views in a CUDA graph; return what replays it."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        make_views(x, names, True)
    return graph.replay


def training_step(batch: int, device: torch.device, bf16: bool) -> Callable[[], None]:
    """One forward and backward pass of ResNet-32; in bf16 with channels last."""
    network = NETWORKS["resnet32"]((3, 32, 32), 10).to(device)
    x = torch.randn(batch, 3, 32, 32, device=device)
    y = torch.randint(10, (batch,), device=device)
    if bf16:
        network.bf16 = True
        network, x = network.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)

    def step() -> None:
        network.zero_grad(set_to_none=True)
        cross_entropy(network(x), y).backward()

    return step


def kornia_views() -> Callable[[torch.Tensor], list[torch.Tensor]] | None:
    """Make kornia's nearest to weak+strong+strong, where it is installed: one sub-policy for the whole batch."""
    try:
        import kornia.augmentation as K  # noqa: PLC0415  optional
        from kornia.augmentation.auto import AutoAugment  # noqa: PLC0415  optional
    except ImportError:
        return None
    weak = torch.nn.Sequential(
        K.RandomHorizontalFlip(p=0.5), K.RandomCrop((32, 32), padding=4, padding_mode="reflect")
    )
    hole, policy = K.RandomErasing(p=1.0, scale=(0.25, 0.25), ratio=(1.0, 1.0)), AutoAugment("cifar10")
    return lambda x: [weak(x), *(policy(hole(weak(x))) for _ in range(2))]


def measure(device: torch.device, repeats: int) -> dict[str, dict[str, float]]:
    """Return milliseconds by name."""
    figures = {}
    x = torch.randint(256, (BATCH, 3, 32, 32), dtype=torch.uint8, device=device)
    for names in VIEWS:
        figures[f"views {names}"] = milliseconds(lambda names=names: make_views(x, names, True), device, repeats)
        if device.type == "cuda":
            try:
                figures[f"views {names}, CUDA graph"] = milliseconds(captured(names, x), device, repeats)
            except RuntimeError as error:
                print(f"{names} cannot be captured: {error}")
    kornia = kornia_views()
    if kornia is not None:
        floats = x.float() / 255
        figures["kornia's weak+strong+strong"] = milliseconds(lambda: kornia(floats), device, repeats)
    for batch in (BATCH, 3 * BATCH):
        for bf16 in (False, True)[: 1 + (device.type == "cuda")]:
            name = f"ResNet-32 forward and backward, batch {batch}, {'bf16 channels last' if bf16 else 'fp32'}"
            step = training_step(batch, device, bf16)
            figures[name] = milliseconds(step, device, repeats if device.type == "cuda" else 3)
    return figures


def main() -> None:
    """Measure, print the table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (1)")
    parser.add_argument(
        "--repeats", type=int, default=20, help="repeats of every figure (20; networks on a CPU: 3)"
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    device = torch.device(options.device)
    hardware = (
        torch.cuda.get_device_name() if device.type == "cuda" else platform.processor() or platform.machine()
    )
    figures = measure(device, options.repeats)
    print(f"torch {torch.__version__}, {hardware}, {options.threads} CPU threads, batch {BATCH} x 3 x 32 x 32\n")
    print("| what | ms, median | minimum |\n| --- | --- | --- |")
    for name, figure in figures.items():
        print(f"| {name} | {figure['median']:.2f} | {figure['min']:.2f} |")
    if options.out is not None:
        record = {
            "torch": torch.__version__,
            "hardware": hardware,
            "threads": options.threads,
            "milliseconds": figures,
        }
        options.out.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
