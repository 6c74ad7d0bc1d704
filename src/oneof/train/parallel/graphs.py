"""CUDA graphs: steps as a recording that the GPU replays without waiting for Python.

The first step of a training is an ordinary one; the second is recorded and replayed for the rest, in later
epochs too. It is recorded anew when something that steps depend on may have changed, such as a learning rate or
whether the warm-up is over; methods need not know. The evaluation after every epoch is recorded as well. Several
trials have recordings of their own, which the GPU replays side by side.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oneof.train.batch import Epoch
from oneof.train.checkpoint import Checkpoint
from oneof.train.divergence import finite_losses
from oneof.train.evaluation import class_probabilities
from oneof.train.loop import TrainingRun
from oneof.train.parallel.watched import watched_attributes
from oneof.train.runtime import single_stream
from oneof.train.trial import Trial

_FEWEST_STEPS = 4  # for which recording pays within an epoch
_FEW_TRIALS = 5  # up to which a step gains by two streams; more trials fill the GPU by themselves


class RecordedRun(TrainingRun):
    """A trial on a GPU."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._steps, self._evaluation = RecordedSteps(self), RecordedEvaluation()

    def run_steps(self, order: Tensor, total: Tensor) -> None:
        """Take all steps and add their losses to the total."""
        self._steps.begin_epoch(order)
        for _ in range(len(order)):
            self._steps.take_one()
        self._steps.end_epoch(total)

    def measure(self) -> list[dict[str, float] | None]:
        """Evaluate the watched rows; return their score and metrics, None where they diverged."""
        return self._evaluation.measure([self])

    def close(self) -> None:
        """Free the recordings."""
        self._steps.forget()
        self._evaluation.forget()


class ConcurrentTrials(TrainingRun):
    """Trials on a GPU that take their steps side by side, each with its own networks, noise and optimiser."""

    def __init__(self, runs: Sequence[TrainingRun], generators: Sequence[torch.Generator]) -> None:
        self._runs = list(runs)
        self._generators = list(generators)
        self.trials = [run.trials[0] for run in runs]
        parts = zip(runs, generators, strict=True)
        one_stream = len(runs) > _FEW_TRIALS
        self._steps = [RecordedSteps(run, generator, one_stream) for run, generator in parts]
        self._evaluation = RecordedEvaluation()

    def run_epoch(self) -> list[float]:
        """Pass over the rows of every trial once; return the mean loss of each, read back once."""
        totals = []
        for run, steps in zip(self._runs, self._steps, strict=True):
            order, total = run.begin_epoch()
            totals.append(total)
            steps.begin_epoch(order)
            steps.take_one()  # already now: the GPU has something to do while the next trial is prepared
        for _ in range(1, len(order)):
            for steps in self._steps:
                steps.take_one()
        for steps, total in zip(self._steps, totals, strict=True):
            steps.end_epoch(total)
        return finite_losses(torch.stack(totals) / len(order), self.weights_finite())

    def weights_finite(self) -> Tensor:
        """Tell of each trial whether all its weights are finite (T,), without reading back."""
        return torch.stack([run.weights_finite() for run in self._runs])

    def predictor(self, trial: Trial) -> dict[str, Tensor]:
        """Return all tensors by which one trial predicts, by name."""
        return trial.method.predictor() | trial.state.average

    def measure(self) -> list[dict[str, float] | None]:
        """Evaluate the watched rows; return the score and the metrics of each trial, None where it diverged."""
        return self._evaluation.measure(self._runs)

    def save(self, trial: Trial, checkpoint: Checkpoint) -> None:
        """Write the checkpoint of a trial, the same file as if it were alone."""
        i = self.trials.index(trial)
        with drawing_from(self._generators[i]):
            self._runs[i].save(trial, checkpoint)

    def release(self, finished: list[Trial]) -> None:
        """Go on without finished trials."""
        if finished:
            for trial in finished:
                self._steps[self.trials.index(trial)].forget()
            keep = [i for i, trial in enumerate(self.trials) if trial not in finished]
            self._runs = [self._runs[i] for i in keep]
            self._generators = [self._generators[i] for i in keep]
            self._steps = [self._steps[i] for i in keep]
            self.trials = [self.trials[i] for i in keep]

    def close(self) -> None:
        """Free the recordings."""
        for recording in (*self._steps, self._evaluation):
            recording.forget()


class Recording:
    """What the GPU replays, if there is anything."""

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._possible = True
        # Of its own: what is recorded on one stream shares the scratch memory of matrix products.
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def forget(self) -> None:
        """Free the recording. A graph that the garbage collector frees during another recording would spoil it."""
        if self._graph is not None:
            self._graph.reset()
            self._graph = None

    def _record(self, compute: Callable[[], None], generator: torch.Generator | None = None) -> Callable[[], None]:
        """Return a function that computes the same: the recording, or itself where that cannot be."""
        self._graph = torch.cuda.CUDAGraph()
        generators = [torch.cuda.default_generators[torch.cuda.current_device()]]
        if generator is not None:
            self._graph.register_generator_state(generator)
            generators.append(generator)
        torch.cuda.synchronize()
        states = [each.get_state() for each in generators]
        try:
            with _no_garbage_collection(), torch.cuda.graph(self._graph, stream=self._stream):
                compute()
        except RuntimeError as error:
            warnings.warn(
                f"what a GPU is to do cannot be recorded as a CUDA graph ({str(error).splitlines()[0]}); it is "
                "done one by one, which is slower",
                stacklevel=2,
            )
            self._possible, self._graph = False, None
            torch.cuda.synchronize()
            for each, state in zip(generators, states, strict=True):
                _mend(each, state)
            return compute
        return self._graph.replay


