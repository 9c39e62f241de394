"""Tables that do not fit in memory: two passes over batches of rows, into codes in a
folder that training reads.

In: a `Source`. Out: a store, a folder that a `Dataset` is opened from.
"""
