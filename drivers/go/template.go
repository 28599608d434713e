//go:build ignore

// An endpoint of ipcmark over a pair of pipes: whatever connects two processes can come in their place. Make it yours:
// go build -o endpoint template.go endpoint.go
package main

import (
	"io"
	"os"
)

type pipes struct {
	source, sink *os.File
	message      []byte
}

func (p *pipes) send(message []byte) error {
	_, err := p.sink.Write(message)
	return err
}

func (p *pipes) receive(size int) ([]byte, error) {
	_, err := io.ReadFull(p.source, p.message[:size])
	return p.message[:size], err
}

func connect(o *orders) (channel, error) {
	source, sink := os.NewFile(o.Descriptors[0], "source"), os.NewFile(o.Descriptors[1], "sink")
	return &pipes{source, sink, make([]byte, o.SizeBytes)}, nil
}

func main() {
	takePart("NAME", "", []mechanism{{Name: "pipe", Workloads: workloads, Connect: connect}})
}
