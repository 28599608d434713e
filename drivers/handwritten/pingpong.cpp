// A ping-pong over two pipes, as one writes it to throw it away: what drivers in C++ are held against.
// c++ -std=c++17 -O2 -o pingpong pingpong.cpp; taskset -c 0 ./pingpong SIZE ITERATIONS

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

struct Side {
    int source, sink;
    std::vector<char> message;

    void send(std::uint64_t number) {
        std::memcpy(message.data(), &number, std::min(message.size(), sizeof number));
        if (write(sink, message.data(), message.size()) != static_cast<ssize_t>(message.size()))
            throw std::runtime_error("write");
    }

    void receive(std::uint64_t number) {
        for (std::size_t received = 0; received < message.size();) {
            ssize_t got = read(source, message.data() + received, message.size() - received);
            if (got <= 0) throw std::runtime_error("read");
            received += got;
        }
        if (std::memcmp(message.data(), &number, std::min(message.size(), sizeof number)) != 0)
            throw std::runtime_error("another message");
    }
};

int main(int, char **arguments) {
    const std::size_t size = std::stoul(arguments[1]);
    const std::uint64_t iterations = std::stoull(arguments[2]);
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    if (fork() == 0) {
        close(there[1]);
        Side side{there[0], back[1], std::vector<char>(size)};
        for (std::uint64_t number = 0; number < 2 * iterations; number++) {
            side.receive(number);
            side.send(number);
        }
        return 0;
    }
    close(back[1]);
    Side side{back[0], there[1], std::vector<char>(size)};
    std::chrono::steady_clock::time_point start;
    for (std::uint64_t number = 0; number < 2 * iterations; number++) {
        if (number == iterations) start = std::chrono::steady_clock::now();
        side.send(number);
        side.receive(number);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    std::cout << std::fixed << took.count() / iterations << "\n";
}
