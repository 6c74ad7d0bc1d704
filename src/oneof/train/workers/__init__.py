"""One training by several processes: each has a part of the rows and of their label tables.

All workers draw the same order of all rows, and a worker takes of every step the rows that it has. Random numbers
are drawn for whole steps, and every worker takes its own; gradients are those of the mean over all rows of the
step. So the weights are those of a training by one process, whatever the number of workers and wherever rows are.
"""
