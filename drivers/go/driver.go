// An endpoint of ipcmark in Go, by the document docs/reference/protocol.md: pipes as os.File, Unix and TCP sockets as net.Conn, all waited
// for by the runtime's poller, as programs in Go have them.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
)

var workloads = []string{"latency", "transfer", "throughput"}

type mechanism struct {
	Name      string   `json:"name"`
	Workloads []string `json:"workloads"`
}

type orders struct {
	Role        string            `json:"role"`
	Mechanism   string            `json:"mechanism"`
	Parameters  map[string]string `json:"parameters"`
	Workload    string            `json:"workload"`
	SizeBytes   int               `json:"size_bytes"`
	Descriptors []uintptr         `json:"descriptors"`
	Directory   string            `json:"directory"`
	Number      uint64            `json:"number"`
	Network     struct {
		Server string `json:"server"`
		Token  []int  `json:"token"`
	} `json:"network"`
}

type stretch struct {
	Messages     uint64 `json:"messages"`
	Timed        bool   `json:"timed"`
	Acknowledged bool   `json:"acknowledged"`
}

type phase struct {
	Check     bool      `json:"check"`
	Each      bool      `json:"each"`
	Stretches []stretch `json:"stretches"`
}

type done struct {
	ElapsedNs int64   `json:"elapsed_ns"`
	EachNs    []int64 `json:"each_ns,omitempty"`
}

// What the coordinator says: the one member that is there.
type heard struct {
	Orders *orders `json:"orders"`
	Phase  *phase  `json:"phase"`
	Ticket []byte  `json:"-"`
}

var input = bufio.NewReader(os.Stdin)

func say(message any) {
	body, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	if _, err := os.Stdout.Write(append(frame, body...)); err != nil {
		os.Exit(1)
	}
}

// hear returns the next message, and ends the program where there is none or it says goodbye.
func hear() heard {
	var length [4]byte
	if _, err := io.ReadFull(input, length[:]); err != nil {
		os.Exit(0)
	}
	body := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(input, body); err != nil {
		os.Exit(1)
	}
	if bytes.Equal(body, []byte(`"goodbye"`)) {
		os.Exit(0)
	}
	var message heard
	var ticket struct {
		Ticket []int `json:"ticket"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		fail(fmt.Errorf("the coordinator said something else than JSON: %w", err))
	}
	if json.Unmarshal(body, &ticket) == nil {
		for _, value := range ticket.Ticket {
			message.Ticket = append(message.Ticket, byte(value))
		}
	}
	return message
}

func fail(why error) {
	say(map[string]string{"failed": why.Error()})
	os.Exit(1)
}

// An endpoint sends and receives whole messages.
type endpoint struct {
	reader   io.Reader
	writer   io.Writer
	check    bool
	incoming []byte
	outgoing []byte
}

func expected(number uint64, k int) byte {
	if k < 8 {
		return byte(number >> (8 * k))
	}
	return byte((number + uint64(k)) * 0x9e3779b97f4a7c15 >> 56)
}

func (e *endpoint) send(number uint64, size int) {
	binary.LittleEndian.PutUint64(e.outgoing, number)
	for k := 8; e.check && k < size; k++ {
		e.outgoing[k] = expected(number, k)
	}
	if _, err := e.writer.Write(e.outgoing[:size]); err != nil {
		fail(err)
	}
}

func (e *endpoint) receive(number uint64, size int) {
	message := e.incoming[:size]
	if _, err := io.ReadFull(e.reader, message); err != nil {
		fail(errors.New("the peer has closed"))
	}
	held := size
	if !e.check && held > 8 {
		held = 8
	}
	for k, found := range message[:held] {
		if found != expected(number, k) {
			fail(fmt.Errorf("message %d came changed, or another came in its place", number))
		}
	}
}

func tcp(o *orders) (net.Conn, error) {
	token := make([]byte, 0, 16)
	for _, value := range o.Network.Token {
		token = append(token, byte(value))
	}
	if o.Role == "client" {
		port := binary.BigEndian.Uint16(hear().Ticket)
		connection, err := net.Dial("tcp", net.JoinHostPort(o.Network.Server, fmt.Sprint(port)))
		if err == nil {
			_, err = connection.Write(token)
		}
		return connection, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.Network.Server, "0"))
	if err != nil {
		return nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	say(map[string][]int{"ticket": {port >> 8, port & 255}})
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
			return connection, listener.Close()
		}
		connection.Close()
	}
}

// A pipe's end that the runtime's poller waits for: that of a descriptor which does not block.
func polled(descriptor uintptr) *os.File {
	if err := syscall.SetNonblock(int(descriptor), true); err != nil {
		fail(err)
	}
	return os.NewFile(descriptor, "pipe")
}

func connect(o *orders) (io.Reader, io.Writer) {
	switch o.Mechanism {
	case "pipe":
		return polled(o.Descriptors[0]), polled(o.Descriptors[1])
	case "unix-stream":
		connection, err := net.FileConn(os.NewFile(o.Descriptors[0], "socket"))
		if err != nil {
			fail(err)
		}
		return connection, connection
	case "tcp":
		connection, err := tcp(o)
		if err != nil {
			fail(err)
		}
		return connection, connection
	}
	fail(fmt.Errorf("this driver has no %s", o.Mechanism))
	return nil, nil
}

// run does one phase, and says what it came to.
func run(o *orders, e *endpoint, p *phase) {
	size, answer, streams := o.SizeBytes, 1, o.Workload == "throughput"
	if o.Workload == "latency" {
		answer = size
	}
	first, second := e.receive, e.send
	if o.Role == "client" {
		first, second = e.send, e.receive
	}
	var number uint64
	var result done
	for _, s := range p.Stretches {
		notes := p.Each && s.Timed
		if notes {
			result.EachNs = make([]int64, 0, s.Messages)
		}
		start := time.Now()
		before := start
		for end := number + s.Messages; number < end; number++ {
			first(number, size)
			if !streams {
				second(number, answer)
			}
			if notes {
				now := time.Now()
				result.EachNs = append(result.EachNs, now.Sub(before).Nanoseconds())
				before = now
			}
		}
		if s.Acknowledged {
			second(number, 1)
		}
		if s.Timed {
			result.ElapsedNs += time.Since(start).Nanoseconds()
		}
	}
	say(map[string]done{"done": result})
}

func main() {
	hear()
	var all []mechanism
	for _, known := range []string{"pipe", "unix-stream", "tcp"} {
		all = append(all, mechanism{known, workloads})
	}
	say(map[string]any{"hello": map[string]any{
		"protocol": "ipcmark-endpoint", "version": 3, "program": "go", "runtime": runtime.Version(),
		"capabilities": []string{"each"}, "mechanisms": all,
	}})
	o := hear().Orders
	if o == nil {
		os.Exit(0)
	}
	if len(o.Parameters) > 0 {
		fail(fmt.Errorf("this driver has no parameters, and the orders have %v", o.Parameters))
	}
	reader, writer := connect(o)
	e := &endpoint{reader: reader, writer: writer, incoming: make([]byte, o.SizeBytes+8), outgoing: make([]byte, o.SizeBytes+8)}
	say("connected")
	for {
		p := hear().Phase
		if p == nil {
			fail(errors.New("something else than a phase came"))
		}
		e.check = p.Check
		if o.Role == "server" {
			say("ready")
		}
		run(o, e, p)
	}
}
