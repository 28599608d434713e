"""ipcmark on fleets of hosts: measuring on a Dask cluster, and reporting which hosts and kernels differ."""
