"""oneof: learn classifiers from candidate label sets. The truth is one of these labels."""

from oneof.data import PartialLabels, load_dataset, load_images
from oneof.estimator.model_file import load_model
from oneof.estimator.together import fit_together
from oneof.labels import encode, from_complementary, from_votes
from oneof.methods import METHODS
from oneof.methods.cavl import CAVL
from oneof.methods.cc import CC
from oneof.methods.idgp import IDGP
from oneof.methods.lws import LWS
from oneof.methods.membership import Membership
from oneof.methods.pico import PiCO
from oneof.methods.plcr import PLCR
from oneof.methods.proden import PRODEN
from oneof.methods.rc import RC
from oneof.methods.valen import VALEN

__version__ = "0.1.0"
__all__ = [
    "CAVL",
    "CC",
    "IDGP",
    "LWS",
    "METHODS",
    "PLCR",
    "PRODEN",
    "RC",
    "VALEN",
    "Membership",
    "PartialLabels",
    "PiCO",
    "encode",
    "fit_together",
    "from_complementary",
    "from_votes",
    "load_dataset",
    "load_images",
    "load_model",
]
