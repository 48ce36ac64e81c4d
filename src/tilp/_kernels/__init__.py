"""Compiled loops on flat arrays, which release the interpreter lock.

A kernel is compiled when it is first called and cached on disk. Kernels know nothing of labels or
files. In all of them `offsets` are row pointers: the items of row i stand at
`offsets[i]:offsets[i + 1]`. A relation is a directed id: the inverse of relation r is
`r + n_relations`. A query's own fact (-1: none) is never evidence for it.
"""
