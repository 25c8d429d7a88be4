"""Show a trace with its findings in TensorBoard, Perfetto and a browser, and write it for them."""
