"""The analytic model of time and memory, and the vocabulary everything else speaks."""
