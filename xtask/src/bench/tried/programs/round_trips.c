// round_trips: one byte there and back over two pipes between two processes, so many times; prints how many a second.
//
//     round_trips COUNT
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int there[2], back[2];
    char byte = 'x';
    if (count <= 0 || pipe(there) || pipe(back)) return 1;
    if (fork() == 0) {
        close(there[1]);
        while (read(there[0], &byte, 1) == 1)
            if (write(back[1], &byte, 1) != 1) return 1;
        return 0;
    }
    double start = now();
    for (long i = 0; i < count; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
    printf("%f\n", count / (now() - start));
    close(there[1]);
    return wait(NULL) < 0;
}
