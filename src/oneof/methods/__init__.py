"""The methods: one file each, all listed here. What is listed is tested by the contract suite."""

from oneof.base import PartialLabelClassifier
from oneof.methods.cc import CC
from oneof.methods.idgp import IDGP
from oneof.methods.proden import PRODEN

METHODS: dict[str, type[PartialLabelClassifier]] = {
    "idgp": IDGP,
    "cc": CC,
    "proden": PRODEN,
}
