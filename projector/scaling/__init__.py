"""How a measured step scales with the mesh when the model is unknown: work, traffic, idle time, memory."""
