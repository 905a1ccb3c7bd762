"""A seeded discrete-event simulation of serving engines: what single requests see, for percentiles and goodput."""
