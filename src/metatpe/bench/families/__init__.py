"""The suites, one module each, named as the suite.

A module holds `NAMES`, the names of its problems, and `load(name)`, which returns one of them.
Reading data and importing optional packages is left to `load`, so that listing names stays free.
"""
