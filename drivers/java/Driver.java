// An endpoint of ipcmark in Java, by the document docs/reference/protocol.md: channels of NIO over pipes, TCP and Unix sockets, and a mapped file
// whose words are exchanged by VarHandle. Messages of the protocol are few and flat, so that they are searched and not parsed.

import java.io.DataInputStream;
import java.io.EOFException;
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
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Driver {
    private static final String HELLO =
            "{\"hello\":{\"protocol\":\"ipcmark-endpoint\",\"version\":3,\"program\":\"java\",\"capabilities\":[\"each\"],"
                    + "\"runtime\":\"" + System.getProperty("java.vm.name") + " " + System.getProperty("java.version") + "\","
                    + "\"mechanisms\":["
                    + "{\"name\":\"pipe\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
                    + "{\"name\":\"tcp\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
                    + "{\"name\":\"java-unix-channel\",\"workloads\":[\"latency\",\"transfer\",\"throughput\"]},"
                    + "{\"name\":\"java-mapped-file\",\"workloads\":[\"latency\",\"transfer\"]}]}}";
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final DataInputStream INPUT = new DataInputStream(System.in);

    /** Why the endpoint cannot go on. */
    private static final class Failed extends IOException {
        private static final long serialVersionUID = 1;

        Failed(String why) {
            super(why);
        }
    }

    private record Stretch(int messages, boolean timed, boolean acknowledged) {}

    /** What the orders say. */
    private record Orders(boolean isClient, String mechanism, String workload, int size, String text) {
        List<Integer> numbers(String name) throws IOException {
            return Driver.numbers(text, name);
        }

        String words(String name) throws IOException {
            return value(text, name, "\"([^\"]*)\"");
        }
    }

    /** Sends and receives whole messages. */
    private abstract static class Channel {
        boolean check;

        abstract void send(long number, int size) throws IOException;

        abstract void receive(long number, int size) throws IOException;

        /** Puts message `number` into `bytes`, which is cleared. */
        final void make(ByteBuffer bytes, long number, int size) {
            bytes.clear();
            bytes.putLong(0, number);
            for (int k = 8; check && k < size; k++) {
                bytes.put(k, (byte) ((number + k) * GOLDEN >>> 56));
            }
            bytes.limit(size);
        }

        final void verify(ByteBuffer bytes, long number, int size) throws IOException {
            for (int k = 0; k < (check ? size : Math.min(size, 8)); k++) {
                byte expected = (byte) (k < 8 ? number >>> 8 * k : (number + k) * GOLDEN >>> 56);
                if (bytes.get(k) != expected) {
                    throw new Failed("message " + number + " came changed, or another came in its place");
                }
            }
        }
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
            incoming = ByteBuffer.allocateDirect(size + 8).order(ByteOrder.LITTLE_ENDIAN);
            outgoing = ByteBuffer.allocateDirect(size + 8).order(ByteOrder.LITTLE_ENDIAN);
        }

        @Override
        void send(long number, int size) throws IOException {
            make(outgoing, number, size);
            while (outgoing.hasRemaining()) {
                sink.write(outgoing);
            }
        }

        @Override
        void receive(long number, int size) throws IOException {
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
        private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
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
        void send(long number, int size) {
            make(rooms[own], number, size);
            sent++;
            WORD.setRelease(map, own * LINE, sent);
        }

        @Override
        void receive(long number, int size) throws IOException {
            received++;
            for (long spins = 0; (long) WORD.getAcquire(map, (1 - own) * LINE) < received; spins++) {
                // Where both share a CPU, the other one needs it; and nobody tells of the death of a peer.
                if ((spins & 1023) == 1023) {
                    Thread.yield();
                    if (System.in.available() > 0) {
                        throw new Failed("the peer has sent nothing, and the coordinator has said something");
                    }
                } else {
                    Thread.onSpinWait();
                }
            }
            verify(rooms[1 - own], number, size);
        }
    }

    private static void say(String message) {
        byte[] body = message.getBytes(StandardCharsets.UTF_8);
        ByteBuffer frame = ByteBuffer.allocate(4 + body.length).order(ByteOrder.LITTLE_ENDIAN);
        frame.putInt(body.length).put(body);
        System.out.write(frame.array(), 0, frame.capacity());
        System.out.flush();
    }

    /** The next message; ends the program where there is none or it is goodbye. */
    private static String hear() throws IOException {
        try {
            byte[] body = new byte[Integer.reverseBytes(INPUT.readInt())];
            INPUT.readFully(body);
            String message = new String(body, StandardCharsets.UTF_8);
            if (message.equals("\"goodbye\"")) {
                System.exit(0);
            }
            return message;
        } catch (EOFException gone) {
            System.exit(0);
            throw gone;
        }
    }

    private static String value(String text, String name, String form) throws IOException {
        Matcher found = Pattern.compile("\"" + name + "\":" + form).matcher(text);
        if (!found.find()) {
            throw new Failed("there is no " + name + " in what was said");
        }
        return found.group(1);
    }

    private static List<Integer> numbers(String text, String name) throws IOException {
        List<Integer> all = new ArrayList<>();
        for (String number : value(text, name, "\\[([0-9,]*)\\]").split(",")) {
            if (!number.isEmpty()) {
                all.add(Integer.parseInt(number));
            }
        }
        return all;
    }

    private static byte[] ticket() throws IOException {
        List<Integer> numbers = numbers(hear(), "ticket");
        byte[] bytes = new byte[numbers.size()];
        for (int k = 0; k < bytes.length; k++) {
            bytes[k] = numbers.get(k).byteValue();
        }
        return bytes;
    }

    private static void sayTicket(byte[] bytes) {
        StringBuilder list = new StringBuilder();
        for (byte value : bytes) {
            list.append(list.isEmpty() ? "" : ",").append(value & 255);
        }
        say("{\"ticket\":[" + list + "]}");
    }

    /** A path of this trial, which the server makes up. */
    private static String path(Orders orders) throws IOException {
        return orders.words("directory") + "/" + value(orders.text, "number", "([0-9]+)") + ".java";
    }

    private static Channel tcp(Orders orders) throws IOException {
        List<Integer> token = orders.numbers("token");
        String host = value(orders.text, "server", "\"([0-9a-f.:]+)\"");
        ByteBuffer shown = ByteBuffer.allocate(token.size());
        SocketChannel socket;
        if (orders.isClient) {
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
        return new Streamed(socket, socket, orders.size);
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
        if (orders.isClient) {
            socket = SocketChannel.open(UnixDomainSocketAddress.of(new String(ticket(), StandardCharsets.UTF_8)));
        } else {
            ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            listener.bind(UnixDomainSocketAddress.of(path(orders)));
            sayTicket(path(orders).getBytes(StandardCharsets.UTF_8));
            socket = listener.accept();
        }
        return new Streamed(socket, socket, orders.size);
    }

    private static Channel mapped(Orders orders) throws IOException {
        long length = 2L * Mapped.LINE + 2L * (orders.size + 8);
        String name;
        if (orders.isClient) {
            name = new String(ticket(), StandardCharsets.UTF_8);
        } else {
            name = path(orders);
            try (RandomAccessFile made = new RandomAccessFile(name, "rw")) {
                made.setLength(length);
            }
            sayTicket(name.getBytes(StandardCharsets.UTF_8));
        }
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            MappedByteBuffer map = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, length);
            return new Mapped(map, orders.size, orders.isClient);
        }
    }

    private static Channel connect(Orders orders) throws IOException {
        if (!value(orders.text, "parameters", "(\\{[^}]*\\})").equals("{}")) {
            throw new Failed("this driver has no parameters");
        }
        switch (orders.mechanism) {
            case "pipe":
                List<Integer> ends = orders.numbers("descriptors");
                // Java opens descriptors by their names alone.
                FileInputStream source = new FileInputStream("/proc/self/fd/" + ends.get(0));
                FileOutputStream sink = new FileOutputStream("/proc/self/fd/" + ends.get(1));
                return new Streamed(source.getChannel(), sink.getChannel(), orders.size);
            case "tcp":
                return tcp(orders);
            case "java-unix-channel":
                return unix(orders);
            case "java-mapped-file":
                return mapped(orders);
            default:
                throw new Failed("this driver has no " + orders.mechanism);
        }
    }

    /** Does one phase, and says what it came to. */
    private static void run(Orders orders, Channel channel, String phase) throws IOException {
        channel.check = value(phase, "check", "(true|false)").equals("true");
        boolean each = value(phase, "each", "(true|false)").equals("true");
        List<Stretch> stretches = new ArrayList<>();
        Matcher found = Pattern.compile("\"messages\":(\\d+),\"timed\":(true|false),\"acknowledged\":(true|false)").matcher(phase);
        while (found.find()) {
            stretches.add(new Stretch(Integer.parseInt(found.group(1)), found.group(2).equals("true"), found.group(3).equals("true")));
        }
        if (!orders.isClient) {
            say("\"ready\"");
        }
        StringBuilder eachNs = new StringBuilder();
        long number = 0;
        long elapsedNs = 0;
        for (Stretch stretch : stretches) {
            long[] times = each && stretch.timed ? new long[stretch.messages] : null;
            long start = System.nanoTime();
            exchange(orders, channel, number, number + stretch.messages, times);
            number += stretch.messages;
            if (stretch.acknowledged) {
                acknowledge(orders, channel, number);
            }
            elapsedNs += stretch.timed ? System.nanoTime() - start : 0;
            for (int k = 0; times != null && k < times.length; k++) {
                eachNs.append(k == 0 ? "" : ",").append(times[k]);
            }
        }
        say("{\"done\":{\"elapsed_ns\":" + elapsedNs + ",\"each_ns\":[" + eachNs + "]}}");
    }

    private static void exchange(Orders orders, Channel channel, long from, long to, long[] times) throws IOException {
        boolean streams = orders.workload.equals("throughput");
        int answer = orders.workload.equals("latency") ? orders.size : 1;
        long before = times == null ? 0 : System.nanoTime();
        for (long number = from; number < to; number++) {
            if (orders.isClient) {
                channel.send(number, orders.size);
                if (!streams) {
                    channel.receive(number, answer);
                }
            } else {
                channel.receive(number, orders.size);
                if (!streams) {
                    channel.send(number, answer);
                }
            }
            if (times != null) {
                long now = System.nanoTime();
                times[(int) (number - from)] = now - before;
                before = now;
            }
        }
    }

    private static void acknowledge(Orders orders, Channel channel, long count) throws IOException {
        if (orders.isClient) {
            channel.receive(count, 1);
        } else {
            channel.send(count, 1);
        }
    }

    public static void main(String[] arguments) {
        try {
            hear();
            say(HELLO);
            String text = hear();
            Orders orders = new Orders(
                    value(text, "role", "\"([a-z]+)\"").equals("client"),
                    value(text, "mechanism", "\"([^\"]*)\""),
                    value(text, "workload", "\"([a-z]+)\""),
                    Integer.parseInt(value(text, "size_bytes", "([0-9]+)")),
                    text);
            Channel channel = connect(orders);
            say("\"connected\"");
            while (true) {
                run(orders, channel, hear());
            }
        } catch (IOException | RuntimeException error) {
            String why = error.getMessage() == null ? error.toString() : error.getMessage();
            say("{\"failed\":\"" + why.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"}");
            System.exit(1);
        }
    }
}
