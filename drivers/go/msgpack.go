// The codec msgpack, by a module that is not Go's own: built where that can be had.
package main

import "github.com/vmihailenco/msgpack/v5"

func init() {
	codecs["msgpack"] = codec{msgpack.Marshal, msgpack.Unmarshal}
}
