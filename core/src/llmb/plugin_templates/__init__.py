"""Templates of plugins, and the function that writes a plugin from one."""
