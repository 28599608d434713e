//! The descriptors over which loops written by hand run, and how bytes are written to them and read from them.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use sys::Errno;
use sys::shared_memory::SharedMemory;

/// The memory that holds the word of a loop over a futex.
pub const WORDS_BYTES: usize = 4096;

/// What may fail.
pub type Io<T> = Result<T, Box<dyn std::error::Error>>;

/// The input and the output of the client, and those of the server.
pub fn open(mechanism: &str) -> Io<[[OwnedFd; 2]; 2]> {
    Ok(match mechanism {
        "pipe" => {
            let ((server_input, client_output), (client_input, server_output)) =
                (std::io::pipe()?, std::io::pipe()?);
            [[client_input.into(), client_output.into()], [server_input.into(), server_output.into()]]
        }
        "unix-stream" => {
            let (client, server) = UnixStream::pair()?;
            [[client.try_clone()?.into(), client.into()], [server.try_clone()?.into(), server.into()]]
        }
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let client = TcpStream::connect(listener.local_addr()?)?;
            let (server, _) = listener.accept()?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            [[client.try_clone()?.into(), client.into()], [server.try_clone()?.into(), server.into()]]
        }
        "context-switch" => {
            let (_, memory) = SharedMemory::create("by-hand", WORDS_BYTES)?;
            [[memory.try_clone()?, memory.try_clone()?], [memory.try_clone()?, memory]]
        }
        other => return Err(format!("there is no loop written by hand for {other}").into()),
    })
}

#[inline(always)]
pub fn write_all(output: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut sent = 0;
    while sent < bytes.len() {
        sent += write(&output, &bytes[sent..])?;
    }
    Ok(())
}

#[inline(always)]
pub fn read_all(input: impl AsFd, into: &mut [u8]) -> Result<(), Errno> {
    let mut received = 0;
    while received < into.len() {
        match read(&input, &mut into[received..])? {
            0 => return Err(Errno::PIPE),
            count => received += count,
        }
    }
    Ok(())
}
