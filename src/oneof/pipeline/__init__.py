"""Tables as people have them become numbers; a pipeline of such steps and a method is one model."""

from oneof.pipeline.chain import Pipeline, make_pipeline
from oneof.pipeline.table_encoder import TableEncoder

__all__ = ["Pipeline", "TableEncoder", "make_pipeline"]
