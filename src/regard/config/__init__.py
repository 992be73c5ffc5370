"""Settings as frozen pydantic models, and their TOML. Every other package may import this one."""
