"""Uses that once passed without a word and gave a wrong model."""

import numpy as np
import pytest
import torch

import oneof
from misuse.rows import carry_out, parametrize, refused, works
from misuse.test_commands import FIT, judge
from misuse.test_commands import files as files  # a fixture
from misuse.test_commands import refused as refused_command
from oneof.train import train


def two_fits(kit):
    """A fit that begins, with the same checkpoint, while another has not ended."""

    def begin(epoch):
        kit.model(checkpoint=kit.folder / "c").fit(kit.X, kit.S)

    train(kit.model(checkpoint=kit.folder / "c").prepare(kit.X, kit.S, on_epoch=begin))


ROWS = [
    # --- networks
    works(
        "a module as network",
        lambda k: k.model(network=torch.nn.Linear(4, 3), epochs=20).fit(k.X, k.S).score(k.X, k.y),
        lambda score: score > 0.5,
    ),
    works(
        "a module as network is not trained itself",
        lambda k: (lambda net: (net.weight.tolist(), k.model(network=net).fit(k.X, k.S), net.weight.tolist()))(
            torch.nn.Linear(4, 3)
        ),
        lambda found: found[0] == found[2],
    ),
    refused(
        "a module with other outputs",
        ValueError,
        lambda k: k.model(network=torch.nn.Linear(4, 7)).fit(k.X, k.S),
        "(2, 7)",
        "(2, 3)",
    ),
    refused(
        "a module for other rows",
        ValueError,
        lambda k: k.model(network=torch.nn.Linear(9, 3)).fit(k.X, k.S),
        "network cannot take rows of shape (4,)",
    ),
    refused(
        "a module without parameters",
        ValueError,
        lambda k: k.model(network=torch.nn.Identity()).fit(k.X[:, :3], k.S),
        "no parameters",
    ),
    refused(
        "a factory that makes no module",
        ValueError,
        lambda k: k.model(network=lambda shape, outputs: 3).fit(k.X, k.S),
        "returned a int",
    ),
    refused(
        "an array as network", ValueError, lambda k: k.model(network=k.X).fit(k.X, k.S), "network is", "one of"
    ),
    refused(
        "a tensor as network",
        ValueError,
        lambda k: k.model(network=torch.zeros(3)).fit(k.X, k.S),
        "network is",
        "one of",
    ),
    # --- training
    refused(
        "a learning rate of ten thousand",
        ArithmeticError,
        lambda k: oneof.CC(lr=1e4, network="mlp", epochs=20, random_state=0, device="cpu").fit(k.X, k.S),
        "diverged",
        "lr=10000",
        "lower lr",
    ),
    refused("two fits with one checkpoint at once", OSError, two_fits, "checkpoint"),
    refused(
        "training without data", ValueError, lambda k: k.model(device="meta").fit(k.X, k.S), "'meta'", "'cpu'"
    ),
    refused(
        "training on Apple's GPU", ValueError, lambda k: k.model(device="mps").fit(k.X, k.S), "'mps'", "'cpu'"
    ),
    refused(
        "training on Intel's GPU", ValueError, lambda k: k.model(device="xpu").fit(k.X, k.S), "'xpu'", "'cpu'"
    ),
    # --- weights
    refused(
        "sample_weight is huge",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, np.full(40, 1e300)),
        "sample_weight",
        "divide the weights",
    ),
    refused(
        "sample_weight is infinite", ValueError, lambda k: k.model().fit(k.X, k.S, np.inf), "sample_weight", "inf"
    ),
    refused(
        "sample_weight holds words",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, k.names),
        "sample_weight",
        "real numbers",
    ),
    refused(
        "sample_weight holds dates",
        ValueError,
        lambda k: k.model().fit(k.X, k.S, np.full(40, np.datetime64("2026-01-01"))),
        "sample_weight",
        "datetime64",
    ),
    refused(
        "the score's sample_weight is too short",
        ValueError,
        lambda k: k.fitted.score(k.X, k.S, np.ones(3)),
        "(3,)",
        "(40,)",
        wording="scikit-learn's",
    ),
    refused(
        "the score's sample_weight is zero",
        ValueError,
        lambda k: k.fitted.score(k.X, k.S, np.zeros(40)),
        "zero",
        wording="scikit-learn's",
    ),
    refused(
        "the score's sample_weight is negative",
        ValueError,
        lambda k: k.fitted.score(k.X, k.S, np.r_[-1, np.ones(39)]),
        "egative",
        wording="scikit-learn's",
    ),
]

COMMANDS = [
    refused_command(
        "fit on no device", FIT.replace("--device cpu", "--device meta") + " --out new", "'meta'", "'cpu'"
    ),
    refused_command(
        "fit with a learning rate that diverges", f"{FIT} --set lr=1e30 --out new", "diverged", "lower lr"
    ),
]


@parametrize(ROWS)
def test_uses_that_passed(row, kit):
    carry_out(row, kit)


@pytest.mark.parametrize("command", COMMANDS, ids=[command.what for command in COMMANDS])
def test_commands_that_passed(command, files):
    judge(command, files)