class RecordedSteps(Recording):
    """Records a step of a run and replays it, on a stream of its own, as long as the next would be the same.

    Random numbers come from the generator, or from the default one. With ``one_stream`` no step is split into two.
    """

    _order: Tensor  # (steps, B): the rows of every step of the epoch
    _counter: Tensor  # (1,): steps taken
    _total: Tensor  # (): the sum of losses

    def __init__(
        self, run: TrainingRun, generator: torch.Generator | None = None, one_stream: bool = False
    ) -> None:
        super().__init__()
        self._run, self._generator, self._one_stream = run, generator, one_stream
        self._known: _Known | None = None  # what the recording depends on
        self._next: Callable[[], None] | None = None

    def begin_epoch(self, order: Tensor) -> None:
        """Take the rows (steps, B) in this order next; see whether the recording still holds."""
        as_before = self._known is not None and self._known.holds_for(_known(self._run))
        # Where an epoch is short and every one is another, recording does not pay. Double precision is for checks.
        pays = len(order) >= _FEWEST_STEPS or as_before
        self._worthwhile = pays and self._run.data.dtype != torch.float64
        if self._graph is not None and as_before:
            self._order.copy_(order)
            self._counter.zero_()
            self._total.zero_()
        else:
            self.forget()
            self._next, self._order = None, order
            self._counter = torch.zeros(1, dtype=torch.int64, device=order.device)
            self._total = torch.zeros_like(self._run.data.weight[0])
        self._stream.wait_stream(torch.cuda.current_stream())

    def take_one(self) -> None:
        """Take the next step."""
        with torch.cuda.stream(self._stream):
            if self._next is not None:
                self._next()
                return
            self._step()
            record = self._worthwhile and self._possible
            self._next = self._record(self._step, self._generator) if record else self._step
            self._known = _known(self._run)

    def _step(self) -> None:
        with drawing_from(self._generator), single_stream(self._one_stream):
            self._run.step(self._order.index_select(0, self._counter)[0], self._total, self._counter)
        self._counter += 1

    def end_epoch(self, total: Tensor) -> None:
        """Write down the sum of losses."""
        torch.cuda.current_stream().wait_stream(self._stream)
        total.copy_(self._total)


class RecordedEvaluation(Recording):
    """Evaluates the watched rows of all runs, one after the other; from the second time on by a recording."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[TrainingRun, dict[str, Any]]] = []
        self._evaluated: list[Tensor] = []

    def measure(self, runs: Sequence[TrainingRun]) -> list[dict[str, float] | None]:
        """Return the score and the metrics of each run; nothing where there are no watched rows.

        None where their probabilities are not finite.
        """
        in_blocks = {id(run): TrainingRun.measure(run)[0] for run in runs if run.trials[0].measured_in_blocks}
        others = [run for run in runs if id(run) not in in_blocks]
        watched = [(run, rows) for run in others if (rows := run.trials[0].watched) is not None]

        def compute() -> None:
            self._evaluated = [class_probabilities(run.method, run.data, rows) for run, rows in watched]

        with ExitStack() as stack:
            for run, _ in watched:
                stack.enter_context(run.course.averaged())
            self._evaluate(watched, compute)
        evaluated = zip(watched, self._evaluated, strict=True)
        measured = {id(run): run.trials[0].measure(probabilities) for (run, _), probabilities in evaluated}
        return [(in_blocks | measured).get(id(run), {}) for run in runs]

    def _evaluate(self, watched: Sequence[tuple[TrainingRun, Any]], compute: Callable[[], None]) -> None:
        seen = [(run, watched_attributes(run.method)) for run, _ in watched]
        if seen != self._seen:
            self.forget()
            self._seen = seen
            compute()
        elif self._graph is None and self._possible and watched:
            self._record(compute)()
        else:
            (compute if self._graph is None else self._graph.replay)()


class _Known(NamedTuple):
    """What a recorded step depends on, beside what tensors hold."""

    of_epoch: Epoch
    epoch: int
    rates: list[float | int]  # or where in memory they are, where they change with every step
    attributes: dict[str, Any]  # of the method

    def holds_for(self, now: "_Known") -> bool:
        """Tell whether steps are still the same."""
        same = (self.rates, self.attributes) == (now.rates, now.attributes)
        return same and self.of_epoch.answers_as(now.epoch)


def _known(run: TrainingRun) -> _Known:
    rates = [
        rate.data_ptr() if isinstance(rate := group["lr"], Tensor) else rate
        for group in run.optimizer.param_groups
    ]
    return _Known(run.of_epoch, run.epoch, rates, watched_attributes(run.method))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _mend(generator: torch.Generator, state: Tensor) -> None:
    """Give a generator a fresh state: a recording that failed leaves the old one unusable."""
    fresh = torch.Generator(generator.device)
    fresh.set_state(state)
    generator.graphsafe_set_state(fresh)


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
