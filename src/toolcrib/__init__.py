"""Toolcrib: define a tool once; every way of calling it goes over the same counter."""
