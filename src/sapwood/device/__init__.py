"""The only door to native code: one module a device, all with the same verbs.

In: arrays. Out: arrays. A device decides nothing and never falls back to another in silence.
"""
