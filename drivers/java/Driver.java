// The driver `java`: channels of NIO over pipes, TCP, UDP (Datagrams.java) and Unix sockets, and a mapped file whose words
// are exchanged by VarHandle.

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;

public final class Driver extends Endpoint {
    private Driver() {
        super(
                "java",
                "",
                new Offer("pipe", "latency", "transfer", "throughput"),
                new Offer("tcp", "latency", "transfer", "throughput"),
                new Offer("udp", "latency", "transfer", "throughput"),
                new Offer("java-unix-channel", "latency", "transfer", "throughput"),
                new Offer("java-mapped-file", "latency", "transfer"));
    }

    /** Over channels of bytes. */
    private static final class Streamed extends Channel {
        private final ReadableByteChannel source;
        private final WritableByteChannel sink;
        private final ByteBuffer incoming;
        private final ByteBuffer outgoing;

        Streamed(ReadableByteChannel source, WritableByteChannel sink, int size) {
            this.source = source;
            this.sink = sink;
            incoming = room(size);
            outgoing = room(size);
        }

        @Override
        protected void send(long number, int size) throws IOException {
            make(outgoing, number, size);
            while (outgoing.hasRemaining()) {
                sink.write(outgoing);
            }
        }

        @Override
        protected void receive(long number, int size) throws IOException {
            incoming.clear().limit(size);
            while (incoming.hasRemaining()) {
                if (source.read(incoming) < 0) {
                    throw new Failed("the peer has closed");
                }
            }
            verify(incoming, number, size);
        }
    }

    /** Over a mapped file: each side has a word that counts its messages, and room for one. */
    private static final class Mapped extends Channel {
        private static final VarHandle WORD =
                MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
        private static final int LINE = 128;
        private final MappedByteBuffer map;
        private final ByteBuffer[] rooms = new ByteBuffer[2];
        private final int own;
        private long sent;
        private long received;

        Mapped(MappedByteBuffer map, int size, boolean isClient) {
            this.map = map;
            own = isClient ? 0 : 1;
            for (int side = 0; side < 2; side++) {
                rooms[side] = map.slice(2 * LINE + side * (size + 8), size + 8).order(ByteOrder.LITTLE_ENDIAN);
            }
        }

        @Override
        protected void send(long number, int size) {
            make(rooms[own], number, size);
            sent++;
            WORD.setRelease(map, own * LINE, sent);
        }

        @Override
        protected void receive(long number, int size) throws IOException {
            received++;
            for (long spins = 0; (long) WORD.getAcquire(map, (1 - own) * LINE) < received; spins++) {
                // Where both share a CPU, the other one needs it; and nobody tells of the death of a peer.
                if ((spins & 1023) == 1023) {
                    Thread.yield();
                    mindCoordinator();
                } else {
                    Thread.onSpinWait();
                }
            }
            verify(rooms[1 - own], number, size);
        }
    }

    private static Channel tcp(Orders orders) throws IOException {
        List<Integer> token = orders.numbers("token");
        String host = orders.words("server");
        ByteBuffer shown = ByteBuffer.allocate(token.size());
        SocketChannel socket;
        if (orders.isClient()) {
            byte[] port = ticket();
            socket = SocketChannel.open(new InetSocketAddress(host, (port[0] & 255) << 8 | port[1] & 255));
            token.forEach(value -> shown.put(value.byteValue()));
            socket.write(shown.flip());
        } else {
            ServerSocketChannel listener = ServerSocketChannel.open().bind(new InetSocketAddress(host, 0));
            int port = ((InetSocketAddress) listener.getLocalAddress()).getPort();
            sayTicket(new byte[] {(byte) (port >> 8), (byte) port});
            while (true) {
                socket = listener.accept();
                if (isAdmitted(socket, token)) {
                    break;
                }
                socket.close();
            }
        }
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
        return new Streamed(socket, socket, orders.size());
    }

    /** Whether a connection shows the token within two seconds: whoever does not is a stranger. */
    private static boolean isAdmitted(SocketChannel socket, List<Integer> token) {
        try {
            socket.socket().setSoTimeout(2000);
            byte[] shown = socket.socket().getInputStream().readNBytes(token.size());
            for (int k = 0; k < token.size(); k++) {
                if (k >= shown.length || (shown[k] & 255) != token.get(k)) {
                    return false;
                }
            }
            return true;
        } catch (IOException silent) {
            return false;
        }
    }

    private static Channel unix(Orders orders) throws IOException {
        SocketChannel socket;
        if (orders.isClient()) {
            socket = SocketChannel.open(UnixDomainSocketAddress.of(new String(ticket(), StandardCharsets.UTF_8)));
        } else {
            ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            listener.bind(UnixDomainSocketAddress.of(orders.path("java")));
            sayTicket(orders.path("java").getBytes(StandardCharsets.UTF_8));
            socket = listener.accept();
        }
        return new Streamed(socket, socket, orders.size());
    }

    private static Channel mapped(Orders orders) throws IOException {
        long length = 2L * Mapped.LINE + 2L * (orders.size() + 8);
        String name;
        if (orders.isClient()) {
            name = new String(ticket(), StandardCharsets.UTF_8);
        } else {
            name = orders.path("java");
            try (RandomAccessFile made = new RandomAccessFile(name, "rw")) {
                made.setLength(length);
            }
            sayTicket(name.getBytes(StandardCharsets.UTF_8));
        }
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            MappedByteBuffer map = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, length);
            return new Mapped(map, orders.size(), orders.isClient());
        }
    }

    @Override
    protected Channel connect(Orders orders) throws IOException {
        switch (orders.mechanism()) {
            case "pipe":
                List<Integer> ends = orders.numbers("descriptors");
                // Java opens descriptors by their names alone.
                FileInputStream source = new FileInputStream("/proc/self/fd/" + ends.get(0));
                FileOutputStream sink = new FileOutputStream("/proc/self/fd/" + ends.get(1));
                return new Streamed(source.getChannel(), sink.getChannel(), orders.size());
            case "tcp":
                return tcp(orders);
            case "udp":
                return Datagrams.connected(orders);
            case "java-unix-channel":
                return unix(orders);
            case "java-mapped-file":
                return mapped(orders);
            default:
                throw new Failed("this driver has no " + orders.mechanism());
        }
    }

    public static void main(String[] arguments) {
        new Driver().takePart();
    }
}
