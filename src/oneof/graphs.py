"""CUDA graphs: the steps of an epoch as one recording that the GPU replays without waiting for Python.

The first step of an epoch is an ordinary one; the second is recorded and replayed for the rest. What depends on
the epoch is thus recorded anew with every epoch, and methods need not know. Several trials are recorded side by
side, as branches of one graph on streams of their own.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from oneof.engine import Course, Trial
from oneof.features import Array

_FEWEST_STEPS = 4  # for which recording pays


class GraphedCourse(Course):
    """A trial on a GPU."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._recorder = Recorder([self])

    def run_steps(self, batches: list[Tensor], total: Tensor) -> None:
        """Take a step for every batch and add its loss to the total."""
        self._recorder.run([batches], [total])


class Convoy(Course):
    """Trials on a GPU that take their steps together, each with its own networks, noise and optimiser."""

    def __init__(self, courses: Sequence[Course], generators: Sequence[torch.Generator]) -> None:
        self._courses = list(courses)
        self._generators = list(generators)
        self.trials = [course.trials[0] for course in courses]
        self._recorder = Recorder(self._courses, self._generators)

    def run_epoch(self) -> list[float]:
        """Pass over the rows of every trial once; return the mean loss of each, read back once."""
        begun = [course.begin_epoch() for course in self._courses]
        self._recorder.run([batches for batches, _ in begun], [total for _, total in begun])
        totals = torch.stack([total for _, total in begun])
        return (totals / len(begun[0][0])).tolist()

    def weights(self, trial: Trial) -> dict[str, Tensor]:
        """Return the weights of one trial, by name."""
        return trial.method.weights()

    def watch(self) -> list[Array | None]:
        """Return the class probabilities of the watched rows, for each trial."""
        return [course.watch()[0] for course in self._courses]

    def save(self, trial: Trial, force: bool) -> None:
        """Write the checkpoint of a trial, the same file as if it were alone."""
        i = self.trials.index(trial)
        if trial.checkpoint is not None and trial.checkpoint.due(force):
            with drawing_from(self._generators[i]):
                self._courses[i].save(trial, force)

    def leave(self, finished: list[Trial]) -> None:
        """Go on without finished trials."""
        if finished:
            keep = [i for i, trial in enumerate(self.trials) if trial not in finished]
            self._courses = [self._courses[i] for i in keep]
            self._generators = [self._generators[i] for i in keep]
            self.trials = [self.trials[i] for i in keep]
            self._recorder = Recorder(self._courses, self._generators)


class Recorder:
    """Records one step of all courses and replays it."""

    def __init__(self, courses: Sequence[Course], generators: Sequence[torch.Generator | None] = (None,)) -> None:
        self.courses, self.generators = courses, generators
        self._streams = [torch.cuda.Stream() for _ in courses]  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._possible = True

    def run(self, batches: Sequence[list[Tensor]], totals: Sequence[Tensor]) -> None:
        """Take all steps of an epoch."""
        orders = [torch.stack(own) for own in batches]  # each (steps, B)
        counter = torch.zeros(1, dtype=torch.int64, device=totals[0].device)
        steps = len(orders[0])
        eager = steps if steps < _FEWEST_STEPS or not self._possible else 1
        for _ in range(eager):
            self._step(orders, counter, totals)
        if eager < steps:
            replay = self._record(orders, counter, totals)
            for _ in range(steps - eager):
                replay()

    def _step(self, orders: list[Tensor], counter: Tensor, totals: Sequence[Tensor]) -> None:
        """Let every course take the step that the counter names, on a stream of its own."""
        main = torch.cuda.current_stream()
        for course, generator, order, total, stream in zip(
            self.courses, self.generators, orders, totals, self._streams, strict=True
        ):
            stream.wait_stream(main)
            with torch.cuda.stream(stream), drawing_from(generator):
                course.step(order.index_select(0, counter)[0], total)
        for stream in self._streams:
            main.wait_stream(stream)
        counter += 1

    def _record(self, orders: list[Tensor], counter: Tensor, totals: Sequence[Tensor]) -> Callable[[], None]:
        """Return a function that takes the next step: the recording, or the step itself where that cannot be."""
        if self._graph is not None:
            self._graph.reset()
        self._graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            if generator is not None:
                self._graph.register_generator_state(generator)
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(self._graph, pool=self._pool):
                self._step(orders, counter, totals)
        except RuntimeError as error:
            warnings.warn(
                f"the steps cannot be recorded as a CUDA graph ({str(error).splitlines()[0]}); they are taken one "
                "by one, which is slower",
                stacklevel=2,
            )
            self._possible, self._graph = False, None
            torch.cuda.synchronize()
            return lambda: self._step(orders, counter, totals)
        return self._graph.replay


@contextmanager
def drawing_from(generator: torch.Generator | None) -> Iterator[None]:
    """Let random numbers on the GPU come from a generator inside the block; None changes nothing."""
    if generator is None:
        yield
        return
    default = torch.cuda.default_generators[torch.cuda.current_device()]
    before = default.graphsafe_get_state()
    default.graphsafe_set_state(generator)
    try:
        yield
    finally:
        default.graphsafe_set_state(before)
