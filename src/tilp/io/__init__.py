"""Graphs in and out: TSV, CSV, Parquet, any Arrow frame, packed graphs, Wikidata and RDF."""

from tilp.io.packing.packing import pack
from tilp.io.reading import read
from tilp.io.writing import write

__all__ = ["pack", "read", "write"]
