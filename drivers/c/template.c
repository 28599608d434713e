/* An endpoint of ipcmark over a pair of pipes: whatever connects two processes can come in their place. Make it
 * yours. */

#include "endpoint.h"

static int source, sink;

static void connect_peer(void)
{
	long ends[2];
	if (!is("mechanism", "\"pipe\"") || numbers_of("descriptors", ends, 2) != 2)
		fail("this endpoint has pipes");
	source = ends[0];
	sink = ends[1];
}

static void send_message(uint64_t number, size_t bytes)
{
	make(number, bytes);
	write_all(sink, outgoing, bytes);
}

static void receive_message(uint64_t number, size_t bytes)
{
	if (!read_all(source, incoming, bytes))
		fail("the peer has closed");
	verify(number, bytes);
}

int main(void)
{
	take_part("NAME", "{\"name\":\"pipe\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]}");
}
