//! Tells every endpoint that is reached over streams of bytes, each second, that the coordinator is still there. An endpoint that
//! does not hear it any more ends.

use crate::protocol::channel::{Channel, StreamOutput};
use crate::protocol::frame::frame;
use crate::protocol::message::CoordinatorMessage;
use crate::protocol::silence::HEARTBEAT;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use sys::{Failure, OrFail};

/// The streams to whoever is to hear the heartbeat.
type Listeners = Arc<Mutex<Vec<Weak<StreamOutput>>>>;

/// A thread that beats until this is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    listeners: Listeners,
    /// Dropped first, which ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// With nobody to hear it yet.
    pub fn start() -> Result<Self, Failure> {
        let alive = frame(&CoordinatorMessage::Alive)?;
        let listeners = Listeners::default();
        let (stop, stopped) = channel();
        let heard = Arc::clone(&listeners);
        let beat = move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.retain(|output| output.upgrade().map(|output| output.try_send(&alive)).is_some());
            }
        };
        let thread =
            std::thread::Builder::new().spawn(beat).or_fail("start", "the thread of the heartbeat")?;
        Ok(Self { listeners, stop: Some(stop), thread: Some(thread) })
    }

    /// Has whoever listens to `channel` hear it as long as the channel exists, if it is a stream.
    pub(crate) fn add(&self, channel: &Channel) {
        if let Some(output) = channel.stream_output() {
            self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(output));
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked beats no more, which is what is wanted.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
