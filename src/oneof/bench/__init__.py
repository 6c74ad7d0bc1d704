"""Experiments: plans, a ledger of their runs, and the statistics and tables made of it."""
