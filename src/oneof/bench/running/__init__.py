"""Carries out the runs of a plan."""
