"""Modules as networks: what trains is a copy, so that the module that was given stays as it is."""

from copy import deepcopy
from hashlib import sha256

import torch
from torch import Tensor, nn

from oneof.errors import InputError

# What to do where a module does not serve.
PASS_A_FACTORY = "pass a factory instead: network=lambda shape, outputs: ..."


def copy_module(module: nn.Module) -> nn.Module:
    """Return a copy on the CPU, with the same weights and without gradients."""
    copied = deepcopy(module).cpu()
    copied.zero_grad(set_to_none=True)
    return copied


def redrawn_copy(module: nn.Module) -> nn.Module:
    """Return a copy whose weights are drawn anew, for a method that needs several networks of one kind.

    Frozen parameters (``requires_grad=False``) keep their values.
    """
    copied = copy_module(module)
    frozen = {name: each.clone() for name, each in copied.named_parameters() if not each.requires_grad}
    for part in reversed(list(copied.modules())):  # what a module says about its children comes last
        if not any(each.requires_grad for each in part.parameters()):
            continue
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
        elif any(each.requires_grad for each in part.parameters(recurse=False)):
            raise InputError(
                "the method needs a second network like the module, with other weights, but "
                f"{type(part).__name__} has weights and no reset_parameters() to draw them anew; {PASS_A_FACTORY}"
            )
    with torch.no_grad():
        for name, parameter in copied.named_parameters():
            if name in frozen:
                parameter.copy_(frozen[name])
    return copied


def describe_module(module: nn.Module) -> str:
    """Tell modules apart: the class, and a hash of the layers and of all values in the state."""
    digest = sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        if not isinstance(tensor, Tensor):  # extra state of any kind
            digest.update(f"{name} {tensor!r}".encode())
            continue
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
    digest.update(repr(frozen).encode())
    return f"{type(module).__module__}.{type(module).__qualname__} {digest.hexdigest()[:16]}"
