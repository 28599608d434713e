"""Results files of ipcmark as polars data frames.

`read` is all that most need; docs/reference/python.md shows it at work. Fleets of hosts are in `ipcmark.fleet`.
"""

from ipcmark.invalid import Invalid
from ipcmark.results import Results, read

__all__ = ["Invalid", "Results", "read"]
