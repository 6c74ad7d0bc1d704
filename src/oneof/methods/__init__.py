"""The methods: one file each, all listed here. What is listed is tested by the contract suite."""

from oneof.estimator.classifier import PartialLabelClassifier
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

METHODS: dict[str, type[PartialLabelClassifier]] = {
    "idgp": IDGP,
    "plcr": PLCR,
    "pico": PiCO,
    "valen": VALEN,
    "cavl": CAVL,
    "lws": LWS,
    "rc": RC,
    "cc": CC,
    "proden": PRODEN,
    "membership": Membership,
}
