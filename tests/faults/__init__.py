"""Faults of machines, disks and clocks against real processes: ``make faults``. Not collected by ``make test``."""
