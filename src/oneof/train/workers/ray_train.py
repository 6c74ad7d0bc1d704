"""Starts the workers of one training on a Ray cluster, by Ray Train: it places them, and starts them again."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oneof.errors import InputError, WorkersLost
from oneof.io.words import reason, shown
from oneof.train.workers.group import WorkersDisagree
from oneof.train.workers.part import WorkerPart
from oneof.train.workers.run import Outcome, train_part

try:
    import ray
    import ray.train.torch
    from ray.train import FailureConfig, RunConfig, ScalingConfig
except ImportError:
    raise InputError("several workers need Ray Train, which is missing; pip install 'oneof[cluster]'") from None

_RETRIES = 3  # of a training that has lost workers


@contextmanager
def cluster_of(workers: int, address: str | None, gpus: bool) -> Iterator[None]:
    """Be in a cluster inside the block: that of an address, or one that is started on this machine."""
    joined = ray.is_initialized()
    if not joined:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address is None:
            options |= {"include_dashboard": False, "num_cpus": workers}
        try:
            ray.init(address=address or "local", **options)  # None would join whatever cluster ran here last
        except ConnectionError as error:
            raise InputError(
                f"cluster is {shown(address)}, but no Ray cluster answers there ({reason(error)}); start one with "
                "'ray start --head', or leave it out"
            ) from None
    try:
        kind = "GPU" if gpus else "CPU"
        there = ray.cluster_resources().get(kind, 0)
        if workers > there:  # Ray would wait for ever
            raise InputError(f"workers is {workers}, but the cluster has {there:g} {kind}s; ask for fewer")
        yield
    finally:
        if not joined:
            ray.shutdown()


def train_on_ray(parts: list[WorkerPart], gpus: bool) -> Outcome:
    """Train with a worker for each part; where one is lost, all begin again from the last checkpoint."""
    references = [ray.put(part) for part in parts]
    with tempfile.TemporaryDirectory(prefix="oneof-") as folder:  # for what Ray itself writes
        trainer = ray.train.torch.TorchTrainer(
            _train_part,
            train_loop_config={"parts": references},
            torch_config=ray.train.torch.TorchConfig(backend="nccl" if gpus else "gloo"),
            scaling_config=ScalingConfig(num_workers=len(parts), use_gpu=gpus),
            run_config=RunConfig(
                name="training", storage_path=folder, failure_config=FailureConfig(max_failures=_RETRIES)
            ),
        )
        try:
            outcome: Outcome | str = trainer.fit().return_value
        except ray.train.TrainingFailedError as error:
            raise WorkersLost(
                f"the training was given up after {_RETRIES + 1} attempts ({reason(error)}); where workers lack "
                "memory take more of them, or a smaller batch_size"
            ) from None
    if isinstance(outcome, str):
        raise WorkersDisagree(outcome)
    return outcome


def _train_part(config: dict[str, Any]) -> Outcome | str | None:
    """Train as one worker, on the machine that Ray chose; what all refuse is returned, and not tried again."""
    part = ray.get(config["parts"][ray.train.get_context().get_world_rank()])
    try:
        return train_part(part, ray.train.torch.get_device())
    except WorkersDisagree as error:
        return str(error)
