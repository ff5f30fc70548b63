"""Code mode: model-written Python that calls tools, run in a sandbox.

Toolkit renders the prompts and takes each call of a program to the pipeline; `sandboxes` runs the program.
"""
