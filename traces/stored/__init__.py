"""A TraceSummary as a document: small enough to send where the trace itself may not go."""
