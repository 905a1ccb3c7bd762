"""Kernel tables: times of whole engine steps from somebody's measured kernels, a second opinion beside the projector.

Off unless asked for. A source of tables is anything with `StepTables`; aiconfigurator's is an extra to install.
"""
