"""What requests and answers hold, as `/openapi.json` documents it."""

from tilp.web.schemas.answers import (
    DataSummary,
    Entity,
    EntityFacts,
    Error,
    Health,
    ModelSummary,
    Prediction,
    Relation,
    RulePage,
)
from tilp.web.schemas.explanations import Explained
from tilp.web.schemas.requests import (
    Asked,
    BatchRequest,
    ExplainRequest,
    PictureRequest,
    PredictRequest,
)

__all__ = [
    "Asked",
    "BatchRequest",
    "DataSummary",
    "Entity",
    "EntityFacts",
    "Error",
    "ExplainRequest",
    "Explained",
    "Health",
    "ModelSummary",
    "PictureRequest",
    "PredictRequest",
    "Prediction",
    "Relation",
    "RulePage",
]
