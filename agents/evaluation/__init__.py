"""The projector and its search held against published measurements: rows in, error figures and hit rates out.

Pure: what is read is text that `app` hands over, what comes back are frozen records. No figure is keyed by a model, a
workload or a row.
"""
