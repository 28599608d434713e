// An endpoint of ipcmark over a pair of pipes: whatever connects two processes can come in their place. Make it yours.

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;

public final class Template extends Endpoint {
    private Template() {
        super("NAME", "", new Offer("pipe", "latency", "transfer", "throughput"));
    }

    @Override
    protected Channel connect(Orders orders) throws IOException {
        var source = new FileInputStream("/proc/self/fd/" + orders.numbers("descriptors").get(0));
        var sink = new FileOutputStream("/proc/self/fd/" + orders.numbers("descriptors").get(1));
        var message = room(orders.size());
        return new Channel() {
            @Override
            protected void send(long number, int size) throws IOException {
                for (make(message, number, size); message.hasRemaining(); ) {
                    sink.getChannel().write(message);
                }
            }

            @Override
            protected void receive(long number, int size) throws IOException {
                for (message.clear().limit(size); message.hasRemaining(); ) {
                    if (source.getChannel().read(message) < 0) {
                        throw new Failed("the peer has closed");
                    }
                }
                verify(message, number, size);
            }
        };
    }

    public static void main(String[] arguments) {
        new Template().takePart();
    }
}
