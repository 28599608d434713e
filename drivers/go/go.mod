module ipcmark/driver

go 1.19
