"""Graphs in and out: TSV, CSV, Parquet, any Arrow frame, packed graphs."""

from tilp.io.packed.pack import pack
from tilp.io.read import read
from tilp.io.tables import write

__all__ = ["pack", "read", "write"]
