"""What is reviewed: rows, their candidate sets, and what people are shown of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oneof.errors import InputError
from oneof.io.words import reason
from oneof.labels import Votes, WeightedSets
from oneof.methods import Classifier, Model
from oneof.pipeline import Pipeline
from oneof.review.neighbours import Space, embed
from oneof.review.own_columns import OwnColumns
from oneof.review.ranking import weights_beyond

_LARGEST = 640  # pixels a side of what is sent to a browser
_SMALLEST = 140  # of what it shows: smaller images are enlarged here, since a browser would blur them
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")


@dataclass(frozen=True, eq=False)
class Material:
    """The rows of a table as a review needs them."""

    title: str
    X: Any  # a frame, or an array of features or images
    y: Any  # candidate sets over all classes: a boolean frame, or WeightedSets
    classes: NDArray[Any]
    names: Sequence[str] | None = None  # of the rows
    texts: Sequence[str] | None = None
    images: Sequence[Path] | None = None
    root: Path | None = None  # the table's folder, which image files must lie in
    ballots: Any = None  # a frame of what each annotator said, one column each
    columns: Sequence[str] | None = None  # names of the features of an array
    own: OwnColumns | None = None  # the table that an encoder has made X of
    steps: Sequence[tuple[str, Any]] = ()  # what has made X of it: they stand before every model that is saved

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weights of the candidates (n, K), 0 for other classes."""
        sets = self.y.weights if isinstance(self.y, WeightedSets) else np.asarray(self.y)
        return sets.astype(np.float64)

    @cached_property
    def counts(self) -> NDArray[np.float64] | None:
        """How many annotators named each class (n, K), where there are votes."""
        return self.y.counts if isinstance(self.y, Votes) else None

    @cached_property
    def beyond(self) -> NDArray[np.float64] | None:
        """The weights of classes that nobody named, where there are votes."""
        return weights_beyond(self.y) if isinstance(self.y, Votes) else None

    @cached_property
    def space(self) -> Space:
        """The rows as points."""
        return embed(self.X)

    @cached_property
    def centre(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of every feature; 1 where it is 0."""
        table = self.X if isinstance(self.X, np.ndarray) else self.X.to_numpy()
        spread = np.nanstd(table, 0, dtype=np.float64)
        return np.nanmean(table, 0, dtype=np.float64), np.where(spread > 0, spread, 1)

    def whole(self, model: Classifier) -> Model:
        """Return a model of X as one of the table itself."""
        return Pipeline([*self.steps, ("model", model)]) if self.steps else model

    def __len__(self) -> int:
        return len(self.weights)

    def candidates(self, row: int) -> list[Any]:
        """Return the names of a row's candidates."""
        names: list[Any] = self.classes[self.weights[row] > 0].tolist()
        return names

    def name(self, row: int) -> str:
        """Return how a row is called."""
        return str(self.names[row]) if self.names is not None else f"row {row}"

    @property
    def has_images(self) -> bool:
        """Whether rows can be seen."""
        return self.images is not None or getattr(self.X, "ndim", 0) in (3, 4)

    def picture(self, row: int) -> bytes:
        """Return the image of a row as PNG; ValueError says why there is none.

        Every image is decoded and written again, so that no file of any other kind reaches a browser.
        """
        try:
            from PIL import Image  # noqa: PLC0415 - Pillow is optional
        except ImportError:
            raise InputError("images need Pillow, which is missing; pip install oneof[review]") from None
        try:
            image: Any
            if self.images is not None:
                image = Image.open(self._inside(self.images[row]), formats=_FORMATS)
            else:
                image = Image.fromarray(np.asarray(self.X[row]).astype(np.uint8).squeeze())
            image = image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
            image.thumbnail((_LARGEST, _LARGEST))
            times = -(-_SMALLEST // max(image.size))
            if times > 1:
                image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
            file = BytesIO()
            image.save(file, "PNG")
        except Exception as error:  # broken images cause errors of every kind
            raise InputError(f"the image cannot be shown ({reason(error, 100)})") from None
        return file.getvalue()

    def _inside(self, path: Path) -> Path:
        """Return the file itself; refuse one outside the table's folder, wherever links lead."""
        file = path.resolve(strict=True)
        if self.root is None or not file.is_relative_to(self.root.resolve()):
            raise InputError("it lies outside the folder of the table")
        return file

    def features(self, row: int) -> pd.Series | None:
        """Return the features of a row by name, None of images."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[row]
        table = np.asarray(self.X)
        if table.ndim != 2:
            return None
        return pd.Series(table[row], self.columns or [f"x{k}" for k in range(table.shape[1])])
