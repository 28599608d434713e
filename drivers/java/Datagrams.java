// The mechanism udp of the driver `java`: datagrams of DatagramChannel, in a window, so that none is lost.

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.DatagramChannel;
import java.util.List;

/** Of a stream an endpoint sends or receives: the server acknowledges each half of what its buffer holds, and so much is
 * on its way at most. */
final class Datagrams extends Endpoint.Channel {
    private final DatagramChannel socket;
    private final ByteBuffer outgoing;
    private final ByteBuffer incoming;
    private final ByteBuffer word = ByteBuffer.allocateDirect(1);
    private final boolean waits;
    private final boolean acknowledges;
    private final int half;
    private final int most;
    private int open;

    private Datagrams(DatagramChannel socket, Endpoint.Orders orders, int fitting) {
        this.socket = socket;
        outgoing = Endpoint.room(orders.size());
        // A byte more than is due tells a datagram that is too long.
        incoming = Endpoint.room(orders.size());
        boolean streams = orders.workload().equals("throughput");
        waits = streams && orders.isClient();
        acknowledges = streams && !orders.isClient();
        half = Math.max(fitting / 2, 1);
        most = fitting < 2 ? 1 : 2 * half;
    }

    @Override
    protected void send(long number, int size) throws IOException {
        if (waits) {
            waitForRoom(most - 1);
            open++;
        }
        make(outgoing, number, size);
        socket.write(outgoing);
    }

    @Override
    protected void receive(long number, int size) throws IOException {
        if (waits) {
            waitForRoom(half - 1);
        }
        incoming.clear().limit(size + 1);
        socket.read(incoming);
        if (incoming.position() != size) {
            throw changed(number);
        }
        verify(incoming, number, size);
        if (acknowledges && ++open == half) {
            open = 0;
            socket.write(word.clear());
        }
    }

    /** Waits until no more messages than that are not acknowledged. */
    private void waitForRoom(int left) throws IOException {
        for (; open > left; open -= half) {
            socket.read(word.clear());
        }
    }

    static Datagrams connected(Endpoint.Orders orders) throws IOException {
        DatagramChannel socket = DatagramChannel.open();
        List<Integer> token = orders.numbers("token");
        String host = orders.words("server");
        return new Datagrams(
                socket, orders, orders.isClient() ? greet(socket, host, token) : welcome(socket, host, orders, token));
    }

    /** Connects a client. Returns how many messages fit in its server's buffer. */
    private static int greet(DatagramChannel socket, String host, List<Integer> token) throws IOException {
        ByteBuffer ticket = ByteBuffer.wrap(Endpoint.ticket());
        if (ticket.remaining() != 6) {
            throw new Endpoint.Failed("the ticket of udp has six bytes");
        }
        socket.connect(new InetSocketAddress(host, ticket.getShort() & 0xffff));
        socket.write(word(token, 'h'));
        ByteBuffer room = ByteBuffer.allocate(64);
        while (kind(socket, room, token) != 'w') {
            continue;
        }
        socket.write(word(token, 'r'));
        return ticket.getInt();
    }

    /** Connects a server. Returns how many messages fit in its buffer. */
    private static int welcome(DatagramChannel socket, String host, Endpoint.Orders orders, List<Integer> token)
            throws IOException {
        socket.bind(new InetSocketAddress(host, 0));
        // Of the buffer's size Java says half, which is what messages surely have.
        int fitting = socket.getOption(StandardSocketOptions.SO_RCVBUF) / (2 * orders.size() + 1024);
        ByteBuffer ticket = ByteBuffer.allocate(6).order(ByteOrder.BIG_ENDIAN);
        ticket.putShort((short) ((InetSocketAddress) socket.getLocalAddress()).getPort()).putInt(fitting);
        Endpoint.sayTicket(ticket.array());
        ByteBuffer room = ByteBuffer.allocate(64);
        SocketAddress client;
        do {
            client = socket.receive(room.clear());
        } while (!room.flip().equals(word(token, 'h')));
        socket.connect(client);
        do {
            socket.write(word(token, 'w'));
        } while (kind(socket, room, token) == 'h');
        return fitting;
    }

    private static ByteBuffer word(List<Integer> token, char kind) {
        ByteBuffer word = ByteBuffer.allocate(token.size() + 1);
        token.forEach(value -> word.put(value.byteValue()));
        return word.put((byte) kind).flip();
    }

    /** The kind of the peer's next word. What is no word is dropped. */
    private static char kind(DatagramChannel socket, ByteBuffer room, List<Integer> token) throws IOException {
        while (true) {
            socket.read(room.clear());
            if (room.position() > 0) {
                char kind = (char) room.get(room.position() - 1);
                if (room.flip().equals(word(token, kind))) {
                    return kind;
                }
            }
        }
    }
}
