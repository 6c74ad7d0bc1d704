"""Many trials at once: which go together, stacks of trials, CUDA graphs."""
