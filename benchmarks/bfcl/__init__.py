"""The multi-turn conversations of the Berkeley Function Calling Leaderboard, run over the counter.

Here are the loading of `bfcl-eval`'s data and classes, the ways of running a conversation, and their comparison.
None of the benchmark's own evaluation is used, and nothing of `toolcrib` but its public names.
"""
