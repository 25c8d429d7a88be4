"""A folder that a captured command's processes find on Python's path; Python imports its `sitecustomize` by itself."""
