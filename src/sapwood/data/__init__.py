"""From any table to bins.

In: what users hold (arrays, data frames, Arrow, lists). Out: a `Dataset`, binned once
and used many times.
"""
