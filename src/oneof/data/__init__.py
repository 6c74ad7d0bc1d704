"""Data sets: known ones by name, your own images, and candidate sets made from true labels."""

from oneof.data.container import PartialLabels
from oneof.data.folder import decode_images, load_images
from oneof.data.loading import describe_datasets, load_dataset

__all__ = ["PartialLabels", "decode_images", "describe_datasets", "load_dataset", "load_images"]
