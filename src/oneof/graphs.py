"""CUDA graphs: the steps of an epoch as one recording that the GPU replays without waiting for Python.

The first step of an epoch is an ordinary one; the second is recorded and replayed for the rest. What depends on
the epoch is thus recorded anew with every epoch, and methods need not know. Several trials are recorded side by
side, as branches of one graph on streams of their own.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from oneof.checkpoint import Checkpoint
from oneof.compute import crowded
from oneof.engine import Course, Trial

_FEWEST_STEPS = 4  # for which recording pays


class GraphedCourse(Course):
    """A trial on a GPU."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._recorder = Recorder(1)

    def run_steps(self, batches: list[Tensor], total: Tensor) -> None:
        """Take a step for every batch and add its loss to the total."""
        self._recorder.run([self], [None], [batches], [total])

    def close(self) -> None:
        """Free the recording."""
        self._recorder.forget()


class Convoy(Course):
    """Trials on a GPU that take their steps together, each with its own networks, noise and optimiser."""

    def __init__(self, courses: Sequence[Course], generators: Sequence[torch.Generator]) -> None:
        self._courses = list(courses)
        self._generators = list(generators)
        self.trials = [course.trials[0] for course in courses]
        self._recorder = Recorder(len(courses))

    def run_epoch(self) -> list[float]:
        """Pass over the rows of every trial once; return the mean loss of each, read back once."""
        begun = [course.begin_epoch() for course in self._courses]
        batches, totals = [batches for batches, _ in begun], [total for _, total in begun]
        self._recorder.run(self._courses, self._generators, batches, totals)
        means: list[float] = (torch.stack(totals) / len(batches[0])).tolist()
        return means

    def weights(self, trial: Trial) -> dict[str, Tensor]:
        """Return the weights of one trial, by name."""
        return trial.method.weights()

    def watch(self) -> list[dict[str, float]]:
        """Return what the watched rows say, for each trial."""
        return [course.watch()[0] for course in self._courses]

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a trial, the same file as if it were alone."""
        i = self.trials.index(trial)
        with drawing_from(self._generators[i]):
            self._courses[i].save(trial, checkpoint)

    def leave(self, finished: list[Trial]) -> None:
        """Go on without finished trials."""
        if finished:
            keep = [i for i, trial in enumerate(self.trials) if trial not in finished]
            self._courses = [self._courses[i] for i in keep]
            self._generators = [self._generators[i] for i in keep]
            self.trials = [self.trials[i] for i in keep]

    def close(self) -> None:
        """Free the recording."""
        self._recorder.forget()


class Recorder:
    """Records one step of all courses and replays it."""

    def __init__(self, courses: int) -> None:
        self._streams = [torch.cuda.Stream() for _ in range(courses)]  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._possible = True

    def run(
        self,
        courses: Sequence[Course],
        generators: Sequence[torch.Generator | None],
        batches: Sequence[list[Tensor]],
        totals: Sequence[Tensor],
    ) -> None:
        """Take all steps of an epoch; each course draws from its generator, or from the default one."""
        orders = [torch.stack(own) for own in batches]  # each (steps, B)
        counter = torch.zeros(1, dtype=torch.int64, device=totals[0].device)
        steps = len(orders[0])

        def step() -> None:
            self._step(list(zip(courses, generators, orders, totals, strict=True)), counter)

        # Double precision is for checks.
        worthwhile = steps >= _FEWEST_STEPS and all(course.data.dtype != torch.float64 for course in courses)
        eager = 1 if worthwhile and self._possible else steps
        for _ in range(eager):
            step()
        if eager < steps:
            replay = self._record(step, [generator for generator in generators if generator is not None])
            for _ in range(steps - eager):
                replay()

    def forget(self) -> None:
        """Free the recording. A graph that the garbage collector frees during another recording would spoil it."""
        if self._graph is not None:
            self._graph.reset()
            self._graph = None

    def _step(self, parts: list[tuple[Course, torch.Generator | None, Tensor, Tensor]], counter: Tensor) -> None:
        """Let every course take the step that the counter names, on a stream of its own."""
        main = torch.cuda.current_stream()
        streams = self._streams[: len(parts)]
        for (course, generator, order, total), stream in zip(parts, streams, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream), drawing_from(generator), crowded(len(parts) > 1):
                course.step(order.index_select(0, counter)[0], total)
        for stream in streams:
            main.wait_stream(stream)
        counter += 1

    def _record(self, step: Callable[[], None], generators: list[torch.Generator]) -> Callable[[], None]:
        """Return a function that takes the next step: the recording, or the step itself where that cannot be."""
        self.forget()
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            self._graph.register_generator_state(generator)
        torch.cuda.synchronize()
        noise = torch.cuda.get_rng_state()
        try:
            with _no_garbage_collection(), torch.cuda.graph(self._graph, pool=self._pool):
                step()
        except RuntimeError as error:
            warnings.warn(
                f"the steps cannot be recorded as a CUDA graph ({str(error).splitlines()[0]}); they are taken one "
                "by one, which is slower",
                stacklevel=2,
            )
            self._possible, self._graph = False, None
            torch.cuda.synchronize()
            _mend_generator(noise)
            return step
        return self._graph.replay


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _mend_generator(state: Tensor) -> None:
    """Give the GPU's generator a fresh state: a recording that failed leaves the old one unusable."""
    fresh = torch.Generator(torch.device("cuda", torch.cuda.current_device()))
    fresh.set_state(state)
    torch.cuda.default_generators[torch.cuda.current_device()].graphsafe_set_state(fresh)


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
