"""From the traces of all ranks of a job to a Fleet: each analysed as alone, and joined at their collectives."""
