"""Training: the loop, batches, checkpoints, and where and how to compute."""
