"""Follows a number that is read from the device in every step, to find out whether the read can wait.

The read is deferred: what the program computes of the number it computes of a tensor instead, and after the loop what
is left of it is read back, once. `walk` follows the number through names, attributes, lists, dictionaries and functions
of the file, and stops where the host needs it; `homes` chooses the loop; `read_back` writes what stands behind it.
"""
