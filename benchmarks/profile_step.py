"""Where the time of a training step goes on a GPU: ``python benchmarks/profile_step.py > profile.txt``.

One network, 768 images (three views of 256) in bfloat16, channels last; for LeNet and ResNet-32, by cuDNN and
torch, and by kernels of our own. Prints microseconds a step and calls a step of the kernels that take more than a
little.
"""

from unittest.mock import patch

import torch
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from oneof import fused
from oneof.networks import build

IMAGES, STEPS, SHOWN = 768, 10, 28
NETWORKS = {"lenet": (1, 28, 28), "resnet32": (3, 32, 32)}


def kernels(name: str) -> list[tuple[float, float, str]]:
    """Return microseconds a step, calls a step and name of every kernel, the longest first."""
    network = build(name, NETWORKS[name], 10, bf16=True)
    network = network.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(IMAGES, *NETWORKS[name], device="cuda").contiguous(memory_format=torch.channels_last)
    y = torch.randint(10, (IMAGES,), device="cuda")

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(network(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        torch.cuda.synchronize()

    steps(6)  # to compile kernels and choose convolutions
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        steps(STEPS)
    events = [(event.self_device_time_total, event.count, event.key) for event in profiled.key_averages()]
    return sorted(((time / STEPS, count / STEPS, key) for time, count, key in events), reverse=True)


def main() -> None:
    """Profile all networks."""
    torch.backends.cudnn.benchmark = True
    for name in NETWORKS:
        for own in (False, True):
            with patch.object(fused, "applies", fused.applies if own else lambda x: False):
                found = kernels(name)
            total, calls = (sum(kernel[i] for kernel in found) for i in (0, 1))
            way = "own kernels" if own else "cuDNN and torch"
            print(f"== {name}, {way}: {total:.0f} us a step, {calls:.0f} kernels")
            for time, count, key in found[:SHOWN]:
                print(f"{time:8.1f} {count:5.1f}  {key[:150]}")


if __name__ == "__main__":
    main()
