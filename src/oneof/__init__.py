"""oneof: learn classifiers from candidate label sets. The truth is one of these labels."""

from oneof.labels import encode, from_complementary, from_votes
from oneof.methods import METHODS
from oneof.methods.cc import CC
from oneof.methods.idgp import IDGP
from oneof.methods.proden import PRODEN
from oneof.models import load_model

__version__ = "0.1.0"
__all__ = ["CC", "IDGP", "METHODS", "PRODEN", "encode", "from_complementary", "from_votes", "load_model"]
