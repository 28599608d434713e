// The driver `aeron`: Aeron's IPC, which is a log of messages in memory that both map, one each way. The server's
// process also has the media driver, in a thread of its own, which makes the logs and says how far one may be filled.

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.Header;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.agrona.BitUtil;
import org.agrona.DirectBuffer;
import org.agrona.IoUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;

public final class Driver extends Endpoint {
    private static final int ASKED = 1;
    private static final int ANSWERED = 2;
    private static final int LEAST_TERM = 8 << 20;
    private static final int LONGEST = 16 << 20;

    private Driver() {
        super("aeron", "Aeron " + Aeron.class.getPackage().getImplementationVersion(),
                new Offer("aeron-ipc", "latency", "transfer", "throughput"));
    }

    private static final class Logged extends Channel {
        private static final int FRAGMENTS_OF_A_POLL = 10;
        private final ExclusivePublication publication;
        private final Subscription subscription;
        private final FragmentAssembler assembler = new FragmentAssembler(this::take);
        // Both may share a CPU, where the other one and the media driver need it.
        private final IdleStrategy idle = new YieldingIdleStrategy();
        private final ByteBuffer outgoing;
        private final UnsafeBuffer offered;
        /** The message that is due, and how many have come from it on, of which each was to be of that size. */
        private long due;
        private int came;
        private int size;
        private boolean isWrong;

        Logged(ExclusivePublication publication, Subscription subscription, int size) {
            this.publication = publication;
            this.subscription = subscription;
            outgoing = room(size);
            offered = new UnsafeBuffer(outgoing);
        }

        @Override
        protected void send(long number, int size) throws IOException {
            make(outgoing, number, size);
            for (long waits = 1; true; waits++) {
                long position = publication.offer(offered, 0, size);
                if (position > 0) {
                    return;
                }
                if (position != Publication.BACK_PRESSURED && position != Publication.ADMIN_ACTION) {
                    throw new Failed("Aeron does not take a message: " + Publication.errorString(position));
                }
                pause(waits);
            }
        }

        /** A poll may bring several messages, which are checked at once: they are the library's afterwards. */
        @Override
        protected void receive(long number, int size) throws IOException {
            if (came == 0) {
                this.size = size;
                due = number;
                for (long waits = 1; came == 0; waits++) {
                    if (subscription.poll(assembler, FRAGMENTS_OF_A_POLL) == 0) {
                        pause(waits);
                    }
                }
            }
            came--;
            if (isWrong) {
                throw changed(number);
            }
        }

        private void take(DirectBuffer buffer, int offset, int length, Header header) {
            isWrong |= length != size;
            for (int k = 0; !isWrong && k < held(size); k++) {
                isWrong = buffer.getByte(offset + k) != expected(due + came, k);
            }
            came++;
        }

        private void pause(long waits) throws IOException {
            idle.idle();
            if ((waits & 1023) == 0) {
                mindCoordinator();
            }
        }
    }

    private static void launch(String directory) {
        // One thread for all: there is nothing to be sent to a network or received from one.
        MediaDriver.launch(new MediaDriver.Context()
                .aeronDirectoryName(directory)
                .threadingMode(ThreadingMode.SHARED)
                .termBufferSparseFile(false)
                .counterValuesBufferLength(1 << 20)
                .errorHandler(Driver::complain));
    }

    /** What goes wrong in the library's own threads is for people: the endpoint sees it by what does not come. */
    private static void complain(Throwable error) {
        System.err.println("aeron: " + error.getMessage());
    }

    @Override
    protected Channel connect(Orders orders) throws IOException {
        if (!orders.mechanism().equals("aeron-ipc")) {
            throw new Failed("this driver has no " + orders.mechanism());
        }
        if (orders.size() > LONGEST) {
            throw new Failed("a message of Aeron has at most " + LONGEST + " bytes");
        }
        String directory;
        if (orders.isClient()) {
            directory = new String(ticket(), StandardCharsets.UTF_8);
        } else {
            directory = orders.path("aeron");
            launch(directory);
        }
        // All of a log is in memory from the beginning, as it is in a program that has run for a while.
        Aeron aeron = Aeron.connect(new Aeron.Context()
                .aeronDirectoryName(directory)
                .preTouchMappedMemory(true)
                .errorHandler(Driver::complain));
        // A message may be as long as an eighth of a term.
        int term = Math.max(LEAST_TERM, BitUtil.findNextPositivePowerOfTwo(8 * orders.size()));
        String channel = "aeron:ipc?term-length=" + term;
        Subscription subscription = aeron.addSubscription(channel, orders.isClient() ? ANSWERED : ASKED);
        ExclusivePublication publication =
                aeron.addExclusivePublication(channel, orders.isClient() ? ASKED : ANSWERED);
        if (!orders.isClient()) {
            sayTicket(directory.getBytes(StandardCharsets.UTF_8));
        }
        while (!publication.isConnected() || !subscription.isConnected()) {
            Thread.yield();
            mindCoordinator();
        }
        Channel logs = new Logged(publication, subscription, orders.size());
        // When the client sends, both have mapped all files, and these need no names any more: so nothing is left by
        // whoever is killed.
        if (orders.isClient()) {
            logs.send(0, 1);
        } else {
            logs.receive(0, 1);
            IoUtil.delete(new File(directory), true);
        }
        return logs;
    }

    public static void main(String[] arguments) {
        new Driver().takePart();
    }
}
