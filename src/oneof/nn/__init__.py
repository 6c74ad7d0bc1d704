"""Networks by name, and factories of your own."""

from oneof.nn.networks import NETWORKS, Factory, Network, Shape

__all__ = ["NETWORKS", "Factory", "Network", "Shape"]
