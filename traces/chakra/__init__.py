"""Chakra execution traces: a graph of operators with durations, and with start times where their producer wrote them.

graph           one node, whatever the form of the file
frames          length-delimited messages of a protobuf file
protobuf        those messages to nodes
workload_graph  the older JSON form to nodes
linked          PyTorch nodes to which a trace linker added times (JSON) to nodes
convert         nodes to a Trace
"""
