"""Where the time of a training step goes on a GPU: ``python benchmarks/profile_step.py > profile.txt``.

One network, 768 images (three views of 256) in bfloat16, channels last; for LeNet and ResNet-32, by cuDNN and
torch, and by kernels of our own. Prints microseconds a step of every kind of kernel, then microseconds and calls a
step of the kernels that take more than a little.
"""

import re
from unittest.mock import patch

import torch
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

from oneof.kernels import support
from oneof.kernels.sgd import FusedSGD
from oneof.nn.networks import build

IMAGES, STEPS, SHOWN = 768, 10, 28
NETWORKS = {"lenet": (1, 28, 28), "resnet32": (3, 32, 32)}

# By what its name has in it; the first that fits counts. The eighth argument of ours says what is convolved.
KINDS = {
    "first layer, of our own": r"first_(layer|weight)",
    "convolutions of our own: gradients of inputs": r"convolve<(\d+, ){7}2,",
    "convolutions of our own: forward": r"convolve<(\d+, ){7}",
    "convolutions of our own: gradients of weights": r"weight_gradient",
    "small sums of our own": r"^(add_up_parts|normalisation|correction)$",
    "convolutions of cuDNN, with changes of layout": r"cudnn|xmma|convolve_common|nhwc(Add|To)|nchwTo",
    "normalisation, activation, pooling": r"batch_norm|max_pool|clamp|merge|second_|statistics|correct<|^units",
    "matrix products": r"gemm|cublas|gemv",
    "optimiser": r"multi_tensor_apply|descend",
    "the rest": r"",
}


def kernels(name: str, own: bool) -> list[tuple[float, float, str]]:
    """Return microseconds a step, calls a step and name of every kernel, the longest first."""
    network = build(name, NETWORKS[name], 10, bf16=True)
    network = network.cuda().to(memory_format=torch.channels_last)
    optimizer = (FusedSGD if own else torch.optim.SGD)(network.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(IMAGES, *NETWORKS[name], device="cuda").contiguous(memory_format=torch.channels_last)
    y = torch.randint(10, (IMAGES,), device="cuda")

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(network(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        torch.cuda.synchronize()

    with patch.object(support, "applies", support.applies if own else lambda x: False):
        steps(6)  # to compile kernels and choose convolutions
        with profile(activities=[ProfilerActivity.CUDA]) as profiled:
            steps(STEPS)
    events = [(event.self_device_time_total, event.count, event.key) for event in profiled.key_averages()]
    found = [(time / STEPS, count / STEPS, key) for time, count, key in events if time > 0]  # no calls of the host
    return sorted(found, reverse=True)


def by_kind(found: list[tuple[float, float, str]]) -> dict[str, float]:
    """Return microseconds a step of every kind."""
    total = dict.fromkeys(KINDS, 0.0)
    for time, _, key in found:
        total[next(kind for kind, pattern in KINDS.items() if re.search(pattern, key))] += time
    return total


def main() -> None:
    """Profile all networks."""
    torch.backends.cudnn.benchmark = True
    for name in NETWORKS:
        for own in (False, True):
            found = kernels(name, own)
            total, calls = (sum(kernel[i] for kernel in found) for i in (0, 1))
            way = "own kernels" if own else "cuDNN and torch"
            print(f"== {name}, {way}: {total:.0f} us a step, {calls:.0f} kernels")
            for kind, time in by_kind(found).items():
                print(f"{time:8.1f}  {kind}")
            print("-- kernels: us a step, calls a step, name")
            for time, count, key in found[:SHOWN]:
                print(f"{time:8.1f} {count:5.1f}  {key[:150]}")


if __name__ == "__main__":
    main()
