// An HTTP server on a TCP port of the loopback or, where the argument is a path, on a Unix socket.
package main

import (
	"bytes"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	network, address := "tcp", "127.0.0.1:"+os.Args[1]
	if strings.HasPrefix(os.Args[1], "/") {
		network, address = "unix", os.Args[1]
		os.Remove(address) // a server that was killed leaves its socket, and bind refuses a path that exists
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		log.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), 128)
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(body)
	})))
}
