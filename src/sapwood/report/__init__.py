"""The report: one page about a model and the rows it is judged on.

In: a model, rows and labels. Out: HTML that needs nothing else; scores with intervals, for the command line too.
"""
