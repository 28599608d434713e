//! Messages that are compressed on their way: a parameter that mechanisms of whole messages share. Not a mechanism
//! itself.
//!
//! One message becomes one compressed message, with no header of ours. The cost depends on the content.

use crate::contract::{Arrived, Endpoint, Mechanism, Shape, StepTrace, Ticket, TrialContext};
use crate::support::connect_each::SERVER;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use model::card::{Card, Support};
use model::record::Setting;
use model::{Domain, Param, Params};
use rustix::fd::BorrowedFd;
use std::marker::PhantomData;
use sys::{Errno, Failure};
use zstd::bulk;

/// The parameter that says how messages are compressed.
pub(crate) const CODEC: Param = Param {
    name: "codec",
    summary: "compress each message, and restore it: gzip at level 6, lz4, or zstd at level 3",
    domain: Domain::Choice(&["none", "gzip", "lz4", "zstd"]),
    default: Some("none"),
};

/// The mechanism `M`, whose card has [`CODEC`], with compression if that is asked for.
#[derive(Debug)]
pub(crate) struct Coded<M>(PhantomData<M>);

/// An endpoint of `M`, and the codec of its messages.
#[derive(Debug)]
pub(crate) struct CodedEndpoint<E> {
    endpoint: E,
    codec: Option<Box<Codec>>,
}

/// A codec with the memory that it needs, so that no message allocates.
pub(crate) struct Codec {
    kind: CodecKind,
    compressed: Vec<u8>,
}

enum CodecKind {
    Gzip { compress: Box<Compress>, decompress: Box<Decompress> },
    Lz4,
    Zstd { compress: bulk::Compressor<'static>, decompress: bulk::Decompressor<'static> },
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Codec").field("compressed_bytes", &self.compressed.len()).finish()
    }
}

/// The most bytes that a message of `size_bytes` becomes with any codec. What cannot be compressed grows a little.
const fn bound(size_bytes: usize) -> usize {
    size_bytes + size_bytes / 200 + 128
}

/// The level of gzip(1) when none is given, and of zstd(1).
const GZIP_LEVEL: Compression = Compression::new(6);
const ZSTD_LEVEL: i32 = 3;
/// RFC 1952: a window of 32 KiB.
const GZIP_WINDOW_BITS: u8 = 15;

impl Codec {
    fn new(params: &Params, card: &Card, size_bytes: usize) -> Result<Option<Box<Self>>, Failure> {
        let refuse = |error: std::io::Error| {
            Failure::new("make a context of", "zstd", error.to_string(), "free some memory")
        };
        let kind = match params.text(card, CODEC.name) {
            Some("gzip") => CodecKind::Gzip {
                compress: Box::new(Compress::new_gzip(GZIP_LEVEL, GZIP_WINDOW_BITS)),
                decompress: Box::new(Decompress::new_gzip(GZIP_WINDOW_BITS)),
            },
            Some("lz4") => CodecKind::Lz4,
            Some("zstd") => CodecKind::Zstd {
                compress: bulk::Compressor::new(ZSTD_LEVEL).map_err(refuse)?,
                decompress: bulk::Decompressor::new().map_err(refuse)?,
            },
            _ => return Ok(None),
        };
        // The answer to an empty message may have one byte.
        let size_bytes = size_bytes.max(1);
        // lz4 asks for more room than it ever fills.
        let room_bytes = lz4_flex::block::get_maximum_output_size(size_bytes).max(bound(size_bytes));
        Ok(Some(Box::new(Self { kind, compressed: vec![0; room_bytes] })))
    }

    /// Compresses `bytes`, and returns the compressed bytes.
    fn compress(&mut self, bytes: &[u8]) -> Result<&[u8], Errno> {
        if bound(bytes.len()) > self.compressed.len() {
            return Err(Errno::MSGSIZE);
        }
        let into = &mut self.compressed[..];
        let count = match &mut self.kind {
            CodecKind::Gzip { compress, .. } => {
                compress.reset();
                match compress.compress(bytes, into, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => compress.total_out() as usize,
                    _ => return Err(Errno::MSGSIZE),
                }
            }
            CodecKind::Lz4 => lz4_flex::block::compress_into(bytes, into).map_err(|_| Errno::MSGSIZE)?,
            CodecKind::Zstd { compress, .. } => {
                compress.compress_to_buffer(bytes, into).map_err(|_| Errno::MSGSIZE)?
            }
        };
        Ok(&self.compressed[..count])
    }

    /// Restores the first `count` bytes of `compressed` into `into`. Returns how many bytes there were.
    fn restore(&mut self, count: usize, into: &mut [u8]) -> Result<usize, Errno> {
        let bytes = &self.compressed[..count];
        match &mut self.kind {
            CodecKind::Gzip { decompress, .. } => {
                decompress.reset(true);
                match decompress.decompress(bytes, into, FlushDecompress::Finish) {
                    Ok(Status::StreamEnd) => Ok(decompress.total_out() as usize),
                    _ => Err(Errno::BADMSG),
                }
            }
            CodecKind::Lz4 => lz4_flex::block::decompress_into(bytes, into).map_err(|_| Errno::BADMSG),
            CodecKind::Zstd { decompress, .. } => {
                decompress.decompress_to_buffer(bytes, into).map_err(|_| Errno::BADMSG)
            }
        }
    }
}

impl<M: Mechanism> Mechanism for Coded<M> {
    const CARD: Card = M::CARD;
    type Bound = (M::Bound, Option<Box<Codec>>);
    type End = CodedEndpoint<M::End>;

