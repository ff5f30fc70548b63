"""Speed and memory of Toolcrib beside its peers: `make bench`.

One module per measure holds the code of all its contenders, so that a reader can judge whether they do the same work;
the underscored modules time them. Nothing here is part of the package, and nothing here is a test.
"""
