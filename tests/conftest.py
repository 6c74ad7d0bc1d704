"""What tests share: small problems, real data sets, all methods in a form that runs on tables, a browser."""

import os

# Before NumPy is loaded, and for all processes that tests start: they run side by side, and threads that wait for
# each other on a busy core took eight times as long as one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import settings
from sklearn.datasets import load_digits

from oneof import METHODS
from oneof.data import describe_datasets, load_dataset
from oneof.train import train

# New examples on every run at a desk, the same ones where a run decides whether a change lands.
settings.register_profile("oneof", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("oneof")

torch.set_num_threads(1)  # whatever the environment says

# Views where a method needs them; a queue that small problems fill; a warm-up that ends within a few epochs, and a
# teacher that a few steps teach.
NEEDS = {
    "plcr": {"views": "plain+jitter+jitter"},
    "pico": {"views": "plain+jitter+jitter", "queue_size": 64},
    "dirk": {"queue_size": 64, "teacher_momentum": 0.9},
    "papi": {"embedding_size": 16},
    "crosel": {"warm_up": 1, "memory": 2, "threshold": 0.6},
    "idgp": {"warm_up": 1},
    "valen": {"warm_up": 1},
    "membership": {"warm_up": 1},
    "pop": {"warm_up": 1, "period": 1, "theta": 0.5, "increase": 0.5, "theta_end": 0.9},
}
MEMBERS = {name: partial(method, **NEEDS.get(name, {})) for name, method in METHODS.items()}
every_method = pytest.mark.parametrize("method", MEMBERS.values(), ids=MEMBERS)

collect_ignore = ["wheel"]  # which make wheel runs
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = 1200, 400


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Keep what tests make out of the user's own cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def real_dataset():
    """Load a real data set by name, or skip the test visibly."""

    def load(name):
        if not os.environ.get("ONEOF_DATA"):
            pytest.skip("set ONEOF_DATA to the folder of the real data sets")
        if not next(each.present for each in describe_datasets() if each.name == name):
            pytest.skip(f"the files of {name} are not in $ONEOF_DATA")
        return load_dataset(name)

    return load


@pytest.fixture(scope="session")
def digits():
    """Real scanned digits with uniformly flipped candidates (0.3): X, candidates, y."""
    X, y = load_digits(return_X_y=True)
    candidates = np.random.default_rng(0).random((len(X), 10)) < 0.3
    candidates[np.arange(len(X)), y] = True
    return X.astype(np.float32), candidates, y


@pytest.fixture
def blobs():
    """Forty rows in three classes that are easy to tell apart, some with two candidates: X, candidates, y."""
    rng = np.random.default_rng(7)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 4)) + 4 * np.eye(3, 4)[y]
    candidates = rng.random((40, 3)) < 0.3
    candidates[np.arange(40), y] = True
    return X, candidates, y


def fit_with(model, *given, **hooks):
    """Fit with hooks that `fit` does not have, such as on_epoch."""
    return model.finish(train(model.prepare(*given, **hooks)))


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Opened:
    page: object
    troubles: list = field(default_factory=list)  # whatever a quiet page does not do

    def count(self, selector):
        return self.page.locator(selector).count()

    def overflow(self):
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture
def open_page(browser, tmp_path):
    """A function that opens a page, given as text, from a file, and notes all that it does beyond being shown."""
    contexts = []

    def open_text(text, width=DESKTOP, scheme="light"):
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        opened = Opened(contexts[-1].new_page())
        note = opened.troubles.append
        opened.page.on("console", lambda message: note(f"console: {message.text}"))
        opened.page.on("pageerror", lambda error: note(f"error: {error}"))
        opened.page.on("dialog", lambda dialog: (note(f"dialog: {dialog.message}"), dialog.dismiss()))
        opened.page.on("request", lambda request: request.url == file.as_uri() or note(f"request: {request.url}"))
        opened.page.goto(file.as_uri())
        return opened

    yield open_text
    for context in contexts:
        context.close()
