//! What a mechanism promises beside speed: what matters when one is chosen for a program.
//!
//! It is of the facility as the manual pages describe it. The conformance suite tries what can be tried.

use serde::Serialize;

/// What a mechanism promises to who uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Semantics {
    /// Whether there is a connection: an endpoint has one peer, which a call of its own or inheritance gave it.
    pub connected: bool,
    /// In what order messages arrive.
    pub order: Order,
    /// What gets lost.
    pub loss: Loss,
    /// What sending does when there is no room.
    pub when_full: WhenFull,
    /// What the receiver can learn of who sent.
    pub credentials: Credentials,
    /// How the second process comes to it.
    pub naming: Naming,
    /// Whether processes of other users can be given it.
    pub other_users: OtherUsers,
    /// The namespace in which both processes must be, beside having the object.
    pub namespace: Namespace,
    /// What a call transfers whole while others send too.
    pub atomic: Atomic,
    /// The largest message on any host; where there is none, the host's settings decide, or nothing does.
    pub most_bytes: Option<u64>,
    /// What becomes of it when the processes that made it have ended.
    pub lifetime: Lifetime,
    /// The privileges that it needs with its parameters at their defaults; empty where it needs none.
    pub privileges: &'static str,
}

/// In what order messages arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they were sent.
    Kept,
    /// Higher priorities first; of one priority as they were sent.
    ByPriority,
    /// Messages may overtake each other.
    NotKept,
    /// There is nothing that could be in order.
    Nothing,
}

/// What gets lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing.
    Never,
    /// Messages that find no room at the receiver, without a word.
    Overflow,
    /// Of wake-ups that nobody has taken yet, all but one.
    Merged,
}

/// What sending does when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// It waits for room; with `O_NONBLOCK` or its like it is refused.
    Blocks,
    /// It is refused.
    Refuses,
    /// It succeeds, and the message is dropped.
    Drops,
    /// There is always room: wake-ups are counted or merged.
    NeverFull,
}

/// What the receiver can learn of who sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credentials {
    /// Nothing that the kernel vouches for.
    None,
    /// Process, user and group of who connected (`SO_PEERCRED`).
    OfConnection,
    /// Process, user and group with each message (`SCM_CREDENTIALS`), and of who connected.
    OfMessage,
    /// Process and user of who sent the signal (`siginfo_t`).
    OfSignal,
    /// The process that used it last (`msg_lspid`, `sempid`).
    LastUser,
}

/// How the second process comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// It inherits a descriptor or a mapping, or is sent one.
    Inherited,
    /// By a path in the file system.
    Path,
    /// By a System V key.
    Key,
    /// By a name of its kind, such as `/name` of a POSIX queue or segment.
    Name,
    /// By an address and a port.
    Address,
    /// By the number of the process.
    ProcessId,
}

/// Whether processes of other users can be given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherUsers {
    /// Whoever has the descriptor or reaches the address.
    Anyone,
    /// Whom the permissions of its name allow.
    ByPermission,
    /// Processes of the same user only, but for privileged ones.
    SameUser,
}

/// The namespace in which both processes must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespace {
    /// None: who has the descriptor can use it.
    None,
    /// The same IPC namespace.
    Ipc,
    /// The same network namespace, or networks between which packets are forwarded.
    Net,
    /// A mount namespace that shows the path.
    Mount,
    /// A PID namespace in which the receiver has a number.
    Pid,
}

/// What a call transfers whole while others send too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Atomic {
    /// Every message.
    Message,
    /// Writes of up to `PIPE_BUF`, 4096 bytes.
    PipeBuf,
    /// Nothing is promised.
    Nothing,
}

/// What becomes of it when the processes that made it have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetime {
    /// It is gone with the last descriptor or mapping.
    LastUser,
    /// The name stays until it is removed, and nothing that was sent and not received.
    NameStays,
    /// It stays until it is removed, with what was sent and not received.
    UntilRemoved,
}

