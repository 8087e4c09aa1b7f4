"""Plots of the benchmarks: what a table says is what the bars show."""

from xml.etree import ElementTree as ET

from benchmarks import plots

TEXT = """\
# Benchmarks

## Write

Words about it.

### Insert one row

|      | / Lance | p50      |
| ---- | ------: | -------: |
| ours | 7.03    | 14.26 ms |
| bare | 1.00    | 2.03 ms  |
| sick | -       | too slow |

## Query

### Medians, for scale only

|     | ours    |
| --- | ------: |
| one | 1.20 ms |
"""


def test_only_ratios_are_taken_from_a_section():
    found = dict(plots.sections(TEXT))
    [group] = plots.groups(found["Write"])
    assert group.title == "Insert one row"
    assert [(bar.label, bar.over, bar.ratio) for bar in group.bars] == [
        ("ours", "/ Lance", 7.03),
        ("bare", "/ Lance", 1.0),
    ]
    assert list(plots.groups(found["Query"])) == []


def test_slower_is_to_the_right_and_a_bar_ends_somewhere(tmp_path):
    bars = (plots.Bar("slow", "/ x", 1e9), plots.Bar("fast", "/ x", 0.1))
    path = plots.write("Write", [plots.Group("t", bars)], tmp_path)
    picture = ET.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    slow, fast = [each.attrib for each in picture.iter(f"{space}rect") if each.get("x")]
    assert float(slow["x"]) > float(fast["x"])
    assert float(slow["x"]) + float(slow["width"]) < float(picture.attrib["width"])
