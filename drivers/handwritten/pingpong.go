// A ping-pong over two pipes, as one writes it to throw it away: what the driver `go` is held against.
// go build pingpong.go; taskset -c 0 ./pingpong SIZE ITERATIONS
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

func exchange(first, second func(uint64), from, to uint64) {
	for number := from; number < to; number++ {
		first(number)
		second(number)
	}
}

func main() {
	size, _ := strconv.Atoi(os.Args[1])
	iterations, _ := strconv.ParseUint(os.Args[2], 10, 64)
	outgoing, incoming := make([]byte, size+8), make([]byte, size+8)
	mask := ^uint64(0) >> max(0, 64-8*size)
	there, sink, _ := os.Pipe()
	source, back, _ := os.Pipe()
	send := func(number uint64) {
		binary.LittleEndian.PutUint64(outgoing, number)
		if _, err := sink.Write(outgoing[:size]); err != nil {
			log.Fatal(err)
		}
	}
	receive := func(number uint64) {
		_, err := io.ReadFull(source, incoming[:size])
		if err != nil || (binary.LittleEndian.Uint64(incoming)^number)&mask != 0 {
			log.Fatal("another message came, or none: ", err)
		}
	}
	if len(os.Args) > 3 {
		// A descriptor that blocks would keep a thread, which one of os.Pipe does not.
		_, _ = syscall.SetNonblock(3, true), syscall.SetNonblock(4, true)
		source, sink = os.NewFile(3, "there"), os.NewFile(4, "back")
		exchange(receive, send, 0, 2*iterations)
		return
	}
	child := exec.Command("/proc/self/exe", os.Args[1], os.Args[2], "child")
	child.ExtraFiles = []*os.File{there, back}
	if err := child.Start(); err != nil {
		log.Fatal(err)
	}
	back.Close()
	exchange(send, receive, 0, iterations)
	start := time.Now()
	exchange(send, receive, iterations, 2*iterations)
	fmt.Printf("%.1f\n", float64(time.Since(start).Nanoseconds())/float64(iterations))
}
