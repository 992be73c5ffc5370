"""The width of a text in cells of a terminal."""


def cell_len(text: str) -> int:
    """Return the number of cells that a text covers."""
    from rich.cells import cell_len  # slow to import, and a prediction draws nothing

    return cell_len(text)
