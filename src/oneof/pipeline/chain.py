"""Pipeline: scikit-learn's, whose last step is a classifier of ours: it disambiguates, and is saved whole."""

from os import PathLike
from typing import Any

import sklearn.pipeline
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from oneof.em import EMClassifier
from oneof.estimator.card import card_of, save_with_card
from oneof.estimator.classifier import PartialLabelClassifier
from oneof.estimator.in_blocks import TopClasses
from oneof.labels import Disambiguation
from oneof.pipeline.pipeline_file import save_pipeline


class Pipeline(sklearn.pipeline.Pipeline):  # type: ignore[misc]
    """Steps that turn rows into numbers, and behind them a method: scikit-learn's Pipeline with more methods.

    Made of the steps of a fitted pipeline of scikit-learn, it is fitted as well: ``oneof.Pipeline(pipe.steps)``.

    Examples
    --------
    >>> import oneof, pandas as pd
    >>> frame = pd.DataFrame({"size": [1, 9, 2, 8], "fur": ["yes", "no", "yes", None]})
    >>> sets = [["cat"], ["cow", "dog"], ["cat", "dog"], ["cow"]]
    >>> pipe = oneof.make_pipeline(oneof.TableEncoder(), oneof.CC(epochs=50, random_state=0)).fit(frame, sets)
    >>> pipe.disambiguate(frame, sets).label.tolist()
    ['cat', 'cow', 'cat', 'cow']
    """

    def disambiguate(self, X: Any, y: Any, separator: str | None = None) -> Disambiguation:
        """Say for every row which of its candidates is the most likely, how likely, and by what margin.

        The separator splits strings, such as ``"cat|dog"``.
        """
        model = self._model("disambiguate")
        check_is_fitted(self)
        found: Disambiguation = model.disambiguate(self._transformed(X), y, separator)
        return found

    def predict_top(self, X: Any, k: int = 5) -> TopClasses:
        """Return the k most likely classes of every row and their probabilities, each (n, k), the best first."""
        model = self._model("predict_top")
        check_is_fitted(self)
        top: TopClasses = model.predict_top(self._transformed(X), k)
        return top

    def save(self, path: str | PathLike[str], card: bool | str = False) -> None:
        """Write all fitted steps to one safetensors file; :func:`oneof.load_model` reads it back.

        It holds TableEncoder, and StandardScaler, PCA, TruncatedSVD and TfidfVectorizer of scikit-learn, before a
        classifier of oneof; others are refused. With ``card=True`` its `card` is written beside it: ``model.md``
        for ``model.safetensors``.
        """
        model = self._model("save")
        check_is_fitted(self)
        save_with_card(self, lambda pipe, target: save_pipeline(pipe.steps, model, target), path, card)

    def card(self, chosen: str | None = None) -> str:
        """Return what the model was learned from, how, and how good it is, as Markdown.

        ``chosen`` are words on how it was chosen among others.
        """
        model = self._model("card")
        check_is_fitted(self)
        return card_of(model, [step for _, step in self.steps[:-1]], chosen)

    @property
    def label_distributions_(self) -> NDArray[Any]:
        """Distribution of the correct label over the candidates, for every row given to `fit`."""
        distributions: NDArray[Any] = self._model("label_distributions_").label_distributions_
        return distributions

    @property
    def transduction_(self) -> NDArray[Any]:
        """The most likely candidate of every row given to `fit`."""
        labels: NDArray[Any] = self._model("transduction_").transduction_
        return labels

    @property
    def history_(self) -> dict[str, list[float]]:
        """Loss, and validation score if there are validation rows, of every epoch."""
        history: dict[str, list[float]] = self._model("history_").history_
        return history

    @property
    def input_shape_(self) -> tuple[int, ...] | None:
        """None: rows are those of tables; the last step alone knows the shape of images."""
        return self._model("input_shape_").input_shape_ if len(self.steps) == 1 else None

    def _transformed(self, X: Any) -> Any:
        for _, _, step in self._iter(with_final=False):
            X = step.transform(X)
        return X

    def _model(self, name: str) -> Any:
        model = self.steps[-1][1]
        if not isinstance(model, PartialLabelClassifier | EMClassifier):
            raise AttributeError(
                f"the last step is of type {type(model).__name__}, which has no {name}; end the pipeline with a "
                "classifier of oneof"
            )
        return model


def make_pipeline(*steps: Any) -> Pipeline:
    """Return a :class:`Pipeline` of steps, which are named as scikit-learn's `make_pipeline` does.

    Parameters
    ----------
    *steps : transformers, and a classifier of oneof
        Such as ``TableEncoder(), IDGP()``.

    Returns
    -------
    Pipeline
        The steps, none of them fitted yet.

    Examples
    --------
    >>> from oneof import CC, TableEncoder
    >>> [name for name, _ in make_pipeline(TableEncoder(), CC()).steps]
    ['tableencoder', 'cc']
    """
    return Pipeline(sklearn.pipeline.make_pipeline(*steps).steps)
