"""Graphs in and out: TSV, CSV, Parquet, any Arrow frame, Wikidata and RDF."""

from tilp.io.reading import read
from tilp.io.writing import write

__all__ = ["read", "write"]
