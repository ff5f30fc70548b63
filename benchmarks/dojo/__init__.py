"""The attacks and tasks of AgentDojo, replayed over the pipeline with a policy of provenance."""
