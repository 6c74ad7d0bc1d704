"""Pretrained networks of timm, torchvision and transformers by name; the libraries are imported when asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from oneof.io.words import listed, reason, shown

_SIZE = 224  # of images, where a model does not say it
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, where a model does not say them


@dataclass(frozen=True)
class PretrainedNetwork:
    """What turns images, or texts, into features.

    ``features`` takes normalised images (B, 3, height, width), or a list of texts, and returns features (B, d).
    """

    module: nn.Module
    features: Callable[[Any], Tensor]
    size: tuple[int, int] = (_SIZE, _SIZE)
    mean: tuple[float, ...] = _MEAN
    std: tuple[float, ...] = _STD

    def normalised(self, images: Tensor) -> Tensor:
        """Return bytes (B, height, width, 3) as the model was trained on them (B, 3, height, width)."""
        floats = images.to(torch.float32).permute(0, 3, 1, 2) / 255
        mean, std = (torch.tensor(each, device=floats.device).view(1, 3, 1, 1) for each in (self.mean, self.std))
        return (floats - mean) / std


def load_pretrained(name: str, text: bool = False) -> PretrainedNetwork:
    """Load a network with its weights, such as ``"timm:resnet18"``, without the layer of its own classes."""
    library, colon, model = name.partition(":")
    if library not in _LIBRARIES or not colon or not model:
        raise ValueError(
            f"model is {shown(name, 80)}, but must name a library of {listed(_LIBRARIES)} and a model of it, such "
            "as 'timm:resnet18'"
        )
    if text and library != "hf":
        raise ValueError(f"model is {shown(name, 80)}, but texts need a model of transformers, such as 'hf:...'")
    package, load = _LIBRARIES[library]
    try:
        found = load(model, text)
    except ImportError as error:
        raise ValueError(
            f"{shown(name)} needs {package}, which cannot be imported ({reason(error)}); pip install "
            "oneof[pretrained]"
        ) from None
    except Exception as error:  # these libraries raise errors of many kinds
        raise OSError(
            f"the weights of {shown(name)} cannot be loaded ({reason(error)}); check the name, and connect to the "
            "network once, or with hf: name a folder that holds them"
        ) from None
    found.module.eval().requires_grad_(False)
    return found


def _timm(name: str, text: bool) -> PretrainedNetwork:
    import timm  # noqa: PLC0415 - optional

    module = timm.create_model(name, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(module)
    return PretrainedNetwork(
        module, module, _pair(config["input_size"][1:]), *_norm(config["mean"], config["std"])
    )


def _torchvision(name: str, text: bool) -> PretrainedNetwork:
    from torchvision import models  # noqa: PLC0415 - optional

    weights = models.get_model_weights(name).DEFAULT
    module, made = models.get_model(name, weights=weights), weights.transforms()
    last = [path for path, layer in module.named_modules() if isinstance(layer, nn.Linear)][-1]
    owner, _, leaf = last.rpartition(".")
    setattr(module.get_submodule(owner), leaf, nn.Identity())
    return PretrainedNetwork(module, module, _pair(made.crop_size), *_norm(made.mean, made.std))


def _transformers(name: str, text: bool) -> PretrainedNetwork:
    import transformers  # noqa: PLC0415 - optional

    # Safetensors alone: other files of weights are pickles.
    module = transformers.AutoModel.from_pretrained(name, use_safetensors=True)
    if text:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        return PretrainedNetwork(module, lambda texts: _sentence(module, tokenizer, texts))
    processor = transformers.AutoImageProcessor.from_pretrained(name)
    asked = getattr(processor, "crop_size", None) or processor.size
    sides = [asked.get(each, asked.get("shortest_edge", _SIZE)) for each in ("height", "width")]
    norm = _norm(processor.image_mean, processor.image_std)

    def features(images: Tensor) -> Tensor:
        return _pooled(module(pixel_values=images))

    return PretrainedNetwork(module, features, _pair(sides), *norm)


def _pooled(outputs: Any) -> Tensor:
    """Return what a model of images says of a whole image (B, d)."""
    pooled = getattr(outputs, "pooler_output", None)
    hidden: Tensor = outputs.last_hidden_state.mean(1) if pooled is None else pooled
    return hidden.flatten(1)


def _sentence(module: Any, tokenizer: Any, texts: list[str]) -> Tensor:
    """Return the mean of the hidden states of the words of each text (B, d), of unit length."""
    words = tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(module.device)
    hidden, mask = module(**words).last_hidden_state, words["attention_mask"].unsqueeze(-1)
    mean: Tensor = (hidden * mask).sum(1) / mask.sum(1).clamp_min(1)
    return nn.functional.normalize(mean, dim=-1)


def _pair(sides: Sequence[Any]) -> tuple[int, int]:
    sides = [int(each) for each in sides]
    return sides[0], sides[-1]


def _norm(mean: Sequence[float], std: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(map(float, mean)), tuple(map(float, std))


_LIBRARIES: dict[str, tuple[str, Callable[[str, bool], PretrainedNetwork]]] = {
    "timm": ("timm", _timm),
    "torchvision": ("torchvision", _torchvision),
    "hf": ("transformers", _transformers),
}
