"""Damaged inputs against every reader: ``make fuzz``. Not collected by ``make test``."""
