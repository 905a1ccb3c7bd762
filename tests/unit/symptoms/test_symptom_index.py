"""Every symptom of the two lists is answered by tests that exist; no report was forgotten or is listed twice."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.unit.symptoms.reported_of_kineto import REPORTED_OF_KINETO
from tests.unit.symptoms.reported_of_others import REPORTED_OF_OTHERS
from tests.unit.symptoms.robustness_list import BORNE
from tests.unit.symptoms.symptom import Symptom

REPORTED = (*REPORTED_OF_KINETO, *REPORTED_OF_OTHERS)
TESTS = Path(__file__).parents[2]

# every report the lists are made from, as they were read
IDS = (
    "hta#17 hta#107 hta-PR#179 hta#16 hta-PR#59 hta#56 hta#208 hta#247 hta-PR#109 hta#360 hta-PR#361 hta#241 "
    "hta-PR#149 hta#48 hta#43 hta#191 hta#250 hta#233 hta-PR#324 pytorch#33961 pytorch#98432 pytorch#113001 kineto#80 "
    "kineto#336 pytorch#130622 kineto#109 kineto-PR#646 pytorch-PR#150131 kineto#996 pytorch#192021 kineto#595 "
    "kineto#760 kineto#805 xprof#720 kineto-PR#928 kineto-PR#956 kineto#1062 kineto-PR#1567 kineto#743 tutorials#2014 "
    "kineto-PR#992 roctracer#105 roctracer#101 rocm-systems-PR#9697 perfetto#432 perfetto#503 perfetto#6421 "
    "janestreet-perfetto-PR#35 tracelens#669 tracelens#972 tracelens#60 tracelens#104 tracelens#289 tracelens-PR#547 "
    "tracelens#297 tracelens#728 tracelens-PR#451 tracelens#106 tracelens-PR#108 hyperloom#946 xprof#578 xprof#571 "
    "xprof#282 tensorflow#66410 xprof#65 xprof#380 jax#21295 xla-PR#44702 xprof#3070 xprof#3015 xprof-PR#3163 "
    "chakra#128 chakra#152 chakra#45 chakra-PR#171 astra-sim#169 nsys-ai-PR#291 nsys-ai-PR#294 nsys-ai#236 "
    "flameox#190 ascend-pytorch#133 "
)


@cache
def names_in(file: str) -> frozenset[str]:
    """Names of the tests in the one file of that name."""
    (path,) = TESTS.rglob(f"{file}.py")
    return frozenset(node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("one", [*REPORTED, *BORNE], ids=lambda one: one.text)
def test_every_symptom_is_answered_by_tests_that_exist(one: Symptom) -> None:
    assert one.tests
    for named in one.tests:
        file, name = named.split("::")
        assert name in names_in(file), named


def test_every_report_is_listed_once() -> None:
    listed = Counter(report for one in REPORTED for report in one.ids)
    assert sorted(listed) == sorted(IDS.split())
    assert set(listed.values()) == {1}


def test_no_test_of_a_symptom_is_without_one() -> None:
    answering = {named for one in (*REPORTED, *BORNE) for named in one.tests}
    for path in Path(__file__).parent.glob("test_symptoms_*.py"):
        left_over = {name for name in names_in(path.stem) if name.startswith("test_")} - {
            named.split("::")[1] for named in answering if named.startswith(path.stem)
        }
        assert not left_over, f"{path.name}: {sorted(left_over)}"
