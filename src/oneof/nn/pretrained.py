"""Pretrained networks of timm, torchvision and transformers by name; the libraries are imported when asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from oneof.errors import InputError
from oneof.io.words import listed, reason, shown

FROZEN = "+frozen"  # behind the name of a network whose pretrained part is to stay as it is
_SIZE = 224  # of images, where a model does not say it
_LARGEST = 4096  # pixels a side that a file may ask for
# What a config of transformers could load beyond its own layers: code, kernels, other networks.
_LOADING = ("auto_map", "quantization_config", "attn_implementation", "_attn_implementation", "use_kernels")


class Architecture(TypedDict):
    """All that makes a network without its weights, as JSON holds it: no hub is asked when a model is loaded."""

    library: str
    model: str
    config: dict[str, Any]  # of transformers; of the others the name is enough
    size: list[int]
    mean: list[float]
    std: list[float]
    features: int


class PretrainedBody(nn.Module):
    """Pixels from 0 to 1 (B, 1 or 3, height, width) -> features (B, d) of a network without its own classes.

    Images are scaled to the size of the network and normalised as it was trained; gray ones have three equal
    channels. A frozen network neither changes nor is in training mode, and its features are standardised, as the
    columns of tables are.
    """

    def __init__(self, architecture: Architecture, frozen: bool) -> None:
        super().__init__()
        self.architecture, self.frozen = architecture, frozen
        self.module = _LIBRARIES[architecture["library"]].make(architecture)
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(architecture[name]).view(1, 3, 1, 1), persistent=False)
        self.standardise = nn.BatchNorm1d(architecture["features"], affine=False) if frozen else nn.Identity()
        if frozen:
            self.module.requires_grad_(False)

    def train(self, mode: bool = True) -> "PretrainedBody":
        """Leave a frozen network in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return the features."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            out = self.module(self.normalised(x))
        standardised: Tensor = self.standardise(_pooled(out))
        return standardised

    def normalised(self, x: Tensor) -> Tensor:
        """Return images as the network was trained on them."""
        size = tuple(self.architecture["size"])
        if x.shape[-2:] != size:
            x = nn.functional.interpolate(x, size, mode="bilinear", align_corners=False, antialias=True)
        return (x.expand(-1, 3, -1, -1) - self.mean) / self.std  # type: ignore[operator]


@dataclass(frozen=True)
class _Library:
    """How one library loads a network, and makes one of the same layers without weights."""

    package: str
    load: Callable[[str], tuple[Architecture, nn.Module]]
    make: Callable[[Architecture], nn.Module]
    size: Callable[[str], tuple[int, int]]


def is_pretrained(network: Any) -> bool:
    """Tell whether a network is a name such as ``"timm:resnet18"``."""
    return isinstance(network, str) and network.partition(":")[0] in _LIBRARIES and ":" in network


def is_frozen(network: Any) -> bool:
    """Tell whether the pretrained part of a network by name is to stay as it is."""
    return is_pretrained(network) and network.endswith(FROZEN)


def pretrained_body(name: str, architecture: Architecture | None = None) -> PretrainedBody:
    """Return a body with the weights of its library's hub; of a known architecture one without them."""
    if architecture is not None:
        return PretrainedBody(architecture, is_frozen(name))
    library, model = _named(name.removesuffix(FROZEN))
    architecture, loaded = _loading(name, library, lambda: library.load(model))
    with torch.no_grad():
        probe = loaded.eval()(torch.zeros(2, 3, *architecture["size"], dtype=next(loaded.parameters()).dtype))
    architecture["features"] = _pooled(probe).shape[1]
    if (wrong := check_architecture(architecture)) is not None:
        raise InputError(f"{shown(name)} cannot be used: {wrong}; choose another network")
    body = PretrainedBody(architecture, is_frozen(name))  # as it is made when a model file is read
    _loading(name, library, lambda: body.module.load_state_dict(loaded.state_dict()))
    return body


def input_size(name: str) -> tuple[int, int]:
    """Return height and width of the images that a network by name wants, without its weights."""
    library, model = _named(name.removesuffix(FROZEN))
    found: tuple[int, int] = _loading(name, library, lambda: library.size(model))
    return found


