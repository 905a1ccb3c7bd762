"""docs/accuracy.md: predicted against measured, with charts, from one JSON of figures that is kept beside it."""
