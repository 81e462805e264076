"""Commands: a module for each group, or for the work of a single one."""
