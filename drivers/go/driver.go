// The driver `go`: pipes as os.File, Unix and TCP sockets as net.Conn, UDP as net.UDPConn (datagrams.go), all waited for
// by the runtime's poller, as programs in Go have them.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// A pipe's end that the runtime's poller waits for: that of a descriptor which does not block.
func polled(descriptor uintptr) (*os.File, error) {
	err := syscall.SetNonblock(int(descriptor), true)
	return os.NewFile(descriptor, "pipe"), err
}

func pipe(o *orders) (channel, error) {
	source, err := polled(o.Descriptors[0])
	if err != nil {
		return nil, err
	}
	sink, err := polled(o.Descriptors[1])
	return overBytes(o, source, sink), err
}

func unixStream(o *orders) (channel, error) {
	connection, err := net.FileConn(os.NewFile(o.Descriptors[0], "socket"))
	return overBytes(o, connection, connection), err
}

// What a client shows to its server.
func (o *orders) token() []byte {
	token := make([]byte, 0, 16)
	for _, value := range o.Network.Token {
		token = append(token, byte(value))
	}
	return token
}

func tcp(o *orders) (channel, error) {
	token := o.token()
	if o.Role == "client" {
		port := binary.BigEndian.Uint16(hear().Ticket)
		connection, err := net.Dial("tcp", net.JoinHostPort(o.Network.Server, fmt.Sprint(port)))
		if err == nil {
			_, err = connection.Write(token)
		}
		return overBytes(o, connection, connection), err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.Network.Server, "0"))
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	sayTicket(byte(port>>8), byte(port))
	for {
		connection, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		// Whoever shows another token, or none for a while, is a stranger.
		shown := make([]byte, len(token))
		connection.SetReadDeadline(time.Now().Add(2 * time.Second))
		if _, err := io.ReadFull(connection, shown); err == nil && bytes.Equal(shown, token) {
			connection.SetReadDeadline(time.Time{})
			return overBytes(o, connection, connection), listener.Close()
		}
		connection.Close()
	}
}

func main() {
	takePart("go", "", []mechanism{
		{"pipe", workloads, pipe, codecNames()},
		{"unix-stream", workloads, unixStream, codecNames()},
		{"tcp", workloads, tcp, codecNames()},
		{"udp", workloads, udp, nil},
	})
}
