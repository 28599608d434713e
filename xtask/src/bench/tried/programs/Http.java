// An HTTP server on a TCP port of the loopback or, where the argument is a path, on a Unix socket. The JDK's own HTTP server takes only TCP, so
// this one reads requests itself: a request ends at its first empty line, and none has a body.
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;

public class Http {
    static final byte[] REPLY = ("HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n" + "x".repeat(128)).getBytes();

    public static void main(String[] words) throws IOException {
        boolean isUnix = words[0].startsWith("/");
        ServerSocketChannel listener;
        if (isUnix) {
            Files.deleteIfExists(Path.of(words[0])); // a server that was killed leaves its socket, and bind refuses a path that exists
            listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            listener.bind(UnixDomainSocketAddress.of(words[0]));
        } else {
            listener = ServerSocketChannel.open();
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(words[0])));
        }
        while (true) {
            SocketChannel connection = listener.accept();
            if (!isUnix) connection.setOption(StandardSocketOptions.TCP_NODELAY, true);
            Thread thread = new Thread(() -> serve(connection));
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void serve(SocketChannel connection) {
        ByteBuffer in = ByteBuffer.allocateDirect(8192), out = ByteBuffer.allocateDirect(REPLY.length).put(REPLY);
        try (connection) {
            int matched = 0; // how much of the empty line's "\r\n\r\n" the last bytes were
            while (connection.read(in.clear()) > 0) {
                for (in.flip(); in.hasRemaining(); ) {
                    byte b = in.get();
                    matched = b == (matched % 2 == 0 ? '\r' : '\n') ? matched + 1 : b == '\r' ? 1 : 0;
                    if (matched < 4) continue;
                    matched = 0;
                    for (out.rewind(); out.hasRemaining(); ) connection.write(out);
                }
            }
        } catch (IOException closedByPeer) {
            // Nothing is left to do for it.
        }
    }
}
