// The driver `java` with codecs: what makes bytes of an object of a word, `kind`, and bytes, `data`, and the object of them
// again, by Jackson. JSON has no bytes: there Jackson has base64. Where its jars are not at hand, Driver is what runs.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import org.msgpack.jackson.dataformat.MessagePackMapper;

public final class CodedDriver extends Driver {
    /** What a message is where a codec makes bytes of it. */
    private record Message(String kind, byte[] data) {}

    private CodedDriver() {
        super("json", "msgpack");
    }

    @Override
    protected Codec codec(String name) {
        ObjectMapper mapper = name.equals("json") ? new ObjectMapper() : new MessagePackMapper();
        return new Codec() {
            @Override
            public byte[] encode(byte[] data) throws IOException {
                return mapper.writeValueAsBytes(new Message("message", data));
            }

            @Override
            public byte[] decode(byte[] body) throws IOException {
                return mapper.readValue(body, Message.class).data();
            }
        };
    }

    public static void main(String[] arguments) {
        new CodedDriver().takePart();
    }
}
