"""How long a process waits for kernels: ``python benchmarks/kernel_start.py``, on a GPU.

Two processes, one after the other, make ResNet-32 and LeNet take training steps in bf16. The first finds an empty
cache folder and compiles; the second reads what the first kept. Each prints the seconds of the first step of each
network, which has its kernels loaded, and of the second. The driver's own cache is empty as well.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import torch

from oneof.nn.networks import build

SHAPES = {"resnet32": (3, 32, 32), "lenet": (1, 28, 28)}


def seconds_of_first_steps() -> dict[str, float]:
    """Return the seconds of the first and of the second step of each network."""
    torch.zeros(1, device="cuda").sum().item()  # the start of CUDA is not what is measured
    found = {}
    for name, shape in SHAPES.items():
        network = build(name, shape, 10, bf16=True).cuda().to(memory_format=torch.channels_last)
        x = torch.randn(256, *shape, device="cuda").to(memory_format=torch.channels_last)
        for step in ("first", "second"):
            begun = time.perf_counter()
            network(x).square().mean().backward()
            torch.cuda.synchronize()
            found[f"{name}, {step} step"] = round(time.perf_counter() - begun, 3)
    return found


def main() -> None:
    """Start both processes, or be one of them."""
    if "--measure" in sys.argv:
        print(json.dumps(seconds_of_first_steps()))
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = os.environ | {"XDG_CACHE_HOME": folder, "CUDA_CACHE_PATH": f"{folder}/driver"}
        for start in ("empty cache", "kept kernels"):
            begun = time.perf_counter()
            command = [sys.executable, __file__, "--measure"]
            shown = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
            print(f"{start}: {shown.strip()}, {time.perf_counter() - begun:.1f} s from process start to end")


if __name__ == "__main__":
    main()
