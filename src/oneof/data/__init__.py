"""Data: ways of making candidate labels out of true ones."""