def check_architecture(value: Architecture) -> str | None:
    """Say what is wrong with an architecture that a file holds; None where nothing is."""
    if value["library"] not in _LIBRARIES:
        return f"its library is {shown(value['library'])}, but must be one of {listed(_LIBRARIES)}"
    if len(value["size"]) != 2 or not all(1 <= side <= _LARGEST for side in value["size"]):
        return f"its size is {shown(value['size'])}, but must be height and width up to {_LARGEST}"
    if len(value["mean"]) != 3 or len(value["std"]) != 3 or not all(each > 0 for each in value["std"]):
        return "its mean and std must have three numbers, those of std above 0"
    if value["features"] < 1:
        return f"its features are {value['features']}, but must be >= 1"
    wrong = [key for key in value["config"] if key in _LOADING or "backbone" in key]
    return f"its config has {shown(wrong[0])}, which could load more than the file" if wrong else None


class Sentences(nn.Module):
    """Texts -> the mean of the hidden states of their words (B, d), of unit length."""

    def __init__(self, name: str) -> None:
        super().__init__()
        library, folder = _named(name)
        if library.package != "transformers":
            raise InputError(
                f"model is {shown(name, 80)}, but texts need a model of transformers, such as 'hf:...'"
            )
        self.module, self.tokenizer = _loading(name, library, lambda: _text_model(folder))

    def forward(self, texts: list[str]) -> Tensor:
        """Return the features of texts."""
        words = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt").to(self.module.device)
        hidden, mask = self.module(**words).last_hidden_state, words["attention_mask"].unsqueeze(-1)
        mean: Tensor = (hidden * mask).sum(1) / mask.sum(1).clamp_min(1)
        return nn.functional.normalize(mean, dim=-1)


def _named(name: str) -> tuple[_Library, str]:
    library, colon, model = name.partition(":")
    if library not in _LIBRARIES or not colon or not model:
        raise InputError(
            f"model is {shown(name, 80)}, but must name a library of {listed(_LIBRARIES)} and a model of it, such "
            "as 'timm:resnet18'"
        )
    return _LIBRARIES[library], model


def _loading(name: str, library: _Library, load: Callable[[], Any]) -> Any:
    """Ask a library; what goes wrong there is one sentence."""
    try:
        return load()
    except ImportError as error:
        raise InputError(
            f"{shown(name)} needs {library.package}, which cannot be imported ({reason(error)}); pip install "
            "oneof[pretrained]"
        ) from None
    except Exception as error:  # these libraries raise errors of many kinds
        raise OSError(
            f"the weights of {shown(name)} cannot be loaded ({reason(error)}); check the name, and connect to the "
            "network once, or with hf: or timm:local-dir: name a folder that holds them"
        ) from None


def _facts(
    library: str, model: str, size: Sequence[Any], mean: Any, std: Any, config: dict[str, Any] | None = None
) -> Architecture:
    sides = [int(each) for each in size]
    norms = [[float(each) for each in part] for part in (mean, std)]
    return Architecture(
        library=library, model=model, config=config or {}, size=[sides[0], sides[-1]],
        mean=norms[0], std=norms[1], features=1,
    )  # fmt: skip


# --- timm ------------------------------------------------------------------------------------------------------


