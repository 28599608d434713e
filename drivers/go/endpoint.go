// The core of an endpoint of ipcmark in Go, by the document docs/reference/protocol.md: messages, phases, payload and
// codecs. What connects two endpoints is each driver's own.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"time"
)

var workloads = []string{"latency", "transfer", "throughput"}

// A mechanism of a driver: what can be measured of it, and how the endpoints are connected as the orders say.
type mechanism struct {
	Name      string                         `json:"name"`
	Workloads []string                       `json:"workloads"`
	Connect   func(*orders) (channel, error) `json:"-"`
	// Of a stream.
	Codecs []string `json:"codecs,omitempty"`
}

// A channel sends and receives whole messages. One that it returns is its own again at the next call.
type channel interface {
	send(message []byte) error
	receive(size int) ([]byte, error)
}

// A stream is a channel over bytes.
type stream struct {
	reader   io.Reader
	writer   io.Writer
	incoming []byte
}

func overBytes(o *orders, reader io.Reader, writer io.Writer) channel {
	return &stream{reader, writer, make([]byte, o.SizeBytes+8)}
}

func (s *stream) send(message []byte) error {
	_, err := s.writer.Write(message)
	return err
}

func (s *stream) receive(size int) ([]byte, error) {
	if _, err := io.ReadFull(s.reader, s.incoming[:size]); err != nil {
		return nil, errors.New("the peer has closed")
	}
	return s.incoming[:size], nil
}

// An object is what a message is where a codec makes bytes of it.
type object struct {
	Kind string `json:"kind" msgpack:"kind"`
	Data []byte `json:"data" msgpack:"data"`
}

type codec struct {
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

var codecs = map[string]codec{"json": {json.Marshal, json.Unmarshal}}

func codecNames() []string {
	names := make([]string, 0, len(codecs))
	for name := range codecs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// coded is a channel of objects over a stream, each with its length before it.
type coded struct {
	*stream
	codec
}

func (c *coded) send(message []byte) error {
	body, err := c.marshal(object{"message", message})
	if err != nil {
		return err
	}
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	return c.stream.send(append(frame, body...))
}

func (c *coded) receive(int) ([]byte, error) {
	head, err := c.stream.receive(4)
	if err != nil {
		return nil, err
	}
	length := int(binary.LittleEndian.Uint32(head))
	if length > len(c.incoming) {
		c.incoming = make([]byte, length)
	}
	body, err := c.stream.receive(length)
	if err != nil {
		return nil, err
	}
	var came object
	err = c.unmarshal(body, &came)
	return came.Data, err
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

// sayTicket says how the server is reached. JSON has no bytes: they are numbers.
func sayTicket(ticket ...byte) {
	numbers := make([]int, len(ticket))
	for k, value := range ticket {
		numbers[k] = int(value)
	}
	say(map[string][]int{"ticket": numbers})
}

func fail(why error) {
	say(map[string]string{"failed": why.Error()})
	os.Exit(1)
}

// An endpoint numbers and checks what a channel sends and receives.
type endpoint struct {
	channel  channel
	check    bool
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
	if err := e.channel.send(e.outgoing[:size]); err != nil {
		fail(err)
	}
}

func (e *endpoint) receive(number uint64, size int) {
	message, err := e.channel.receive(size)
	if err != nil {
		fail(err)
	}
	if len(message) != size {
		fail(fmt.Errorf("message %d has %d bytes instead of %d", number, len(message), size))
	}
	if !e.check && size > 8 {
		message = message[:8]
	}
	for k, found := range message {
		if found != expected(number, k) {
			fail(fmt.Errorf("message %d came changed, or another came in its place", number))
		}
	}
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

// connected returns the channel of the mechanism that the orders name.
func connected(o *orders, offered []mechanism) (channel, error) {
	name, isCoded := o.Parameters["codec"]
	chosen, isKnown := codecs[name]
	if isCoded != isKnown || isCoded && len(o.Parameters) > 1 || !isCoded && len(o.Parameters) > 0 {
		return nil, fmt.Errorf("this driver has not the parameters %v", o.Parameters)
	}
	for _, one := range offered {
		if one.Name != o.Mechanism {
			continue
		}
		met, err := one.Connect(o)
		if err != nil || !isCoded {
			return met, err
		}
		if bytes, isStream := met.(*stream); isStream {
			return &coded{bytes, chosen}, nil
		}
		return nil, fmt.Errorf("this driver has no codecs of %s", o.Mechanism)
	}
	return nil, fmt.Errorf("this driver has no %s", o.Mechanism)
}

// takePart takes part in a trial, as an endpoint of that program, which goes the ways of library, empty where those
// are Go's own.
func takePart(program, library string, offered []mechanism) {
	hear()
	say(map[string]any{"hello": map[string]any{
		"protocol": "ipcmark-endpoint", "version": 3, "program": program, "runtime": runtime.Version(),
		"library": library, "capabilities": []string{"each"}, "mechanisms": offered,
	}})
	o := hear().Orders
	if o == nil {
		os.Exit(0)
	}
	met, err := connected(o, offered)
	if err != nil {
		fail(err)
	}
	e := &endpoint{channel: met, outgoing: make([]byte, o.SizeBytes+8)}
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
