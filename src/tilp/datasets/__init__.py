"""The bundled world, made from a seed, and data sets that others published."""

from tilp._utils.files import cache_folder
from tilp.datasets.published import PUBLISHED, PublishedSet, get
from tilp.datasets.synthetic import World, world
from tilp.datasets.synthetic.rules import PlantedRule

__all__ = [
    "PUBLISHED",
    "PlantedRule",
    "PublishedSet",
    "World",
    "cache_folder",
    "get",
    "world",
]
