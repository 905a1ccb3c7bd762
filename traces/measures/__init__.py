"""Measures of one trace beside the window identity; each is a pure function, and each has a merge over ranks."""
