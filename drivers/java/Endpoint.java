// The core of an endpoint of ipcmark in Java, by the document docs/reference/protocol.md: messages, phases and
// payload. What connects two endpoints is each driver's own. Messages of the protocol are few and flat, so that they
// are searched and not parsed.

import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public abstract class Endpoint {
    private static final long GOLDEN = 0x9e3779b97f4a7c15L;
    private static final DataInputStream INPUT = new DataInputStream(System.in);

    private final String program;
    private final String library;
    private final Offer[] offers;

    /** An endpoint of that program, which goes the ways of `library`, empty where those are Java's own. */
    protected Endpoint(String program, String library, Offer... offers) {
        this.program = program;
        this.library = library;
        this.offers = offers;
    }

    /** Connects the endpoints as the orders say. */
    protected abstract Channel connect(Orders orders) throws IOException;

    /** A mechanism, what can be measured of it, and by which codecs bytes can be made of its messages. */
    public record Offer(String name, List<String> workloads, List<String> codecs) {
        public Offer(String name, String... workloads) {
            this(name, List.of(workloads), List.of());
        }

        public Offer with(String... codecs) {
            return new Offer(name, workloads, List.of(codecs));
        }
    }

    /** Makes bytes of an object with `data`, and the data of them again. */
    public interface Codec {
        byte[] encode(byte[] data) throws IOException;

        byte[] decode(byte[] body) throws IOException;
    }

    /** Why the endpoint cannot go on. */
    public static final class Failed extends IOException {
        private static final long serialVersionUID = 1;

        public Failed(String why) {
            super(why);
        }
    }

    private record Stretch(int messages, boolean timed, boolean acknowledged) {}

    /** What the orders say; `text` is all of it, and `codec` empty where messages are sent as they are. */
    public record Orders(
            boolean isClient, String mechanism, String workload, int size, String codec, String text) {
        public List<Integer> numbers(String name) throws IOException {
            return Endpoint.numbers(text, name);
        }

        public String words(String name) throws IOException {
            return value(text, name, "\"([^\"]*)\"");
        }

        /** A path of this trial, which the server makes up and which ends with the name of its driver. */
        public String path(String ending) throws IOException {
            return words("directory") + "/" + value(text, "number", "([0-9]+)") + "." + ending;
        }
    }

    /** Sends and receives whole messages. */
    public abstract static class Channel {
        private boolean check;

        protected abstract void send(long number, int size) throws IOException;

        protected abstract void receive(long number, int size) throws IOException;

        /** Puts message `number` into `bytes`, which are little-endian and no fewer than 8, from their beginning. */
        protected final void make(ByteBuffer bytes, long number, int size) {
            bytes.clear();
            bytes.putLong(0, number);
            for (int k = 8; check && k < size; k++) {
                bytes.put(k, expected(number, k));
            }
            bytes.limit(size);
        }

        /** Fails where `bytes`, from their beginning, are not message `number`. */
        protected final void verify(ByteBuffer bytes, long number, int size) throws IOException {
            for (int k = 0; k < held(size); k++) {
                if (bytes.get(k) != expected(number, k)) {
                    throw changed(number);
                }
            }
        }

        /** How many bytes of a message matter. */
        protected final int held(int size) {
            return check ? size : Math.min(size, 8);
        }

        protected static byte expected(long number, int k) {
            return (byte) (k < 8 ? number >>> 8 * k : (number + k) * GOLDEN >>> 56);
        }

        protected static Failed changed(long number) {
            return new Failed("message " + number + " came changed, or another came in its place");
        }
    }

    /** Room for a message of `size` bytes, as `make` needs it. */
    public static ByteBuffer room(int size) {
        return ByteBuffer.allocateDirect(size + 8).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** For whoever waits where nobody tells of the death of a peer: fails where the coordinator has said something. */
    public static void mindCoordinator() throws IOException {
        if (System.in.available() > 0) {
            throw new Failed("the peer has sent nothing, and the coordinator has said something");
        }
    }

    public static void say(String message) {
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

    /** The ticket that the server gave, to its client. */
    public static byte[] ticket() throws IOException {
        List<Integer> numbers = numbers(hear(), "ticket");
        byte[] bytes = new byte[numbers.size()];
        for (int k = 0; k < bytes.length; k++) {
            bytes[k] = numbers.get(k).byteValue();
        }
        return bytes;
    }

    public static void sayTicket(byte[] bytes) {
        StringBuilder list = new StringBuilder();
        for (byte value : bytes) {
            list.append(list.isEmpty() ? "" : ",").append(value & 255);
        }
        say("{\"ticket\":[" + list + "]}");
    }

    private static String listed(List<String> words) {
        return words.isEmpty() ? "[]" : "[\"" + String.join("\",\"", words) + "\"]";
    }

    private String hello() {
        StringBuilder mechanisms = new StringBuilder();
        for (Offer offer : offers) {
            mechanisms.append(mechanisms.isEmpty() ? "" : ",").append("{\"name\":\"").append(offer.name)
                    .append("\",\"workloads\":").append(listed(offer.workloads))
                    .append(",\"codecs\":").append(listed(offer.codecs)).append("}");
        }
        return "{\"hello\":{\"protocol\":\"ipcmark-endpoint\",\"version\":3,\"program\":\"" + program
                + "\",\"capabilities\":[\"each\"],\"library\":\"" + library + "\",\"runtime\":\""
                + System.getProperty("java.vm.name") + " " + System.getProperty("java.version")
                + "\",\"mechanisms\":[" + mechanisms + "]}}";
    }

    /** Does one phase, and says what it came to. */
    private static void run(Orders orders, Channel channel, String phase) throws IOException {
        channel.check = value(phase, "check", "(true|false)").equals("true");
        boolean each = value(phase, "each", "(true|false)").equals("true");
        List<Stretch> stretches = new ArrayList<>();
        String form = "\"messages\":(\\d+),\"timed\":(true|false),\"acknowledged\":(true|false)";
        Matcher found = Pattern.compile(form).matcher(phase);
        while (found.find()) {
            int messages = Integer.parseInt(found.group(1));
            stretches.add(new Stretch(messages, found.group(2).equals("true"), found.group(3).equals("true")));
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

    /** The codec that is all of `parameters`, empty where there are none. */
    private static String codec(String parameters) throws Failed {
        Matcher found = Pattern.compile("(?:\"codec\":\"([a-z0-9]+)\")?").matcher(parameters);
        if (!found.matches()) {
            throw new Failed("this driver has no parameters but a codec");
        }
        return found.group(1) == null ? "" : found.group(1);
    }

    /** Whether the codec of the orders, if they have one, is one of their mechanism. */
    private boolean isOffered(Orders orders) {
        boolean isOffered = orders.codec.isEmpty();
        for (Offer offer : offers) {
            isOffered |= offer.name.equals(orders.mechanism) && offer.codecs.contains(orders.codec);
        }
        return isOffered;
    }

    /** Takes part in a trial, which ends the program. */
    public final void takePart() {
        try {
            hear();
            say(hello());
            String text = hear();
            Orders orders = new Orders(
                    value(text, "role", "\"([a-z]+)\"").equals("client"),
                    value(text, "mechanism", "\"([^\"]*)\""),
                    value(text, "workload", "\"([a-z]+)\""),
                    Integer.parseInt(value(text, "size_bytes", "([0-9]+)")),
                    codec(value(text, "parameters", "\\{([^}]*)\\}")),
                    text);
            if (!isOffered(orders)) {
                throw new Failed("this driver has no codec " + orders.codec + " for " + orders.mechanism);
            }
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
