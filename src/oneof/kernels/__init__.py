"""Everything CUDA: layers, views and the optimiser step by kernels of our own.

Importing this room registers what it offers with `oneof.acceleration`, which imports it when a GPU is first used.
It can be deleted: everything still works, slower.
"""

from oneof.acceleration import offer
from oneof.kernels import fused_networks, image_views, launch, sgd

offer("any kernel", lambda x: launch.launch if launch.available(x.device) else None)
offer("residual block", fused_networks.residual_block)
offer("all stages", fused_networks.all_stages)
offer("first stages", fused_networks.first_stages)
offer("lenet", fused_networks.lenet)
offer("reframe", lambda x: image_views.reframe if image_views.apply_to(x) else None)
offer("operate", lambda x: image_views.operate if image_views.apply_to(x) else None)
offer("sgd", lambda x: sgd.FusedSGD if x.is_cuda else None)
