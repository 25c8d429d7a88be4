"""Pages of rules and habits as Markdown, and tables of the calls that a rule is about as TOML."""
