"""A small NumPy app: agents that each want to be somewhere else."""
