"""Chrome trace JSON, as Kineto writes it: text to events to columns."""
