"""A Ray cluster of two nodes: one of them is killed in a plan, and a worker in one training."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from faults import hooks, lab
from faults.harness import Attempt, Case, Group, LostError, SkippedError, check_words, environment_of, short

# A dead node is noticed within seconds, and a dead head is not waited for.
_PATIENCE = {
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
    "gcs_rpc_server_reconnect_timeout_s": 5,
}
_START, _END = 90.0, 30.0  # seconds that a cluster may take


@contextmanager
def cluster(attempt: Attempt) -> Iterator[subprocess.Popen]:
    """Start a cluster in a process group of its own, which can be told what to kill."""
    if find_spec("ray") is None:
        raise SkippedError("Ray is not installed")
    patience = {f"RAY_{name}": str(value) for name, value in _PATIENCE.items()}
    patience[hooks.VARIABLE] = json.dumps(lab.EVERY_EPOCH)  # workers are processes of the cluster
    group = Group(
        [sys.executable, "-m", "faults.clusters"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment_of(attempt.folder, RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", **patience),
    )
    try:
        yield group.process
    finally:
        with suppress(OSError):
            group.process.stdin.close()  # it then takes the cluster down
        group.wait_until(lambda: False, _END)
        group.close()


def node_killed(attempt: Attempt, which: str) -> None:
    """A node is killed in the middle of a plan.

    Without the second node the plan goes on to its end. Without the head it cannot, because Ray then ends the
    driver itself, in its own words: this must be soon, and the ledger must be whole.
    """
    lab.ledger(attempt)
    plan, ledger = lab.write_plan(attempt.folder), attempt.folder / "ledger.jsonl"
    with cluster(attempt) as nodes:
        address = nodes.stdout.readline().strip()
        if not address:
            raise SkippedError("no Ray cluster could be started here")
        words = ["run", plan, "--ledger", ledger, "--data", lab.problem(attempt).root, "--device", "cpu"]
        words += ["--engine", "ray", "--address", address]
        command = attempt.start(*words, **lab.problem(attempt).faults)
        progress = ledger.with_suffix(".checkpoints") / "progress.json"
        if command.wait_until(lambda: progress.is_file() and '"running": ["' in progress.read_text()):
            time.sleep(attempt.chance.uniform(0, 3))
            nodes.stdin.write(f"{which}\n")
            nodes.stdin.flush()
            attempt.kills += 1
        ended = command.wait(150)
        before = set(lab.done_keys(ledger))
        if which == "second":
            if ended.code:
                raise LostError(f"the plan ended with {ended.code}: {short(ended.err, end=True)}")
            lab.check_ledger(attempt, ledger)
        check_words(ended)
    lab.finish_plan(attempt, plan, ledger)
    if before - set(lab.done_keys(ledger)):
        raise LostError("finished records are gone")


def training_worker_killed(attempt: Attempt) -> None:
    """A worker of one training is killed: Ray starts the workers again, and the model has the same bytes."""
    place = attempt.folder / "fit"
    place.mkdir()
    with cluster(attempt) as nodes:
        address = nodes.stdout.readline().strip()
        if not address:
            raise SkippedError("no Ray cluster could be started here")
        on_two = ["--workers", 2, "--cluster", address]
        attempt.must_succeed(*lab.fit_words(attempt, "idgp", place / "expected"), *on_two)
        words = [*lab.fit_words(attempt, "idgp", place / "model"), "--set", f"checkpoint={place / 'fit.ckpt'}"]
        command = attempt.start(*words, *on_two, **lab.EVERY_EPOCH)
        if command.wait_until((place / "fit.ckpt").exists):
            time.sleep(attempt.chance.uniform(0, 0.5))
            nodes.stdin.write("worker\n")
            nodes.stdin.flush()
            attempt.kills += int(nodes.stdout.readline())
        ended = command.wait(150)
        check_words(ended)
    if ended.code:
        raise LostError(f"the fit ended with {ended.code}: {short(ended.err, end=True)}")
    if (place / "model").read_bytes() != (place / "expected").read_bytes():
        raise LostError("the model differs from the undisturbed one")


def _kill_worker() -> int:
    """Kill one of the workers that train in the cluster of this process; return how many were killed."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"RayTrainWorker" in (folder / "cmdline").read_bytes() and os.getpid() in _ancestors(
                int(folder.name)
            ):
                os.kill(int(folder.name), signal.SIGKILL)
                return 1
    return 0


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


def serve() -> None:
    """Hold a cluster of two nodes; each line says what to kill, and the end of the input ends all."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": _PATIENCE}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    second = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes(_START)
    print(nodes.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "worker":
            print(_kill_worker(), flush=True)
            continue
        node = second if line.strip() == "second" else nodes.head_node
        node.kill_all_processes(check_alive=False, allow_graceful=False)
    with suppress(Exception):
        nodes.shutdown()


def cases() -> list[Case]:
    """All cases of this module."""
    return [
        Case(
            "ray-node", "Ray: a node killed, the plan goes on", 1, partial(node_killed, which="second"), alone=True
        ),
        Case(
            "ray-head",
            "Ray: the head killed, the plan ends, and goes on without Ray",
            1,
            partial(node_killed, which="head"),
            alone=True,
        ),
        Case(
            "ray-worker",
            "Ray: a worker of one training killed: the same bytes",
            1,
            training_worker_killed,
            alone=True,
        ),
    ]


if __name__ == "__main__":
    serve()
