//! How a message lies in a stream of bytes: four bytes of length, little-endian, then as many of JSON. It reads and writes
//! nothing.
//!
//! What is no stream of ours is noticed by its first four bytes: those of any text are a length beyond the bound.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sys::{Errno, Failure};

/// The bytes of a length.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The longest message: a sample with full histograms is much shorter.
pub(crate) const LONGEST_BYTES: usize = 16 << 20;
/// How much of what is no message is shown.
const SHOWN_BYTES: usize = 200;

/// `message` as a frame.
pub(crate) fn frame(message: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)
        .map_err(|error| Failure::new("encode", "a control message", error.to_string(), "report this bug"))?;
    let body = frame.len() - LENGTH_BYTES;
    if body > LONGEST_BYTES {
        let next = "make fewer iterations in a slice";
        return Err(Failure::new("encode", "a control message", format!("it has {body} bytes"), next));
    }
    frame[..LENGTH_BYTES].copy_from_slice(&(body as u32).to_le_bytes());
    Ok(frame)
}

/// How many bytes of a message follow `length`; or that no message of ours is as long.
pub(crate) fn body_bytes(length: [u8; LENGTH_BYTES]) -> Result<usize, Failure> {
    let bytes = u32::from_le_bytes(length) as usize;
    if bytes > LONGEST_BYTES {
        Err(Failure::from_errno("receive", "control channel", Errno::MSGSIZE))
    } else {
        Ok(bytes)
    }
}

/// The message that `body` is.
pub(crate) fn message<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        // It quotes what it did not expect.
        let answer = shortened(&place_of_error::<T>(body).unwrap_or_else(|| error.to_string()));
        Failure::new("decode", "a control message", answer, "run one version of ipcmark only")
    })
}

/// What of `body` is not as it should be, by its path: `hello.mechanisms[0]`. `None` where no part of it is to blame.
fn place_of_error<T: DeserializeOwned>(body: &[u8]) -> Option<String> {
    let read: Result<T, _> =
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body));
    let error = read.err()?;
    let why = error.inner().to_string();
    // Of a message in one line, a path says more than a column.
    let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
    (error.path().iter().len() > 0).then(|| format!("{}: {why}", error.path()))
}

/// Why `length`, which no message has, cannot be one: `None` where it may be the begin of a text.
pub(crate) fn no_length(length: [u8; LENGTH_BYTES]) -> Option<String> {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b) || *byte >= b' ';
    let [bytes, turned] = [u32::from_le_bytes(length), u32::from_be_bytes(length)];
    if turned as usize <= LONGEST_BYTES {
        return Some(format!(
            "its first four bytes are a length of {bytes}, and read the other way round {turned}: the length is \
             little-endian"
        ));
    }
    let is_length = !length.iter().all(is_text);
    is_length.then(|| format!("it begins a message of {bytes} bytes; one has {LONGEST_BYTES} at most"))
}

/// As much of `text` from the other side as is shown or kept: whoever speaks the protocol may say 16 MiB.
pub(crate) fn shortened(text: &str) -> String {
    const LONGEST_CHARS: usize = 500;
    let mut kept: String = text.chars().take(LONGEST_CHARS).collect();
    if kept.len() < text.len() {
        kept += "…";
    }
    kept
}

/// Bytes that are no message, as one line of text that is safe to print; `None` where they are no text.
pub(crate) fn as_text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    let line = text.split(['\r', '\n']).map(str::trim).find(|line| !line.is_empty())?;
    let printable: String =
        line.chars().filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER).collect();
    (printable.len() >= LENGTH_BYTES).then_some(printable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::led::FromLed;

    #[test]
    fn a_frame_is_its_length_and_its_message() {
        let bytes = frame(&"abc").unwrap();
        assert_eq!(bytes, b"\x05\0\0\0\"abc\"");
        let (length, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(body_bytes(*length).unwrap(), body.len());
        assert_eq!(message::<String>(body).unwrap(), "abc");
    }

    #[test]
    fn a_message_that_is_none_is_quoted_in_part() {
        let body = serde_json::to_vec(&"x".repeat(1 << 20)).unwrap();
        let said = message::<u32>(&body).unwrap_err().to_string();
        assert!(said.contains("xxx…") && said.len() < 1000, "{}", said.len());
    }

    #[test]
    fn what_is_wrong_in_a_message_is_named_by_its_path() {
        let why = |body: &str| message::<FromLed>(body.as_bytes()).unwrap_err().answer;
        let hello =
            r#"{"hello":{"protocol":"ipcmark-endpoint","version":3,"program":"a","mechanisms":["pipe"]}}"#;
        let found = why(hello);
        assert!(
            found.starts_with("hello.mechanisms[0]: ") && found.contains("expected an object"),
            "{found}"
        );
        assert!(!found.contains("column"), "{found}");
        let found = why(r#"{"done":{"elapsed_ns":"12"}}"#);
        assert!(found.starts_with("done.elapsed_ns: invalid type: string"), "{found}");
        assert!(why(r#"{"done":12}"#).starts_with("done: "), "{}", why(r#"{"done":12}"#));
        assert!(why("\"redy\"").contains("unknown variant `redy`"), "{}", why("\"redy\""));
        assert!(why("{{").contains("line 1"), "{}", why("{{"));
    }

    #[test]
    fn a_length_in_the_other_order_and_one_that_is_too_long_are_told_from_text() {
        let why = |length| no_length(length).unwrap();
        assert!(why(321_u32.to_be_bytes()).contains("321: the length is little-endian"));
        let long = why(17_825_999_u32.to_le_bytes());
        assert!(long.contains("17825999 bytes") && long.contains("16777216 at most"), "{long}");
        assert_eq!(no_length(*b"GET "), None);
        assert_eq!(no_length(*b"\x1b[31"), None);
    }

    #[test]
    fn text_is_never_a_length() {
        for text in ["bash", "sh: ", "Last", "\n\n\n\n", "    "] {
            body_bytes(text.as_bytes().try_into().unwrap()).unwrap_err();
        }
        assert_eq!(
            as_text(b"\r\nbash: ipcmark: \x1b[31mnot found\nmore").unwrap(),
            "bash: ipcmark: [31mnot found"
        );
        assert_eq!(as_text(&[0xff, 0xfe, 0, 1]), None);
    }
}
