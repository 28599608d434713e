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

public class Driver extends Endpoint {
    /** The driver with those codecs for all that streams bytes. */
    protected Driver(String... codecs) {
        super(
                "java",
                "",
                new Offer("pipe", "latency", "transfer", "throughput").with(codecs),
                new Offer("tcp", "latency", "transfer", "throughput").with(codecs),
                new Offer("udp", "latency", "transfer", "throughput"),
                new Offer("java-unix-channel", "latency", "transfer", "throughput").with(codecs),
                new Offer("java-mapped-file", "latency", "transfer"));
    }

    /** The codec of that name, one of the driver's. */
    protected Codec codec(String name) throws Failed {
        throw new Failed("this driver has no codec " + name);
    }

    /** Over channels of bytes. */
    private static class Streamed extends Channel {
        private final ReadableByteChannel source;
        private final WritableByteChannel sink;
        private final ByteBuffer incoming;
        protected final ByteBuffer outgoing;

        Streamed(ReadableByteChannel source, WritableByteChannel sink, int size) {
            this.source = source;
            this.sink = sink;
            incoming = room(size);
            outgoing = room(size);
        }

        protected final void write(ByteBuffer bytes) throws IOException {
            while (bytes.hasRemaining()) {
                sink.write(bytes);
            }
        }

        /** Fills `bytes` from its beginning to that length. */
        protected final void read(ByteBuffer bytes, int length) throws IOException {
            bytes.clear().limit(length);
            while (bytes.hasRemaining()) {
                if (source.read(bytes) < 0) {
                    throw new Failed("the peer has closed");
                }
            }
        }

        @Override
        protected void send(long number, int size) throws IOException {
            make(outgoing, number, size);
            write(outgoing);
        }

        @Override
        protected void receive(long number, int size) throws IOException {
            read(incoming, size);
            verify(incoming, number, size);
        }
    }

    /** Over the same, objects of which a codec makes bytes, each with its length before it. */
    private static final class Coded extends Streamed {
        private static final int HEAD = 4;
        private final Codec codec;
        /** The length, or the bytes of an object; more than those is no object of that size in any codec. */
        private final ByteBuffer frame;

        Coded(Codec codec, ReadableByteChannel source, WritableByteChannel sink, int size) {
            super(source, sink, size);
            this.codec = codec;
            frame = room(2 * size + 1024);
        }

        @Override
        protected void send(long number, int size) throws IOException {
            make(outgoing, number, size);
            byte[] data = new byte[size];
            outgoing.get(0, data);
            byte[] body = codec.encode(data);
            frame.clear().putInt(body.length).put(body).flip();
            write(frame);
        }

        @Override
        protected void receive(long number, int size) throws IOException {
            read(frame, HEAD);
            int length = frame.getInt(0);
            if (length < 0 || length > frame.capacity()) {
                throw changed(number);
            }
            read(frame, length);
            byte[] body = new byte[length];
            frame.get(0, body);
            byte[] data = codec.decode(body);
            if (data == null || data.length != size) {
                throw changed(number);
            }
            verify(ByteBuffer.wrap(data), number, size);
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

    private Channel streamed(ReadableByteChannel source, WritableByteChannel sink, Orders orders) throws Failed {
        return orders.codec().isEmpty()
                ? new Streamed(source, sink, orders.size())
                : new Coded(codec(orders.codec()), source, sink, orders.size());
    }

    private Channel tcp(Orders orders) throws IOException {
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
        return streamed(socket, socket, orders);
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

    private Channel unix(Orders orders) throws IOException {
        SocketChannel socket;
        if (orders.isClient()) {
            socket = SocketChannel.open(UnixDomainSocketAddress.of(new String(ticket(), StandardCharsets.UTF_8)));
        } else {
            ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            listener.bind(UnixDomainSocketAddress.of(orders.path("java")));
            sayTicket(orders.path("java").getBytes(StandardCharsets.UTF_8));
            socket = listener.accept();
        }
        return streamed(socket, socket, orders);
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
                return streamed(source.getChannel(), sink.getChannel(), orders);
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