    fn probe(params: &Params) -> Support {
        if is_coded::<M>(params) && params.text(&M::CARD, SERVER.name) == Some("fork") {
            return Support::No {
                reason: "a child of the server answers by itself, without the codec".to_owned(),
                remedy: "leave out the parameter codec, or the parameter server".to_owned(),
            };
        }
        match M::probe(params) {
            Support::Yes { largest_bytes: Some(largest) } if is_coded::<M>(params) => {
                Support::Yes { largest_bytes: Some(largest_input_bytes(largest)) }
            }
            support => support,
        }
    }

    fn bind(trial: &TrialContext<'_>) -> Result<(Self::Bound, Ticket), Failure> {
        let (bound, ticket) = M::bind(&inner(trial))?;
        Ok(((bound, codec::<M>(trial)?), ticket))
    }

    fn accept((bound, codec): Self::Bound) -> Result<Self::End, Failure> {
        Ok(CodedEndpoint { endpoint: M::accept(bound)?, codec })
    }

    fn connect(trial: &TrialContext<'_>, ticket: Ticket) -> Result<Self::End, Failure> {
        Ok(CodedEndpoint { endpoint: M::connect(&inner(trial), ticket)?, codec: codec::<M>(trial)? })
    }
}

fn is_coded<M: Mechanism>(params: &Params) -> bool {
    params.text(&M::CARD, CODEC.name) != CODEC.default
}

/// The largest message that becomes at most `largest_bytes`, whatever its content.
fn largest_input_bytes(largest_bytes: u64) -> u64 {
    (largest_bytes.saturating_sub(128)) * 200 / 201
}

fn codec<M: Mechanism>(trial: &TrialContext<'_>) -> Result<Option<Box<Codec>>, Failure> {
    Codec::new(trial.params, &M::CARD, trial.shape.size_bytes)
}

/// The context of the mechanism within: its messages are the compressed ones.
fn inner<'a>(trial: &TrialContext<'a>) -> TrialContext<'a> {
    let shape = Shape { size_bytes: bound(trial.shape.size_bytes), ..trial.shape };
    if trial.params.is_empty() { *trial } else { TrialContext { shape, ..*trial } }
}

impl<E: Endpoint> Endpoint for CodedEndpoint<E> {
    const PASSES_FDS: bool = E::PASSES_FDS;

    #[inline(always)]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.codec {
            None => self.endpoint.send(bytes),
            Some(codec) => self.endpoint.send(codec.compress(bytes)?).map(|_| bytes.len()),
        }
    }

    #[inline(always)]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.codec {
            None => self.endpoint.receive(into),
            Some(codec) => {
                let count = self.endpoint.receive(&mut codec.compressed)?;
                codec.restore(count, into)
            }
        }
    }

    fn settings(&self) -> Vec<Setting> {
        self.endpoint.settings()
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        self.endpoint.input()
    }

    #[inline(always)]
    fn send_with(
        &mut self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        trace: &mut impl StepTrace,
    ) -> Result<usize, Errno> {
        match &mut self.codec {
            None => self.endpoint.send_with(bytes, fds, trace),
            Some(codec) => {
                let compressed = codec.compress(bytes)?;
                trace.step_ended("compress");
                self.endpoint.send_with(compressed, fds, trace).map(|_| bytes.len())
            }
        }
    }

    #[inline(always)]
    fn receive_with(&mut self, into: &mut [u8], trace: &mut impl StepTrace) -> Result<Arrived, Errno> {
        match &mut self.codec {
            None => self.endpoint.receive_with(into, trace),
            Some(codec) => {
                let Arrived { bytes, fds } = self.endpoint.receive_with(&mut codec.compressed, trace)?;
                let bytes = codec.restore(bytes, into)?;
                trace.step_ended("restore");
                Ok(Arrived { bytes, fds })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::cards::MESSAGE;
    use proptest::prelude::*;

    const CARD: Card = Card { params: &[CODEC], ..MESSAGE };

    fn codec(name: &str, size_bytes: usize) -> Box<Codec> {
        let params = Params::parse(&format!("codec={name}"), &CARD).unwrap();
        Codec::new(&params, &CARD, size_bytes).unwrap().unwrap()
    }

    fn round_trip(name: &str, bytes: &[u8]) -> usize {
        let mut codec = codec(name, bytes.len());
        let count = codec.compress(bytes).unwrap().len();
        // An endpoint receives an empty message with room for one byte.
        let mut restored = vec![0; bytes.len().max(1)];
        assert_eq!(codec.restore(count, &mut restored), Ok(bytes.len()), "{name}");
        assert!(restored[..bytes.len()] == *bytes, "{name}");
        count
    }

    proptest! {
        #[test]
        fn every_message_is_restored_and_grows_by_little(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            for name in ["gzip", "lz4", "zstd"] {
                prop_assert!(round_trip(name, &bytes) <= bound(bytes.len()));
            }
        }

        #[test]
        fn the_largest_input_fits_when_compressed(largest in 200_u64..1 << 30) {
            let size = largest_input_bytes(largest);
            prop_assert!(bound(size as usize) as u64 <= largest);
        }
    }

    #[test]
    fn repeated_bytes_become_few() {
        for name in ["gzip", "lz4", "zstd"] {
            assert!(round_trip(name, &[7; 100_000]) < 1000, "{name}");
        }
    }

    #[test]
    fn bytes_that_are_not_compressed_are_refused() {
        for name in ["gzip", "lz4", "zstd"] {
            let mut codec = codec(name, 100);
            codec.compressed.fill(0xff);
            assert_eq!(codec.restore(100, &mut [0; 100]), Err(Errno::BADMSG), "{name}");
        }
    }
}
