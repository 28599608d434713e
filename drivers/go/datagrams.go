// The mechanism udp: datagrams of net.UDPConn, in a window, so that none is lost.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// A channel of datagrams. In a stream, of which an endpoint sends or receives, the server acknowledges each half of what
// its buffer holds, and so much is on its way at most.
type datagrams struct {
	connection *net.UDPConn
	// Of a server: where its client is. One that has dialled is of no other peer.
	client       netip.AddrPort
	waits        bool
	acknowledges bool
	half         int
	most         int
	open         int
	incoming     []byte
}

func (d *datagrams) write(message []byte) error {
	if d.client.IsValid() {
		_, err := d.connection.WriteToUDPAddrPort(message, d.client)
		return err
	}
	_, err := d.connection.Write(message)
	return err
}

// The next datagram of the peer. A byte more than is due tells one that is too long.
func (d *datagrams) read(size int) ([]byte, error) {
	for d.client.IsValid() {
		count, from, err := d.connection.ReadFromUDPAddrPort(d.incoming[:size+1])
		if err != nil || from == d.client {
			return d.incoming[:count], err
		}
	}
	count, err := d.connection.Read(d.incoming[:size+1])
	return d.incoming[:count], err
}

// waitForRoom waits until no more messages than that are not acknowledged.
func (d *datagrams) waitForRoom(left int) error {
	for ; d.open > left; d.open -= d.half {
		if _, err := d.read(1); err != nil {
			return err
		}
	}
	return nil
}

func (d *datagrams) send(message []byte) error {
	if d.waits {
		if err := d.waitForRoom(d.most - 1); err != nil {
			return err
		}
		d.open++
	}
	return d.write(message)
}

func (d *datagrams) receive(size int) ([]byte, error) {
	if d.waits {
		if err := d.waitForRoom(d.half - 1); err != nil {
			return nil, err
		}
	}
	message, err := d.read(size)
	if err != nil {
		return nil, fmt.Errorf("the peer has closed: %w", err)
	}
	if d.acknowledges {
		if d.open++; d.open == d.half {
			d.open = 0
			err = d.write([]byte{0})
		}
	}
	return message, err
}

func udp(o *orders) (channel, error) {
	streams, isClient := o.Workload == "throughput", o.Role == "client"
	d := &datagrams{waits: streams && isClient, acknowledges: streams && !isClient}
	d.incoming = make([]byte, o.SizeBytes+len(o.token())+2)
	connect := d.welcome
	if isClient {
		connect = d.greet
	}
	fitting, err := connect(o)
	d.half, d.most = 1, 1
	if fitting > 1 {
		d.half = int(fitting / 2)
		d.most = 2 * d.half
	}
	return d, err
}

// awaitWord waits for a word of that kind. What is none is dropped; one of another kind ends it.
func (d *datagrams) awaitWord(o *orders, kind byte) (bool, error) {
	token := o.token()
	for {
		message, err := d.read(len(token) + 1)
		if err != nil {
			return false, err
		}
		if len(message) == len(token)+1 && bytes.HasPrefix(message, token) {
			return message[len(token)] == kind, nil
		}
	}
}

// greet connects a client. It returns how many messages fit in its server's buffer.
func (d *datagrams) greet(o *orders) (uint32, error) {
	ticket := hear().Ticket
	if len(ticket) != 6 {
		return 0, errors.New("the ticket of udp has six bytes")
	}
	server := net.JoinHostPort(o.Network.Server, fmt.Sprint(binary.BigEndian.Uint16(ticket)))
	connection, err := net.Dial("udp", server)
	if err != nil {
		return 0, err
	}
	d.connection = connection.(*net.UDPConn)
	if err := d.write(append(o.token(), 'h')); err != nil {
		return 0, err
	}
	for isWelcome := false; !isWelcome; {
		if isWelcome, err = d.awaitWord(o, 'w'); err != nil {
			return 0, err
		}
	}
	return binary.BigEndian.Uint32(ticket[2:]), d.write(append(o.token(), 'r'))
}

// welcome connects a server. It returns how many messages fit in its buffer.
func (d *datagrams) welcome(o *orders) (uint32, error) {
	connection, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(o.Network.Server)})
	if err != nil {
		return 0, err
	}
	d.connection = connection
	room, err := receiveBuffer(connection)
	if err != nil {
		return 0, err
	}
	fitting := uint32(room / 2 / (2*o.SizeBytes + 1024))
	port := connection.LocalAddr().(*net.UDPAddr).Port
	ticket := binary.BigEndian.AppendUint16(nil, uint16(port))
	sayTicket(binary.BigEndian.AppendUint32(ticket, fitting)...)
	hello := append(o.token(), 'h')
	for !d.client.IsValid() {
		count, from, err := connection.ReadFromUDPAddrPort(d.incoming)
		if err != nil {
			return 0, err
		}
		if bytes.Equal(d.incoming[:count], hello) {
			d.client = from
		}
	}
	for asksAgain := true; asksAgain; {
		if err := d.write(append(o.token(), 'w')); err != nil {
			return 0, err
		}
		if asksAgain, err = d.awaitWord(o, 'h'); err != nil {
			return 0, err
		}
	}
	return fitting, nil
}

// receiveBuffer returns the size of the buffer, as the kernel counts it.
func receiveBuffer(connection *net.UDPConn) (size int, err error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(descriptor uintptr) {
		size, err = syscall.GetsockoptInt(int(descriptor), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	})
	if controlErr != nil {
		return 0, controlErr
	}
	return size, err
}
