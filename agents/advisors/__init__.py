"""Advisors: who picks three plans among the projected ones and explains them."""
