"""The pipeline: the only code that runs a tool for a model, one file for each step.

Every adapter calls it; a gate, a retry or a hook anywhere else would be a second pipeline.
"""

from toolcrib.pipeline._approve import shown_values
from toolcrib.pipeline._pipeline import Pipeline
from toolcrib.pipeline._plan import Executor, Performed, Prepared, RunnableTool
from toolcrib.pipeline._run import CallLimits, ErrorPolicy, Requirement, Run, must_call

__all__ = [
    "CallLimits",
    "ErrorPolicy",
    "Executor",
    "Performed",
    "Pipeline",
    "Prepared",
    "Requirement",
    "Run",
    "RunnableTool",
    "must_call",
    "shown_values",
]
