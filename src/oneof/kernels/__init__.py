"""Everything CUDA. It can be deleted: all else still works, slower."""
