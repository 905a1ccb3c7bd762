"""Whatever two plans are compared, the title's direction is that of the numbers."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agents.planning.titles import DEGREES, KEEP_TITLE, SIZES, differing, title_of
from projector.specs.plan import ParallelismPlan

powers = st.sampled_from([1, 2, 4, 8, 16])
PHRASE = re.compile(r"(more|less|fewer|larger|smaller) ([A-Za-z -]+?) \((\d+) to (\d+)\)", re.IGNORECASE)
FIELD_OF = {words: field for field, words in DEGREES.items()} | {words[2]: field for field, words in SIZES.items()}


@st.composite
def plans(draw: st.DrawFn) -> ParallelismPlan:
    dp = draw(powers)
    return ParallelismPlan(
        dp=dp,
        fsdp=draw(st.sampled_from([degree for degree in (1, 2, 4, 8, 16) if dp % degree == 0])),
        tp=draw(powers),
        pp=draw(powers),
        cp=draw(powers),
        micro_batch=draw(powers),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        overlap_tp=draw(st.booleans()),
    )


@given(plans(), plans())
def test_direction_words_agree_with_both_plans(before, after):
    title = title_of(before, after)
    for word, words, old, new in PHRASE.findall(title):
        field = FIELD_OF[words]
        assert (int(old), int(new)) == (getattr(before, field), getattr(after, field))
        assert (word.lower() in ("more", "larger")) == (int(new) > int(old))
    assert (title == KEEP_TITLE) == (not set(differing(before, after)) - {"grad_accum"})
