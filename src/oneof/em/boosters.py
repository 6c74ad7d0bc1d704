"""Boosted trees of other libraries, stored in their own form: LightGBM's text and XGBoost's JSON."""

import sys
from typing import Any, ClassVar, Self

import numpy as np

from oneof.em.estimators import Array
from oneof.errors import InputError
from oneof.estimator.model_header import MisfitError
from oneof.io.words import reason


class _BoosterForm:
    """A booster that a library reads from the bytes of a file, and the classes that it must give."""

    kind: ClassVar[str]
    library: ClassVar[str]

    def __init__(self, arrays: dict[str, Array], n_features: int, columns: int) -> None:
        if arrays.keys() != {"text"} or arrays["text"].dtype != np.uint8 or arrays["text"].ndim != 1:
            raise MisfitError("the tensor 'form.text' is missing or holds no bytes")
        self._text = arrays["text"]
        self._columns = columns
        try:
            self._booster = self.read(self._text.tobytes())
            found = np.shape(self.predict_proba(np.zeros((1, n_features))))
        except ImportError:
            raise InputError(f"the model needs {self.library}; pip install {self.library}") from None
        except Exception as error:  # libraries have errors of their own kinds
            raise MisfitError(f"{self.library} cannot read its trees: {reason(error, 120)}") from None
        if found != (1, columns):
            raise MisfitError(
                f"the trees give probabilities of shape {found} for a row, but must give {(1, columns)}"
            )

    def arrays(self) -> dict[str, Array]:
        """The text, as bytes."""
        return {"text": self._text}

    def predict_proba(self, x: Array) -> Array:
        """Return the probabilities; of two classes, boosters give that of the second."""
        p: Array = self.probabilities(x)
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    def probabilities(self, x: Array) -> Array:
        """Return what the booster predicts."""
        raise NotImplementedError

    @staticmethod
    def read(text: bytes) -> Any:
        """Return the booster of a text."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {"_text": self._text, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._booster = self.read(self._text.tobytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing in it changes


class LightGBMForm(_BoosterForm):
    """LightGBM's text."""

    kind: ClassVar[str] = "lightgbm"
    library: ClassVar[str] = "lightgbm"

    @staticmethod
    def text_of(estimator: Any) -> Array | None:
        """Return the text of a fitted LGBMClassifier, None of all others."""
        library = sys.modules.get("lightgbm")
        if library is None or type(estimator) is not library.LGBMClassifier or callable(estimator.objective):
            return None
        return np.frombuffer(estimator.booster_.model_to_string().encode(), np.uint8)

    @staticmethod
    def read(text: bytes) -> Any:
        """Return the booster of a text."""
        from lightgbm import Booster  # noqa: PLC0415  an optional package

        return Booster(model_str=text.decode())

    def probabilities(self, x: Array) -> Array:
        """Return what the booster predicts."""
        return np.asarray(self._booster.predict(x, num_threads=1))


class XGBoostForm(_BoosterForm):
    """XGBoost's JSON."""

    kind: ClassVar[str] = "xgboost"
    library: ClassVar[str] = "xgboost"

    @staticmethod
    def text_of(estimator: Any) -> Array | None:
        """Return the JSON of a fitted XGBClassifier of trees, None of all others."""
        library = sys.modules.get("xgboost")
        if library is None or type(estimator) is not library.XGBClassifier:
            return None
        usual = estimator.objective in ("binary:logistic", "multi:softprob") and estimator.booster != "gblinear"
        return np.frombuffer(bytes(estimator.get_booster().save_raw("json")), np.uint8) if usual else None

    @staticmethod
    def read(text: bytes) -> Any:
        """Return the booster of a JSON text."""
        from xgboost import Booster  # noqa: PLC0415  an optional package

        booster = Booster({"nthread": 1})
        booster.load_model(bytearray(text))
        return booster

    def probabilities(self, x: Array) -> Array:
        """Return what the booster predicts."""
        return np.asarray(self._booster.inplace_predict(x))
