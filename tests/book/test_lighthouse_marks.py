"""Which Lighthouse scores fail a page: performance only on a fast host, the others always."""

from typing import Any

import pytest

from tests.site.marks import FAST_HOST, MARKS, judge
from tests.site.pages import BOTH, PAGES, SAMPLE

FAST, SLOW = FAST_HOST + 500.0, FAST_HOST - 1.0


def report(index: float, **marks: int) -> dict[str, Any]:
    """A report with the given scores, and 100 for every other category."""
    scores = {name: marks.get(name.replace("-", "_"), 100) / 100 for name in MARKS}
    return {
        "environment": {"benchmarkIndex": index},
        "categories": {
            name: {"score": score, "auditRefs": [{"id": name, "weight": 1}]}
            for name, score in scores.items()
        },
        "audits": {name: {"title": f"about {name}", "score": s} for name, s in scores.items()},
    }


@pytest.mark.parametrize(("form", "mark"), [("mobile", 94), ("desktop", 98)])
def test_low_performance_fails_on_a_fast_host(form: str, mark: int) -> None:
    verdict = judge("index", form, [report(FAST, performance=mark)])
    assert verdict.faults == {"performance": (mark, ["performance: about performance"])}
    assert not verdict.note
    at_the_bound = judge("index", form, [report(FAST_HOST, performance=mark)])
    assert "performance" in at_the_bound.faults


@pytest.mark.parametrize(("form", "mark"), [("mobile", 76), ("desktop", 58)])
def test_low_performance_is_only_noted_on_a_slow_host(form: str, mark: int) -> None:
    verdict = judge("lstm/cell", form, [report(SLOW, performance=mark)])
    assert verdict.faults == {}
    for said in ("lstm/cell", form, f"performance {mark}", f"{SLOW:.0f}", str(FAST_HOST)):
        assert said in verdict.note
    assert "\n" not in verdict.note


@pytest.mark.parametrize("index", [FAST, SLOW])
@pytest.mark.parametrize("category", ["accessibility", "best_practices", "seo"])
def test_other_marks_count_on_any_host(category: str, index: float) -> None:
    verdict = judge("index", "mobile", [report(index, performance=80, **{category: 99})])
    name = category.replace("_", "-")
    assert verdict.faults[name] == (99, [f"{name}: about {name}"])
    assert ("performance" in verdict.faults) == (index == FAST)


@pytest.mark.parametrize(("form", "mark"), [("mobile", 95), ("desktop", 99)])
@pytest.mark.parametrize("index", [FAST, SLOW])
def test_marks_that_suffice_are_not_talked_about(form: str, mark: int, index: float) -> None:
    verdict = judge("index", form, [report(index, performance=mark)])
    assert (verdict.faults, verdict.note) == ({}, "")
    assert verdict.marks == {**dict.fromkeys(MARKS, 100), "performance": mark}


def test_the_median_run_decides_and_the_slowest_host() -> None:
    reports = [report(FAST, performance=mark) for mark in (90, 99, 97)]
    assert judge("index", "mobile", reports).faults == {}
    reports[1] = report(FAST, performance=91)
    assert judge("index", "mobile", reports).faults["performance"][0] == 91
    reports[2] = report(SLOW, performance=80)
    verdict = judge("index", "mobile", reports)
    assert verdict.faults == {}
    assert verdict.index == SLOW
    assert "performance 90" in verdict.note


def test_the_sample_names_pages_of_the_site() -> None:
    assert set(SAMPLE) <= set(PAGES)
    assert 5 <= len(SAMPLE) <= 8, "only a few: each takes Lighthouse 15 seconds"
    for page, (forms, why) in SAMPLE.items():
        assert "mobile" in forms, page
        assert set(forms) <= set(BOTH)
        assert why
