"""A folder on the Python path of a captured command's processes; Python imports its `sitecustomize` at the start."""
