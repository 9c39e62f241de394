"""Leaf values after a tree has grown."""
