/* A ping-pong over two pipes, as one writes it to throw it away: what the driver `c` is held against.
 * cc -O2 -o pingpong pingpong.c; taskset -c 0 ./pingpong SIZE ITERATIONS */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint8_t *message;
static size_t size, head;

static void send_to(int fd, uint64_t number)
{
	memcpy(message, &number, head);
	if (write(fd, message, size) != (ssize_t)size)
		exit(1);
}

static void receive_from(int fd, uint64_t number)
{
	ssize_t got;
	for (size_t received = 0; received < size; received += got)
		if ((got = read(fd, message + received, size - received)) <= 0)
			exit(1);
	if (memcmp(message, &number, head) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	if (argc != 3 || pipe(there) != 0 || pipe(back) != 0)
		return 1;
	size = strtoul(argv[1], NULL, 10);
	head = size < 8 ? size : 8;
	message = calloc(1, size);
	uint64_t iterations = strtoull(argv[2], NULL, 10);
	if (fork() == 0) {
		close(there[1]);
		for (uint64_t number = 0; number < 2 * iterations; number++) {
			receive_from(there[0], number);
			send_to(back[1], number);
		}
		return 0;
	}
	close(back[1]);
	struct timespec start, end;
	for (uint64_t number = 0; number < 2 * iterations; number++) {
		if (number == iterations)
			clock_gettime(CLOCK_MONOTONIC_RAW, &start);
		send_to(there[1], number);
		receive_from(back[0], number);
	}
	clock_gettime(CLOCK_MONOTONIC_RAW, &end);
	printf("%.1f\n", ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / iterations);
}
