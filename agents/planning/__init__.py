"""The LangGraph planning graph: analyzer, proposal, scoring."""
