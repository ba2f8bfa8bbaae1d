"""A generation built of settings, its manifests read, without a server."""

from random import Random

from topodns.app.generation import Assembly, Generation, Machine
from topodns.plugins.block import Settings
from topodns.plugins.kubernetes.clusters import load_manifests


def assembly(host: str = "") -> Assembly:
    """One that leaves nothing to chance, on a machine of this name."""
    return Assembly(Machine(host, "", frozenset(), Random(0)), lambda line: None)


def read_whole(building: Assembly, settings: Settings) -> Generation:
    """The generation that it builds of these settings, all of its cluster known."""
    generation = building.build(settings)
    load_manifests(generation.clusters)
    return generation
