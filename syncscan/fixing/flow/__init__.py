"""A number that is read from the device in each step: where it goes, and whether that can wait until a loop is over.

The read is put off: what the program computes of the number it computes of a tensor instead, and behind the loop what
is left of it is read back, once. `walk` follows the number through names, attributes, lists, dictionaries and functions
of the file, and stops where the host needs it; `homes` chooses the loop; `read_back` writes what stands behind it.
"""