def _load_timm(name: str) -> tuple[Architecture, nn.Module]:
    import timm  # noqa: PLC0415 - optional

    source, colon, place = name.partition(":")  # such as local-dir:FOLDER, as timm writes it
    if source == "local-dir" and not (Path(place) / "model.safetensors").is_file():
        raise InputError("there is no model.safetensors in the folder, and other files of weights are not read")
    module = timm.create_model(name, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(module)
    known = module.pretrained_cfg["architecture"] if colon else name  # what makes it again without its weights
    architecture = _facts("timm", known, config["input_size"][1:], config["mean"], config["std"])
    if colon and str(module) != str(_make_timm(architecture)):
        raise InputError(f"its config.json makes other layers than those of {shown(known)}")
    return architecture, module


def _make_timm(architecture: Architecture) -> nn.Module:
    import timm  # noqa: PLC0415 - optional

    made: nn.Module = timm.create_model(architecture["model"], pretrained=False, num_classes=0)
    return made


def _size_timm(name: str) -> tuple[int, int]:
    import timm  # noqa: PLC0415 - optional

    if ":" in name:  # timm tells what its config.json says of the model itself alone
        sides = timm.data.resolve_model_data_config(timm.create_model(name, pretrained=False))["input_size"][1:]
    else:
        sides = timm.get_pretrained_cfg(name, allow_unregistered=False).input_size[1:]
    return int(sides[0]), int(sides[1])


# --- torchvision -----------------------------------------------------------------------------------------------


def _load_torchvision(name: str) -> tuple[Architecture, nn.Module]:
    from torchvision import models  # noqa: PLC0415 - optional

    weights = models.get_model_weights(name).DEFAULT
    how = weights.transforms()
    architecture = _facts("torchvision", name, how.crop_size, how.mean, how.std)
    return architecture, _without_classes(models.get_model(name, weights=weights))


def _make_torchvision(architecture: Architecture) -> nn.Module:
    from torchvision import models  # noqa: PLC0415 - optional

    return _without_classes(models.get_model(architecture["model"], weights=None))


def _without_classes(module: nn.Module) -> nn.Module:
    linear = [path for path, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise InputError("it has no linear layer whose inputs could be its features")
    owner, _, leaf = linear[-1].rpartition(".")
    setattr(module.get_submodule(owner), leaf, nn.Identity())
    return module


def _size_torchvision(name: str) -> tuple[int, int]:
    from torchvision import models  # noqa: PLC0415 - optional

    side = models.get_model_weights(name).DEFAULT.transforms().crop_size
    return int(side[0]), int(side[-1])


# --- transformers ----------------------------------------------------------------------------------------------


def _load_transformers(name: str) -> tuple[Architecture, nn.Module]:
    import transformers  # noqa: PLC0415 - optional

    # Safetensors alone: other files of weights are pickles.
    module = transformers.AutoModel.from_pretrained(name, use_safetensors=True)
    config = {key: each for key, each in module.config.to_dict().items() if key not in _LOADING}
    config.pop("_name_or_path", None)  # a path of the machine that loaded it
    processor = transformers.AutoImageProcessor.from_pretrained(name)
    norm = processor.image_mean, processor.image_std
    return _facts("hf", str(config.get("model_type")), _size_of(processor), *norm, config), module


def _make_transformers(architecture: Architecture) -> nn.Module:
    import transformers  # noqa: PLC0415 - optional

    config = transformers.AutoConfig.for_model(**architecture["config"])
    made: nn.Module = transformers.AutoModel.from_config(config, attn_implementation="eager")
    return made


def _size_transformers(name: str) -> tuple[int, int]:
    import transformers  # noqa: PLC0415 - optional

    return _size_of(transformers.AutoImageProcessor.from_pretrained(name))


def _size_of(processor: Any) -> tuple[int, int]:
    asked = getattr(processor, "crop_size", None) or processor.size
    height, width = (int(asked.get(each, asked.get("shortest_edge", _SIZE))) for each in ("height", "width"))
    return height, width


def _text_model(name: str) -> tuple[Any, Any]:
    import transformers  # noqa: PLC0415 - optional

    module = transformers.AutoModel.from_pretrained(name, use_safetensors=True)
    return module, transformers.AutoTokenizer.from_pretrained(name)


def _pooled(outputs: Any) -> Tensor:
    """Return what a network says of whole images (B, d)."""
    if isinstance(outputs, Tensor):
        return outputs.flatten(1)
    pooled = getattr(outputs, "pooler_output", None)
    hidden: Tensor = outputs.last_hidden_state.mean(1) if pooled is None else pooled
    return hidden.flatten(1)


_LIBRARIES: dict[str, _Library] = {
    "timm": _Library("timm", _load_timm, _make_timm, _size_timm),
    "torchvision": _Library("torchvision", _load_torchvision, _make_torchvision, _size_torchvision),
    "hf": _Library("transformers", _load_transformers, _make_transformers, _size_transformers),
}
