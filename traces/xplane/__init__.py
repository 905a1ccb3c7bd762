"""Profiles of the JAX / XLA profiler: decoding, planes as columns, op table and KPIs, conversion to `Trace`."""
