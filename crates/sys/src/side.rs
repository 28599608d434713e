//! Which of two endpoints that share memory one is. What they share and how is not known here.

/// One of two endpoints that share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemorySide {
    /// The endpoint that made the memory.
    Client,
    /// The endpoint that opened it.
    Server,
}

impl MemorySide {
    pub(crate) fn index(self) -> usize {
        match self {
            MemorySide::Client => 0,
            MemorySide::Server => 1,
        }
    }

    pub(crate) fn peer(self) -> MemorySide {
        match self {
            MemorySide::Client => MemorySide::Server,
            MemorySide::Server => MemorySide::Client,
        }
    }
}
