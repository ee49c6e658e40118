"""Writes the table of docs/engines.md from what the conformance suite reported: python -m docs.conformance A.xml B.xml

A report is made by `python -m pytest tests/engines/conformance --junitxml A.xml` in the environment of an engine.
"""

import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parent / "engines.md"
BEGIN, END = "<!-- conformance -->", "<!-- /conformance -->"
ORDER = ("mujoco", "newton", "isaac_lab", "own")
PARTS = {
    "test_states": "states", "test_dynamics": "dynamics", "test_across_engines": "held against MuJoCo",
    "test_constraints": "constraints", "test_formats": "formats", "test_recorder_rules": "recorder",
    "test_own_cameras": "cameras of their own",
}  # fmt: skip

Outcomes = dict[tuple[str, str], dict[str, list[bool]]]  # (part, row) -> engine -> of every case whether it passed


def read(reports: Iterable[Path]) -> Outcomes:
    """What was reported of every engine; skipped cases count for nothing."""
    found: Outcomes = defaultdict(lambda: defaultdict(list))
    for report in reports:
        for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest wrote it)
            engine = next((p.get("value") for p in case.iter("property") if p.get("name") == "engine"), None)
            module = case.get("classname", "").rpartition(".")[2]
            if engine is None or module not in PARTS or case.find("skipped") is not None:
                continue
            row = case.get("name", "").partition("[")[0].removeprefix("test_").replace("_", " ")
            found[PARTS[module], row][engine].append(case.find("failure") is None and case.find("error") is None)
    return found


def table(found: Outcomes) -> str:
    """A row a test, a column an engine: how many of its cases passed."""
    engines = [name for name in ORDER if any(name in cases for cases in found.values())]
    lines = [f"| | {' | '.join(engines)} |", "|---" * (len(engines) + 1) + "|"]
    for part in PARTS.values():
        lines.append(f"| **{part}** |{' |' * len(engines)}")
        rows = {row: cases for (of, row), cases in found.items() if of == part}
        for row, cases in rows.items():
            lines.append(f"| {row} | {' | '.join(_cell(cases.get(name)) for name in engines)} |")
    return "\n".join(lines)


def _cell(cases: list[bool] | None) -> str:
    if not cases:
        return "–"
    return f"{sum(cases)} of {len(cases)}" if len(cases) > 1 else "passes" if cases[0] else "**FAILS**"


def main(reports: list[str]) -> None:
    """Renew the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(read(map(Path, reports)))}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
