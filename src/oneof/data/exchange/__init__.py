"""Labels of other tools: read, written and converted, without any of these tools."""

from oneof.data.exchange.annotations import Annotations
from oneof.data.exchange.convert import FORMATS, convert, read_annotations, write_annotations

__all__ = ["FORMATS", "Annotations", "convert", "read_annotations", "write_annotations"]
