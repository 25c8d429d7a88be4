"""A test's syncs go in, its failure with line, chain and fix comes out: what `syncscan.pytest_plugin` uses."""
