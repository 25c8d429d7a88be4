"""Run a program on the CPU and record the waits that it would have on a GPU.

Nothing is timed. Tensors stay what they are, on the CPU and with real values; which of them lie "on the device" is
noted at their storages (`places`). A torch function mode answers for the device and moves tensors between the two
(`functions`), a dispatch mode below autograd sees every op (`ops`), one table says what each op waits for on CUDA
(`waits`), and `recording` writes that down as torch.profiler would have.
"""
