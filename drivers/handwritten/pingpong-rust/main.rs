//! A ping-pong over two pipes, as one writes it to throw it away: what the driver `rust` is held against.

use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

struct Side {
    source: pipe::Receiver,
    sink: pipe::Sender,
    message: Vec<u8>,
}

impl Side {
    fn new(source: OwnedFd, sink: OwnedFd, size: usize) -> Result<Self, Box<dyn Error>> {
        let source = pipe::Receiver::from_owned_fd(source)?;
        Ok(Self { source, sink: pipe::Sender::from_owned_fd(sink)?, message: vec![0; size] })
    }

    async fn send(&mut self, number: u64) -> Result<(), Box<dyn Error>> {
        self.message.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, value)| *byte = value);
        Ok(self.sink.write_all(&self.message).await?)
    }

    async fn receive(&mut self, number: u64) -> Result<(), Box<dyn Error>> {
        self.source.read_exact(&mut self.message).await?;
        let is_right = self.message.iter().zip(number.to_le_bytes()).all(|(byte, value)| *byte == value);
        if is_right { Ok(()) } else { Err("another message came".into()) }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (size, iterations): (usize, u64) = (arguments[1].parse()?, arguments[2].parse()?);
    if arguments.len() > 3 {
        let [source, sink] =
            [std::io::stdin().as_fd(), std::io::stdout().as_fd()].map(|end| end.try_clone_to_owned());
        let mut side = Side::new(source?, sink?, size)?;
        for number in 0..2 * iterations {
            side.receive(number).await?;
            side.send(number).await?;
        }
        return Ok(());
    }
    let mut child = Command::new("/proc/self/exe");
    let child =
        child.args(&arguments[1..]).arg("child").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut side = Side::new(child.stdout.unwrap().into(), child.stdin.unwrap().into(), size)?;
    let mut start = Instant::now();
    for number in 0..2 * iterations {
        start = if number == iterations { Instant::now() } else { start };
        side.send(number).await?;
        side.receive(number).await?;
    }
    println!("{:.1}", start.elapsed().as_nanos() as f64 / iterations as f64);
    Ok(())
}
