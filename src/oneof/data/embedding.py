"""Features of images and texts by a pretrained network: computed once, then everything is fast on them."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from oneof.data.download import Meter
from oneof.data.folder import StrPath, decode_images
from oneof.errors import InputError, KindError
from oneof.io.arguments import as_path
from oneof.io.words import shown
from oneof.nn.pretrained import Sentences, pretrained_body
from oneof.train.runtime import resolve_device

IMAGE_NAMES = (".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


def embed(
    items: Sequence[Any],
    model: str,
    text: bool = False,
    batch_size: int = 64,
    device: str = "auto",
    progress: bool = False,
) -> NDArray[np.float32]:
    """Turn image files, or texts, into features of a pretrained network.

    Parameters
    ----------
    items : sequence of paths, or of texts
        Images are scaled to the size that the model wants, without regard to their proportions, and normalised as
        it was trained.
    model : str
        ``"timm:resnet18"``, ``"torchvision:convnext_tiny"`` or ``"hf:google/vit-base-patch16-224"``: a model of
        timm, torchvision or transformers, which load its weights. ``"hf:"`` takes folders, too.
    text : bool, default=False
        Whether the items are texts: the mean over words of the hidden states, of unit length.
    batch_size : int, default=64
        Items at a time.
    device : str, default="auto"
        Where to compute.
    progress : bool, default=False
        Whether to show on standard error how many are done.

    Returns
    -------
    array of shape (n, d)
        A row of features for each item.

    Examples
    --------
    >>> from oneof import embed
    >>> X = embed(["cat.jpg", "dog.jpg"], "timm:resnet18")  # doctest: +SKIP
    """
    _check(items, model, text, batch_size)
    place = resolve_device(device)
    network: Any = (Sentences(model) if text else pretrained_body(model)).to(place).eval()
    done: list[NDArray[np.float32]] = []
    with torch.inference_mode(), Meter("embedding", len(items), visible=progress) as meter:
        for start in range(0, len(items), batch_size):
            part = list(items[start : start + batch_size])
            given: Any = part
            if not text:
                images = decode_images(part, tuple(network.architecture["size"]), 3, cache=False)
                given = torch.as_tensor(np.array(images), device=place).permute(0, 3, 1, 2) / 255
            done.append(network(given).float().cpu().numpy())
            meter.show(start + len(part))
    return np.concatenate(done)


def images_below(folder: Path) -> list[str]:
    """Return all image files of a folder, in whatever sub-folders, named from the folder."""
    return [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*")) if _is_image(file)]


def class_folders(folder: StrPath) -> tuple[list[str], list[str]]:
    """Return the image files of a folder with one sub-folder a class, named from the folder, and their classes."""
    base = as_path(folder, "folder")
    if not base.is_dir():
        raise FileNotFoundError(f"there is no folder {shown(base)}; check the path")
    classes = sorted(each for each in base.iterdir() if each.is_dir() and not each.name.startswith("."))
    files = [(file, each.name) for each in classes for file in sorted(each.rglob("*")) if _is_image(file)]
    if not files:
        raise InputError(
            f"{shown(base)} has no image in a sub-folder, but a folder of images has one sub-folder for each "
            "class; sort them so, or give a table that names the files"
        )
    return [file.relative_to(base).as_posix() for file, _ in files], [name for _, name in files]


def _is_image(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in IMAGE_NAMES


def _check(items: Any, model: Any, text: Any, batch_size: Any) -> None:
    if not isinstance(text, bool):
        raise KindError(f"text is {shown(text, 60)}, but must be True or False; pass one of them")
    listed = isinstance(items, list | tuple) or (isinstance(items, np.ndarray) and items.ndim == 1)
    if not listed or not len(items):
        raise KindError(
            f"items is {shown(items, 60)}, but must be a list of {'texts' if text else 'paths'}; pass one"
        )
    wrong = [each for each in items if not isinstance(each, str if text else str | PathLike)]
    if wrong:
        what = "texts; fill gaps with ''" if text else "paths; drop the others"
        raise KindError(f"items holds {shown(wrong[0], 60)}, but must hold {what}")
    if not isinstance(model, str):
        raise KindError(f"model is {shown(model, 60)}, but must be a name such as 'timm:resnet18'; pass one")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size is {shown(batch_size, 60)}, but must be a whole number >= 1; pass one")
