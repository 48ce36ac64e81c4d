"""Every compiled loop: plain functions on flat arrays, which release the interpreter lock.

They are compiled when first called and kept on disk. They know nothing of labels or files.
"""
