"""The bundled world, made from a seed, and data sets that others published."""

from tilp.caching import cache_folder
from tilp.datasets.bundled import PlantedRule, World, world
from tilp.datasets.published import PUBLISHED, PublishedSet, get

__all__ = [
    "PUBLISHED",
    "PlantedRule",
    "PublishedSet",
    "World",
    "cache_folder",
    "get",
    "world",
]
