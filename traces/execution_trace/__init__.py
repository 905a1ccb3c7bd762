"""PyTorch execution traces: what every operator was given, without times, and how they complete a Kineto trace.

node_texts      a JSON list of nodes, cut into its nodes without parsing the whole file
nodes           one node of any schema generation
operands        inputs of an operator in the spelling of the profiler
communication   collective arguments and process groups
record          ExecutionTrace: the columns of one file
read            a file to an ExecutionTrace
join            match and join with a Trace
"""
