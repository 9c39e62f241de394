"""Explanations of a model: Shapley values, importance, dependence, influence."""