impl Semantics {
    /// Of something that has no peer.
    pub const NONE: Semantics = Semantics {
        connected: false,
        order: Order::Nothing,
        loss: Loss::Never,
        when_full: WhenFull::NeverFull,
        credentials: Credentials::None,
        naming: Naming::Inherited,
        other_users: OtherUsers::SameUser,
        namespace: Namespace::None,
        atomic: Atomic::Nothing,
        most_bytes: None,
        lifetime: Lifetime::LastUser,
        privileges: "",
    };

    /// What it says, as labels and words, in the order of lists.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines: Vec<(&'static str, String)> = vec![
            ("connection", if self.connected { "yes" } else { "no" }.to_owned()),
            ("order", self.order.words().to_owned()),
            ("loss", self.loss.words().to_owned()),
            ("when full", self.when_full.words().to_owned()),
            ("credentials", self.credentials.words().to_owned()),
            ("found by", self.naming.words().to_owned()),
            ("other users", self.other_users.words().to_owned()),
            ("containers", self.namespace.words().to_owned()),
            ("whole writes", self.atomic.words().to_owned()),
            ("outlives its makers", self.lifetime.words().to_owned()),
        ];
        lines.extend(self.most_bytes.map(|most| ("largest message", format!("{most} bytes, on any host"))));
        lines.extend((!self.privileges.is_empty()).then(|| ("privileges", self.privileges.to_owned())));
        lines
    }
}

impl Order {
    fn words(self) -> &'static str {
        match self {
            Order::Kept => "kept",
            Order::ByPriority => "by priority, else kept",
            Order::NotKept => "not kept",
            Order::Nothing => "nothing to be in order",
        }
    }
}

impl Loss {
    fn words(self) -> &'static str {
        match self {
            Loss::Never => "none",
            Loss::Overflow => "what finds no room at the receiver",
            Loss::Merged => "wake-ups that are not taken yet are merged",
        }
    }
}

impl WhenFull {
    fn words(self) -> &'static str {
        match self {
            WhenFull::Blocks => "sending waits for room",
            WhenFull::Refuses => "sending is refused",
            WhenFull::Drops => "the message is dropped, and sending succeeds",
            WhenFull::NeverFull => "never full",
        }
    }
}

impl Credentials {
    fn words(self) -> &'static str {
        match self {
            Credentials::None => "none",
            Credentials::OfConnection => "of who connected (SO_PEERCRED)",
            Credentials::OfMessage => "with each message (SCM_CREDENTIALS)",
            Credentials::OfSignal => "process and user of who sent the signal",
            Credentials::LastUser => "only the process that used it last",
        }
    }
}

impl Naming {
    fn words(self) -> &'static str {
        match self {
            Naming::Inherited => "inheritance, or a descriptor that is sent",
            Naming::Path => "a path",
            Naming::Key => "a System V key",
            Naming::Name => "a name of its kind",
            Naming::Address => "an address and a port",
            Naming::ProcessId => "the number of the process",
        }
    }
}

impl OtherUsers {
    fn words(self) -> &'static str {
        match self {
            OtherUsers::Anyone => "who has the descriptor, or reaches the address",
            OtherUsers::ByPermission => "whom the permissions of the name allow",
            OtherUsers::SameUser => "no, but for privileged processes",
        }
    }
}

impl Namespace {
    fn words(self) -> &'static str {
        match self {
            Namespace::None => "any, with the descriptor",
            Namespace::Ipc => "of one IPC namespace",
            Namespace::Net => "of one network namespace, or of connected networks",
            Namespace::Mount => "that share the directory",
            Namespace::Pid => "in which the receiver has a number (PID namespace)",
        }
    }
}

impl Atomic {
    fn words(self) -> &'static str {
        match self {
            Atomic::Message => "every message",
            Atomic::PipeBuf => "up to PIPE_BUF, 4096 bytes",
            Atomic::Nothing => "not promised",
        }
    }
}

impl Lifetime {
    fn words(self) -> &'static str {
        match self {
            Lifetime::LastUser => "no",
            Lifetime::NameStays => "its name, until it is removed; what was not received is gone",
            Lifetime::UntilRemoved => "yes, with what was not received, until it is removed",
        }
    }
}
