"""Runs on a Ray cluster: the driver stays the only writer, problems are shared by reference."""

from types import TracebackType
from typing import Any, Self

from oneof.bench.record import Record
from oneof.bench.running.engines import Task, TaskResult, execute_task, lost, problem_text
from oneof.bench.running.problem import Problem, make_problem
from oneof.errors import InputError

try:
    import ray
except ImportError:
    raise InputError("--engine ray needs Ray, which is missing; pip install 'oneof[cluster]'") from None

_RETRIES = 5  # of a run whose worker or node was lost


class RayEngine:
    """Tasks on the machines of a Ray cluster.

    Parameters
    ----------
    address : str or None
        Of a running cluster; None starts one on this machine.
    cpus, gpus : float
        What a run takes; fractions share a core or a GPU.
    """

    def __init__(self, address: str | None, cpus: float, gpus: float) -> None:
        if not ray.is_initialized():
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
            if address is None:
                options["include_dashboard"] = False
            ray.init(address=address or "local", **options)  # None would join whatever cluster ran here last
        for kind, need in (("CPU", cpus), ("GPU", gpus)):
            there = ray.cluster_resources().get(kind, 0)
            if need > there:
                ray.shutdown()
                raise InputError(f"a run takes {need:g} {kind}s, but the cluster has {there:g}; ask for fewer")
        self._remote = ray.remote(_execute).options(num_cpus=cpus, num_gpus=gpus, max_retries=_RETRIES)
        self._cpus, self._gpus = cpus, gpus
        self._problems: dict[str, Any] = {}  # text of a problem -> reference to it in the cluster
        self._under_way: dict[Any, Task] = {}

    @property
    def capacity(self) -> int:
        """How many runs fit on the machines that are there now."""
        there = ray.cluster_resources()
        fits = [there.get(kind, 0) // need for kind, need in (("CPU", self._cpus), ("GPU", self._gpus)) if need]
        return max(1, int(min(fits, default=1)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._under_way:
            ray.cancel(future, force=True)
        ray.shutdown()

    def submit(self, task: Task) -> None:
        """Send a task with a reference to its problem."""
        for spec, sets in task.problems_of():
            if problem_text(spec) not in self._problems:
                problem = make_problem(spec, task.root, task.device, sets)
                self._problems[problem_text(spec)] = ray.put(problem)
        problems = [self._problems[problem_text(spec)] for spec in task.specs]
        self._under_way[self._remote.remote(task, *problems)] = task

    def collect(self, timeout: float) -> list[TaskResult]:
        """Return the tasks that ended, after waiting for at most so many seconds."""
        ready, _ = ray.wait(list(self._under_way), num_returns=1, timeout=timeout)
        return [self._finish(future) for future in ready]

    def _finish(self, future: Any) -> TaskResult:
        task = self._under_way.pop(future)
        try:
            return TaskResult(task, ray.get(future))
        except ray.exceptions.RayError as error:
            return lost(task, f"it was lost {_RETRIES + 1} times in the cluster ({type(error).__name__})")


def _execute(task: Task, *problems: Problem) -> list[Record | None]:
    """Execute a task on the machine that Ray chose; its checkpoints help where their folder is shared."""
    for checkpoint in filter(None, task.checkpoints):
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
    return execute_task(task, problems)
