"""What people run: how likely each projected layout is to be the one adopted, from published runs and their history.

The projector says how fast a layout is; among layouts that it cannot tell apart, published runs show a preference.
"""
