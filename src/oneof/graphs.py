"""CUDA graphs: steps as one recording that the GPU replays without waiting for Python.

The first step of a training is an ordinary one; the second is recorded and replayed for the rest, in later
epochs too. When something may have changed that steps depend on, a learning rate or whether the warm-up is over,
it begins again; methods need not know. Several trials are recorded side by side, as branches of one graph on
streams of their own. The evaluation after every epoch is recorded too.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oneof.base import PartialLabelClassifier
from oneof.batch import Epoch
from oneof.checkpoint import Checkpoint
from oneof.compute import crowded
from oneof.engine import Course, Trial, evaluate, judged

_FEWEST_STEPS = 4  # for which recording pays
_PLAIN = (bool, int, float, str, type(None))


class GraphedCourse(Course):
    """A trial on a GPU."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._recorder, self._watcher = Recorder(1), Watcher()

    def run_steps(self, batches: list[Tensor], total: Tensor) -> None:
        """Take a step for every batch and add its loss to the total."""
        self._recorder.run([self], [None], [batches], [total])

    def watch(self) -> list[dict[str, float]]:
        """Return what the watched rows say."""
        return self._watcher.watch([self])

    def close(self) -> None:
        """Free the recordings."""
        self._recorder.forget()
        self._watcher.forget()


class Convoy(Course):
    """Trials on a GPU that take their steps together, each with its own networks, noise and optimiser."""

    def __init__(self, courses: Sequence[Course], generators: Sequence[torch.Generator]) -> None:
        self._courses = list(courses)
        self._generators = list(generators)
        self.trials = [course.trials[0] for course in courses]
        self._recorder, self._watcher = Recorder(len(courses)), Watcher()

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
        return self._watcher.watch(self._courses)

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
        """Free the recordings."""
        self._recorder.forget()
        self._watcher.forget()


class Recording:
    """What the GPU replays, if there is anything."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._possible = True

    def forget(self) -> None:
        """Free the recording. A graph that the garbage collector frees during another recording would spoil it."""
        if self._graph is not None:
            self._graph.reset()
            self._graph = None

    def _record(
        self, compute: Callable[[], None], generators: Sequence[torch.Generator | None]
    ) -> Callable[[], None]:
        """Return a function that computes the same: the recording, or itself where that cannot be."""
        self._graph = torch.cuda.CUDAGraph()
        for generator in generators:
            if generator is not None:
                self._graph.register_generator_state(generator)
        torch.cuda.synchronize()
        noise = torch.cuda.get_rng_state()
        try:
            with _no_garbage_collection(), torch.cuda.graph(self._graph, pool=self._pool):
                compute()
        except RuntimeError as error:
            warnings.warn(
                f"what a GPU is to do cannot be recorded as a CUDA graph ({str(error).splitlines()[0]}); it is "
                "done step by step, which is slower",
                stacklevel=2,
            )
            self._possible, self._graph = False, None
            torch.cuda.synchronize()
            _mend_generator(noise)
            return compute
        return self._graph.replay


class Recorder(Recording):
    """Records one step of all courses and replays it, as long as the next one would be the same."""

    def __init__(self, courses: int) -> None:
        super().__init__()
        self._streams = [torch.cuda.Stream() for _ in range(courses)]  # type: ignore[no-untyped-call]
        self._known: list[_Known] = []  # what the recording depends on

    def run(
        self,
        courses: Sequence[Course],
        generators: Sequence[torch.Generator | None],
        batches: Sequence[list[Tensor]],
        totals: Sequence[Tensor],
    ) -> None:
        """Take all steps of an epoch; each course draws from its generator, or from the default one."""
        orders = [torch.stack(own) for own in batches]  # each (steps, B)
        # Double precision is for checks.
        worthwhile = len(batches[0]) >= _FEWEST_STEPS and all(c.data.dtype != torch.float64 for c in courses)
        replay = self._graph.replay if self._graph is not None and self._holds_for(courses) else None
        if replay is None:
            self.forget()
            self._orders, self._totals = orders, [torch.zeros_like(total) for total in totals]
            self._counter = torch.zeros(1, dtype=torch.int64, device=totals[0].device)
        else:
            _copy(orders, self._orders)
            for tensor in (self._counter, *self._totals):
                tensor.zero_()

        def step() -> None:
            self._step(courses, generators)

        for _ in batches[0]:
            if replay is not None:
                replay()
            else:
                step()
                replay = self._record(step, generators) if worthwhile and self._possible else step
                self._known = [_known(course) for course in courses]
        _copy(self._totals, totals)

    def _holds_for(self, courses: Sequence[Course]) -> bool:
        """Tell whether the recording is one of these courses, in an epoch like theirs."""
        now = [_known(course) for course in courses]
        return len(now) == len(self._known) and all(map(_Known.holds_for, self._known, now))

    def _step(self, courses: Sequence[Course], generators: Sequence[torch.Generator | None]) -> None:
        """Let every course take the step that the counter names, on a stream of its own."""
        main = torch.cuda.current_stream()
        streams = self._streams[: len(courses)]
        parts = zip(courses, generators, self._orders, self._totals, streams, strict=True)
        for course, generator, order, total, stream in parts:
            stream.wait_stream(main)
            with torch.cuda.stream(stream), drawing_from(generator), crowded(len(courses) > 1):
                course.step(order.index_select(0, self._counter)[0], total)
        for stream in streams:
            main.wait_stream(stream)
        self._counter += 1


class Watcher(Recording):
    """Evaluates the watched rows of all courses, one after the other; from the second time on by a recording."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[Course, dict[str, Any]]] = []

    def watch(self, courses: Sequence[Course]) -> list[dict[str, float]]:
        """Return what they say, for each course; nothing where there are none."""
        watched = [(course, course.trials[0].watched) for course in courses]

        def compute() -> None:
            self._evaluated = [None if rows is None else evaluate(c.method, c.data, rows) for c, rows in watched]

        seen = [(course, _attributes(course.method)) for course in courses]
        if seen != self._seen:
            self.forget()
            self._seen = seen
            compute()
        elif self._graph is None and self._possible:
            self._record(compute, [])()
        else:
            (compute if self._graph is None else self._graph.replay)()
        results = zip(courses, self._evaluated, strict=True)
        return [{} if own is None else judged(course.trials[0], own) for course, own in results]


class _Known(NamedTuple):
    """What a recorded step of a course depends on, beside what tensors hold."""

    course: Course
    asked: Epoch
    epoch: int
    rates: list[float]
    attributes: dict[str, Any]  # of the method

    def holds_for(self, now: "_Known") -> bool:
        """Tell whether steps are still the same."""
        same = (self.course, self.rates, self.attributes) == (now.course, now.rates, now.attributes)
        return same and self.asked.answers_as(now.epoch)


def _known(course: Course) -> _Known:
    rates = [group["lr"] for group in course.optimizer.param_groups]
    return _Known(course, course.asked, course.epoch, rates, _attributes(course.method))


def _attributes(method: PartialLabelClassifier) -> dict[str, Any]:
    """Return the attributes of a method that are numbers or words, and where its tensors are."""
    return {
        name: value.data_ptr() if isinstance(value, Tensor) else value
        for name, value in vars(method).items()
        if isinstance(value, Tensor)
        or all(isinstance(v, _PLAIN) for v in (value if type(value) is tuple else [value]))
    }


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


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
