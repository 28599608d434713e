// A ping-pong over two pipes, as one writes it to throw it away: what the driver `java` is held against.
// javac -d . PingPong.java; taskset -c 0 java -XX:+UseSerialGC -cp . PingPong SIZE ITERATIONS

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;

record PingPong(FileChannel source, FileChannel sink, ByteBuffer message, int size) {
    static PingPong over(String source, String sink, int size) throws IOException {
        ByteBuffer message = ByteBuffer.allocateDirect(size + 8).order(ByteOrder.LITTLE_ENDIAN);
        return new PingPong(
                new FileInputStream(source).getChannel(), new FileOutputStream(sink).getChannel(), message, size);
    }

    void send(long number) throws IOException {
        message.clear().putLong(0, number).limit(size);
        while (message.hasRemaining()) {
            sink.write(message);
        }
    }

    void receive(long number) throws IOException {
        message.clear().limit(size);
        while (message.hasRemaining()) {
            if (source.read(message) < 0) throw new IOException("the other side has closed");
        }
        for (int k = 0; k < Math.min(size, 8); k++) {
            if (message.get(k) != (byte) (number >>> 8 * k)) throw new IOException("another message came");
        }
    }

    public static void main(String[] arguments) throws Exception {
        int size = Integer.parseInt(arguments[0]);
        long iterations = Long.parseLong(arguments[1]);
        if (arguments.length > 2) {
            PingPong side = over("/proc/self/fd/0", "/proc/self/fd/1", size);
            for (long number = 0; number < 2 * iterations; number++) {
                side.receive(number);
                side.send(number);
            }
            return;
        }
        String java = ProcessHandle.current().info().command().orElse("java");
        Process child = new ProcessBuilder(java, "-XX:+UseSerialGC", "-cp", System.getProperty("java.class.path"),
                "PingPong", arguments[0], arguments[1], "child").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        PingPong side = over("/proc/" + child.pid() + "/fd/1", "/proc/" + child.pid() + "/fd/0", size);
        long start = 0;
        for (long number = 0; number < 2 * iterations; number++) {
            if (number == iterations) start = System.nanoTime();
            side.send(number);
            side.receive(number);
        }
        System.out.println((double) (System.nanoTime() - start) / iterations);
    }
}
