"""Projections of a plan's neighbours, corrected by what one measured step of the plan itself showed.

measured_step   what was measured
ratios          measured against modelled, term by term: `Anchor`, or the reason why there is none
transport       how much of each ratio holds for another plan
terms           the corrected terms of every plan of a batch
anchored_batch  the corrected projections, with their intervals
"""
