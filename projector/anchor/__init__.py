"""Projections of a plan's neighbours, corrected by what one measured step of the plan itself showed.

measured_step   what was measured
anchor          the records: measured beside modelled, term by term
ratios, idle    how they come about, or the reason why there are none; limits: what is plausible
transport       how much of each ratio holds for another plan
terms           the corrected terms of every plan of a batch
anchored_batch  the corrected projections, with their intervals; wording: what each says of its corrections
"""
