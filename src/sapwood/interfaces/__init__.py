"""The other ways in: thin, without an algorithm, over `sapwood.train`, `Dataset` and
`Booster`.

In: calls in another library's conventions. Out: what that library expects back.
"""
