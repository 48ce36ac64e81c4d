"""The bundled synthetic world and published data sets."""

from tilp._utils.files import cache_folder
from tilp.datasets.published import PUBLISHED, PublishedSet, get
from tilp.datasets.synthetic import PlantedRule, World, world

__all__ = ["PUBLISHED", "PlantedRule", "PublishedSet", "World", "cache_folder", "get", "world"]
