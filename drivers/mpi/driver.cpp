// The driver `mpi`: two ranks of a job of Open MPI on one host, which send messages to each other over its shared
// memory.
//
// The endpoints themselves are the ranks, though the coordinator has started them, and not mpirun. What makes a process
// a rank is its environment. So the server starts mpirun, which starts this very program twice as a *place*; each place
// sends its environment to the server over a Unix socket, and holds its rank's place in mpirun's books until the server
// is gone. The server takes the environment of rank 0, the client gets that of rank 1, and both then call MPI_Init. So
// each has the CPU of its endpoint, and what it uses of that is its own; mpirun and the places sleep below the server.
// Files of the job are where Open MPI has them, in /dev/shm and in the directory for temporary files; mpirun removes
// them.

#include "ipcmark_endpoint.hpp"

#define OMPI_SKIP_MPICXX 1
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef OPEN_MPI
#error "the driver mpi needs Open MPI, and mpicxx is of another MPI"
#endif

using ipcmark::Failed;
using ipcmark::Orders;

extern char **environ;

namespace {

enum { SERVER_RANK, CLIENT_RANK, RANKS };

// A Unix socket, which is closed with this.
class Socket {
public:
	explicit Socket(int opened) : fd(opened)
	{
		if (fd < 0)
			throw ipcmark::failed("a Unix socket");
	}
	Socket() : Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
	Socket(Socket &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
	~Socket()
	{
		if (fd >= 0)
			close(fd);
	}
	int number() const { return fd; }

	// Says all that there is to say.
	void say(std::string_view all)
	{
		ipcmark::write_all(fd, all.data(), all.size());
		shutdown(fd, SHUT_WR);
	}

	// All that the other side says.
	std::string hear()
	{
		std::string all;
		for (char one; ipcmark::read_all(fd, &one, 1);)
			all += one;
		return all;
	}

private:
	int fd;
};

sockaddr_un address_of(const std::string &path)
{
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (path.size() >= sizeof address.sun_path)
		throw Failed("the path " + path + " is too long for a Unix socket");
	path.copy(address.sun_path, path.size());
	return address;
}

Socket connected(const std::string &path)
{
	Socket socket;
	sockaddr_un address = address_of(path);
	if (connect(socket.number(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
		throw ipcmark::failed("connect " + path);
	return socket;
}

// Where the server waits for its client and for the places; its name is removed with it.
class Listener {
public:
	explicit Listener(std::string at) : path(std::move(at))
	{
		sockaddr_un address = address_of(path);
		if (bind(socket.number(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
			listen(socket.number(), RANKS + 1) != 0)
			throw ipcmark::failed("bind " + path);
	}
	Listener(const Listener &) = delete;
	~Listener() { unlink(path.c_str()); }

	Socket accepted() { return Socket(accept4(socket.number(), nullptr, nullptr, SOCK_CLOEXEC)); }

	bool is_called(int within_ms)
	{
		pollfd waiting{socket.number(), POLLIN, 0};
		return poll(&waiting, 1, within_ms) == 1;
	}

	const std::string path;

private:
	Socket socket;
};

// The CPUs of this process, as bytes that another of this host understands.
std::string own_cpus()
{
	cpu_set_t cpus;
	if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
		throw ipcmark::failed("sched_getaffinity");
	return std::string(reinterpret_cast<const char *>(&cpus), sizeof cpus);
}

// Whether both have but one CPU between them. A rank that polls there keeps the other from what it waits for, unless it
// yields; mpirun knows no more than its own CPUs, so that it must be told.
bool is_one_cpu(std::string one, const std::string &other)
{
	for (std::size_t k = 0; k < one.size(); k++)
		one[k] |= other.at(k);
	cpu_set_t both;
	one.copy(reinterpret_cast<char *>(&both), sizeof both);
	return CPU_COUNT(&both) == 1;
}

// mpirun, which ends when its places do, and they end when the server closes what connects it with them, or is killed.
// No signal ends it: one that comes while it cleans up makes Open MPI 4 leave shared memory and files.
class Mpirun {
public:
	// With the program of a place and its argument.
	Mpirun(const std::string &place, const std::string &path, bool yields) : pid(fork())
	{
		if (pid < 0)
			throw ipcmark::failed("fork");
		if (pid == 0)
			become(place, path, yields);
	}
	Mpirun(const Mpirun &) = delete;
	~Mpirun() { waitpid(pid, nullptr, 0); }

	bool has_ended() const
	{
		siginfo_t status{};
		return waitid(P_PID, pid, &status, WEXITED | WNOHANG | WNOWAIT) == 0 && status.si_pid == pid;
	}

private:
	const pid_t pid;

	[[noreturn]] static void become(const std::string &place, const std::string &path, bool yields)
	{
		// The endpoint may be killed with its group.
		setpgid(0, 0);
		std::signal(SIGPIPE, SIG_DFL);
		int nowhere = open("/dev/null", O_RDWR);
		if (nowhere < 0)
			_exit(1);
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
		execlp("mpirun", "mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
			"--quiet", "--mca", "oob_tcp_if_include", "lo", "--mca", "pml", "ob1", "--mca", "btl", "self,vader",
			"--mca", "mpi_yield_when_idle", yields ? "1" : "0", place.c_str(), path.c_str(), nullptr);
		_exit(127);
	}
};

// A process below mpirun: says what its environment has of the job, and stays until the server is gone.
int place(const std::string &path)
{
	std::string environment;
	for (char **entry = environ; *entry != nullptr; entry++) {
		std::string_view variable = *entry;
		for (std::string_view begin : {"OMPI_", "PMIX_", "PRTE_"})
			if (variable.substr(0, begin.size()) == begin)
				environment.append(variable).push_back('\0');
	}
	try {
		Socket server = connected(path);
		server.say(environment);
		server.hear();
		return 0;
	} catch (const Failed &) {
		// The server is gone before its job has begun.
		return 1;
	}
}

// Enters MPI as the rank whose environment this is.
void enter(std::string_view environment)
{
	if (environment.empty())
		throw Failed("there is no place in a job of Open MPI: mpirun is another MPI's, or the peer has failed");
	while (!environment.empty()) {
		std::string variable(environment.substr(0, environment.find('\0')));
		environment.remove_prefix(variable.size() + 1);
		std::size_t name = variable.find('=');
		setenv(variable.substr(0, name).c_str(), variable.substr(name + 1).c_str(), 1);
	}
	MPI_Init(nullptr, nullptr);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

// The job's mpirun and what holds it, at the server. What is declared last is given up first.
struct Job {
	std::unique_ptr<Mpirun> mpirun;
	std::vector<Socket> places;
};

// Starts the job, and enters it as its server when its client has what it needs for the same.
void start(Job &job, const Orders &orders)
{
	Listener listener(orders.path("mpi"));
	ipcmark::say_ticket(listener.path);
	Socket client = listener.accepted();
	bool yields = is_one_cpu(own_cpus(), client.hear());
	std::string program = std::filesystem::read_symlink("/proc/self/exe");
	job.mpirun = std::make_unique<Mpirun>(program, listener.path, yields);
	std::string environments[RANKS];
	while (job.places.size() < RANKS) {
		if (!listener.is_called(20)) {
			if (job.mpirun->has_ended())
				throw Failed("mpirun ended before it had started both ranks");
			continue;
		}
		job.places.push_back(listener.accepted());
		std::string environment = job.places.back().hear();
		bool is_first = environment.find("OMPI_COMM_WORLD_RANK=0") != std::string::npos;
		environments[is_first ? SERVER_RANK : CLIENT_RANK] = environment;
	}
	client.say(environments[CLIENT_RANK]);
	enter(environments[SERVER_RANK]);
}

void join()
{
	Socket server = connected(ipcmark::hear_ticket());
	server.say(own_cpus());
	enter(server.hear());
}

// MPI_Send, or another of its ways to send.
using SendWay = int(const void *, int, MPI_Datatype, int, int, MPI_Comm);

template <SendWay SEND> class Rank : public ipcmark::Channel {
public:
	explicit Rank(const Orders &orders) : peer(orders.is_client ? SERVER_RANK : CLIENT_RANK)
	{
		if (orders.size_bytes > INT_MAX)
			throw Failed("MPI counts the bytes of a message by an int");
		if (orders.is_client)
			join();
		else
			start(job, orders);
	}
	Rank(const Rank &) = delete;
	~Rank()
	{
		// It waits for the other one, which does not come where one has failed.
		if (std::uncaught_exceptions() == 0)
			MPI_Finalize();
	}

	void send(const std::uint8_t *bytes, std::size_t count)
	{
		if (SEND(bytes, static_cast<int>(count), MPI_BYTE, peer, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
			throw Failed("MPI cannot send");
	}

	void receive(std::uint8_t *bytes, std::size_t count)
	{
		int size = static_cast<int>(count);
		if (MPI_Recv(bytes, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			throw Failed("MPI cannot receive");
	}

private:
	const int peer;
	Job job;
};

template <SendWay SEND> Rank<SEND> entered(const Orders &orders)
{
	return Rank<SEND>(orders);
}

// What Open MPI calls itself, before the first comma.
std::string library()
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length = 0;
	MPI_Get_library_version(version, &length);
	std::string whole(version, length);
	return whole.substr(0, whole.find(','));
}

}  // namespace

int main(int count, char **arguments)
{
	if (count == 2)
		return place(arguments[1]);
	return ipcmark::run(
		"mpi",
		{
			ipcmark::mechanism("mpi-send", ipcmark::ALL_WORKLOADS, entered<MPI_Send>,
				"MPI_Send and MPI_Recv of Open MPI"),
			ipcmark::mechanism("mpi-ssend", ipcmark::ALL_WORKLOADS, entered<MPI_Ssend>,
				"MPI_Ssend and MPI_Recv of Open MPI"),
		},
		library());
}
