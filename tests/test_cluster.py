"""On a real Ray cluster of two nodes: a plan, and one is killed; one training, and a worker is killed."""

import os
import signal

import pytest
from numpy.testing import assert_allclose

import bench_data
import oneof
from oneof.bench.ledger import read
from oneof.bench.plan_file import read_plan
from oneof.bench.running.engines import LocalEngine
from oneof.bench.running.runner import Runner
from oneof.train import checkpoint

ray = pytest.importorskip("ray", reason="needs the extra 'cluster'")


@pytest.fixture
def cluster(monkeypatch):
    """A head with one core and a second node with one."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # A dead node is noticed within seconds.
    patience = {
        "health_check_period_ms": 500,
        "health_check_timeout_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": patience}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_lost_node_loses_nothing_and_repeats_nothing(cluster, tmp_path):
    from oneof.bench.running.cluster import RayEngine

    root = bench_data.write_soccer_player(tmp_path / "data")
    (tmp_path / "plan.toml").write_text(bench_data.PLAN.replace("epochs = 4", "epochs = 6"))
    plan = read_plan(tmp_path / "plan.toml")
    engine = RayEngine(cluster.address, cpus=1, gpus=0)
    assert engine.capacity == 2
    seen = []

    def kill_second(progress):
        seen.append(len(engine._under_way))
        if seen.count(2) == 5:  # for two seconds both nodes have been at work
            cluster.remove_node(cluster.second, allow_graceful=False)
            cluster.second = None

    ledger = tmp_path / "ray.jsonl"
    progress = Runner(plan, ledger, engine, device="cpu", root=str(root), show=kill_second).run()
    assert cluster.second is None, "the second node was never killed"
    assert max(seen) == 2
    assert (progress.done, progress.failed, progress.unavailable) == (6, {}, {})
    assert ledger.read_bytes().count(b'"key"') == 6

    Runner(plan, tmp_path / "local.jsonl", LocalEngine(2), device="cpu", root=str(root)).run()
    on_ray, locally = (read([tmp_path / name]).records for name in ("ray.jsonl", "local.jsonl"))
    assert bench_data.results(on_ray) == bench_data.results(locally)


def test_a_killed_worker_of_one_training_changes_nothing(cluster, tmp_path, blobs):
    X, S, _ = blobs
    seen, killed = tmp_path / "seen", tmp_path / "killed"

    class Mortal(oneof.IDGP):
        """Writes a checkpoint after every epoch; its second worker is killed in the fourth, once."""

        trains_in_parts = True

        def start_epoch(self, epoch, data):
            checkpoint.SECONDS_BETWEEN_SAVES = 0.0
            with seen.open("a") as file:
                file.write(f"{data.first > 0} {epoch}\n")
            if epoch == 3 and data.first > 0 and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            super().start_epoch(epoch, data)

    settings = {"epochs": 6, "warm_up": 2, "random_state": 0, "precision": "fp64", "validation_fraction": 0.2}
    model = Mortal(checkpoint=tmp_path / "fit", **settings)
    oneof.fit_with_workers(model, X, S, workers=2, cluster=cluster.address)
    epochs = [int(line.split()[1]) for line in seen.read_text().splitlines() if line.startswith("True")]
    assert killed.exists()
    assert epochs == [0, 1, 2, 3, 3, 4, 5]
    reference = oneof.IDGP(**settings).fit(X, S)
    for name, tensor in reference.learned().items():
        assert_allclose(model.learned()[name], tensor, atol=1e-8, err_msg=name)
    assert_allclose(model.history_["validation_score"], reference.history_["validation_score"])
