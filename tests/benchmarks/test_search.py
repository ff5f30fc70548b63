from __future__ import annotations

from benchmarks.bfcl.search import alone, load, recall, toolcrib_search


def test_tools_are_found_at_least_as_well_as_by_bm25s_alone() -> None:
    tools, questions = load()
    unseen = [one for one in questions if one.held_out]

    found = recall(toolcrib_search(tools), unseen)

    assert len(unseen) > 1000
    assert found >= recall(alone(tools), unseen)
    assert found >= 0.84
