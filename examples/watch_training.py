"""Callbacks: told epoch, loss and scores after every epoch; one that returns True ends the training."""

import numpy as np
from sklearn.datasets import load_iris

import oneof

X, y = load_iris(return_X_y=True)
candidates = np.random.default_rng(0).random((150, 3)) < 0.3
candidates[np.arange(150), y] = True


def good_enough(report):
    """Print a line now and then, and end the training at a score of 0.85."""
    if report.epoch % 20 == 0:
        print(f"epoch {report.epoch}: loss {report.loss:.3f}, score {report.scores['validation_score']:.3f}")
    return report.scores["validation_score"] > 0.85


# Beside it, others may write to a tool: oneof.callbacks.TensorBoard(SummaryWriter("runs")), MLflow(mlflow),
# WandB(wandb.init()) or OptunaPruning(trial).
model = oneof.CC(network="linear", validation_fraction=0.2, random_state=0)
model.fit(X, candidates, callbacks=[good_enough])
print(f"ended after {len(model.history_['loss'])} of {model.epochs} epochs")
