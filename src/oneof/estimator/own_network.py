"""What a network of the user's own must be, seen before it trains: one forward pass of two rows."""

from typing import Any

import torch
from torch import Tensor, nn

from oneof.errors import InputError
from oneof.nn.networks import Network
from oneof.nn.own import PASS_A_FACTORY
from oneof.train.batch import Data
from oneof.train.runtime import evaluating


def check_own_network(
    network: Network, given: Any, data: Data, outputs: int, owner: str, others: list[nn.Module]
) -> None:
    """Refuse a network that gives other than (rows, outputs), or that has nothing of its own to train.

    ``given`` is the parameter that it was made from, ``others`` are the networks that the method has already.
    """
    known = {id(parameter) for other in others for parameter in other.parameters()}
    if any(id(parameter) in known for parameter in network.parameters()):
        raise InputError(
            f"the factory of the network returned the same module twice, but {owner} needs networks that share "
            "no weights; make a new module in every call"
        )
    found = _outputs(network, data)
    if not isinstance(found, Tensor) or not found.is_floating_point() or found.shape != (2, outputs):
        if isinstance(given, nn.Module) and outputs != data.n_classes:
            raise InputError(
                f"{owner} needs a network with {outputs} outputs beside the one with {data.n_classes}, which a "
                f"module cannot be turned into; {PASS_A_FACTORY}"
            )
        raise InputError(
            f"network gives {_form(found)} for two rows of shape {data.shape}, but must give a float tensor of "
            f"shape {(2, outputs)}: as many outputs as {owner} needs for {data.n_classes} classes"
        )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise InputError("network has no parameters that can be trained; add a layer, or set requires_grad=True")


def _outputs(network: Network, data: Data) -> Any:
    with evaluating([network]), torch.autocast(data.weight.device.type, torch.bfloat16, enabled=network.bf16):
        try:
            return network.head(network.body(data.weight.new_zeros(2, *data.shape)))
        except Exception as error:
            reason = (str(error).splitlines() or [""])[0][:200]
            raise InputError(
                f"network cannot take rows of shape {data.shape}: a forward pass of two such rows raised "
                f"{type(error).__name__}: {reason}"
            ) from error


def _form(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
