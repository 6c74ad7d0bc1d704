"""One pass over a table: its rows are written into a store, and what is told of all of them is added up."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oneof.data.download import Meter
from oneof.data.on_disk.encoded import EncodedRows, to_bytes
from oneof.data.on_disk.label_sets import LabelReader
from oneof.data.on_disk.moments import Moments
from oneof.data.on_disk.source import Checked, Rows, Show, Source, ahead, check_unchanged
from oneof.data.on_disk.store import Spool, Writer
from oneof.pipeline import TableEncoder


@contextmanager
def meter(name: str, progress: bool) -> Iterator[Show]:
    """Give what shows how much of a table is read."""
    with Meter(f"reading {name}", 1000, visible=progress) as shown:
        yield lambda share: shown.show(int(1000 * share))


class Reading:
    """One pass over a table: what comes is written, and what is told of all rows is added up."""

    def __init__(
        self,
        source: Source,
        columns: Sequence[str],
        encoder: TableEncoder | None,
        candidates: str | None,
        separator: str | None,
        ids: Sequence[str],
        part: Path,
    ) -> None:
        self.encoder, self.ids, self.rows = encoder, list(ids), 0
        self.source: Rows = source if encoder is None else EncodedRows(source, encoder)
        self.numbers: list[str] = list(columns) if encoder is None else encoder.get_feature_names_out().tolist()
        self.labels = None if candidates is None else LabelReader(candidates, separator, source.name)
        self.moments, self._checked = Moments(len(self.numbers)), Checked(self.source, self.numbers)
        self._files = ExitStack()
        self._writer = self._files.enter_context(Writer(part))
        self._folder = part.parent
        self._sizes, self._codes = self._spool("I32"), self._spool("I32")
        self._texts = [(self._spool("I32"), self._spool("U8")) for _ in ids]

    def _spool(self, kind: str) -> Spool:
        return Spool(kind, self._files.enter_context(TemporaryFile(dir=self._folder)))

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def read(self, identity: Any, progress: bool) -> None:
        """Read all rows and write the store."""
        written = list(dict.fromkeys([*([] if self.labels is None else [self.labels.column]), *self.ids]))
        with meter(self.source.name, progress) as show:
            for piece in ahead(self.source.pieces(written, self.numbers, self._digest, show)):
                for rounded in piece.taken:
                    self._writer.append(rounded)
                self._take(piece.written)
        check_unchanged(self.source, self.rows, identity)
        self._writer.end("X", "F32", [self.rows, len(self.numbers)])
        classes = None if self.labels is None else self._write_sets(self.labels)
        for number, (lengths, _) in enumerate(self._texts):
            self._write_spool(f"length {number}", "I32", lengths)
        for number, (_, texts) in enumerate(self._texts):
            self._write_spool(f"text {number}", "U8", texts)
        facts = {"identity": identity, "features": self.numbers, "classes": classes, "ids": self.ids}
        facts |= {"encoder": self._write_encoder()}
        self._writer.finish(facts | {"mean": self.moments.mean.tolist(), "std": self.moments.std.tolist()})
        self.moments.warn_of_lost(self.numbers, self.source.name)

    def _digest(self, exact: NDArray[np.float64]) -> NDArray[np.float32]:
        rounded = self._checked.rounded(exact)
        self.moments.add(exact)
        return rounded

    def _take(self, frame: Any) -> None:
        if self.labels is not None:
            sizes, codes = self.labels.read(frame[self.labels.column], self.rows)
            self._sizes.add(sizes)
            self._codes.add(codes)
        for name, (lengths, texts) in zip(self.ids, self._texts, strict=True):
            cells = [str(cell).encode() for cell in frame[name]]
            lengths.add(np.array([len(cell) for cell in cells], dtype=np.int32))
            texts.add(np.frombuffer(b"".join(cells), dtype=np.uint8))
        self.rows += len(frame)

    def _write_sets(self, labels: LabelReader) -> list[Any]:
        """Write sizes and candidates, with the numbers that classes have in sorted order; return the classes."""
        names, places = labels.classes()
        self._write_spool("sizes", "I32", self._sizes)
        self._codes.rewind()
        for size in self._sizes.pieces():
            codes = self._codes.take(int(size.sum()))
            keys = np.repeat(np.arange(len(size)), size) * len(names) + places[codes]
            keys.sort()
            self._writer.append((keys % len(names)).astype(np.int32))
        self._writer.end("labels", "I32", [self._codes.count])
        found: list[Any] = names.tolist()
        return found

    def _write_encoder(self) -> Any:
        """Write the arrays of the encoder; return its facts."""
        if self.encoder is None:
            return None
        content = to_bytes(self.encoder)
        self._writer.append(content)
        self._writer.end("encoder", "U8", content.shape)
        return self.encoder.facts()

    def _write_spool(self, name: str, kind: str, spool: Spool) -> None:
        for piece in spool.pieces():
            self._writer.append(piece)
        self._writer.end(name, kind, [spool.count])
