"""The suites, one module each, named as the suite.

A module holds `NAMES`, the names of its problems, and `load(name)`, which returns one of them.
Two more are there where they are needed: `PATTERN`, a regular expression of further names that
`load` knows, and `past(name)`, the past problems of one where they are not simply the other NAMES.
Reading data and importing optional packages is left to `load`, so that listing names stays free.
"""
