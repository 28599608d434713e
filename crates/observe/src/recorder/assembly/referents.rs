//! To what the descriptors of a call refer: as the kernel tells of its files, or as is followed through the calls that make, copy and close
//! descriptors, and looked up while a process is stopped. Of a process that runs nothing is looked up through /proc (`stopped` says why).

use super::{Assembly, NEVER_FOUND, Through};
use crate::recorder::described::DescribedFile;
use crate::recorder::descriptors::{Descriptors, Referent};
use crate::recorder::record_by::RecordBy;
use crate::recorder::shared_memory::{SharedPlace, place};
use crate::recorder::stopped;
use crate::recorder::thread::{Entered, PRIVATE_MEMORY};
use model::communication::{Boundaries, CommunicationCall, CommunicationKind};

/// More calls through one descriptor are not kept while it is not known to what it refers.
const MOST_PENDING: usize = 1024;

impl Assembly {
    /// `file`, by where the kernel has it, `is` this from now on. The process `pid` has it.
    pub(super) fn learn_file(&mut self, pid: u32, file: u64, is: DescribedFile) {
        let before = self.files.get(&file).map(|(is, _)| is);
        if before == Some(&is) {
            return;
        }
        if before.is_some_and(|before| before.at != is.at) {
            let lost = self.pending.remove(&Through::File(file)).map_or(0, |calls| calls.len() as u64);
            self.count(NEVER_FOUND, Some(lost));
        }
        let referent = self.objects.referent(pid, &is);
        self.files.insert(file, (is, referent));
    }

    /// Looks up what descriptors the stopped process `pid` has.
    pub(super) fn look_up_stopped(&mut self, pid: u32) {
        let table = stopped::descriptors(pid, &mut self.objects);
        self.tables.insert(pid, table);
    }

    /// Whether it can be looked up what the process `pid` has: by ptrace it is stopped while what it did is taken, if it has one thread.
    fn may_examine(&self, pid: u32) -> bool {
        self.by == RecordBy::Ptrace && stopped::is_alone(pid)
    }

    /// The descriptors of the process `pid`, which did something.
    pub(super) fn table(&mut self, pid: u32) -> &mut Descriptors {
        if !self.tables.contains_key(&pid) && self.may_examine(pid) {
            self.look_up_stopped(pid);
        }
        self.tables.entry(pid).or_default()
    }

    pub(super) fn open(&mut self, pid: u32, fd: Option<u32>, referent: Referent, closes: bool) {
        if let Some(fd) = fd.filter(|_| self.by != RecordBy::Bpf) {
            self.table(pid).open(fd, referent, closes);
        }
    }

    pub(super) fn copy(&mut self, pid: u32, from: u32, to: Option<u32>, closes: bool) {
        if let Some(to) = to {
            // What is unknown of one is found out for both.
            self.find(pid, from);
            self.table(pid).copy(from, to, closes);
        }
    }

    /// To what the descriptor refers that is this argument of a call.
    pub(super) fn referent(&mut self, pid: u32, entered: &Entered, argument: usize) -> Referent {
        match through(self.by, pid, entered, argument) {
            Through::File(file) => {
                let Some((is, referent)) = self.files.get(&file) else { return Referent::Unknown };
                if *referent != Referent::Unknown {
                    return *referent;
                }
                // Its other side may have been told of since.
                let is = is.clone();
                let referent = self.objects.referent(pid, &is);
                self.files.insert(file, (is, referent));
                referent
            }
            Through::Descriptor { pid, fd } => self.find(pid, fd),
        }
    }

    /// To what `fd` refers, as far as that can be found out now.
    fn find(&mut self, pid: u32, fd: u32) -> Referent {
        let known = self.table(pid).get(fd);
        if !matches!(known, Referent::Unknown | Referent::Opened) || !self.may_examine(pid) {
            return known;
        }
        match (self.examine(pid, fd), known) {
            (Referent::Unknown, Referent::Opened) => Referent::Other,
            (Referent::Unknown, _) => Referent::Unknown,
            (found, _) => {
                self.table(pid).learn(fd, found);
                found
            }
        }
    }

    /// To what `fd` of the stopped process `pid` refers.
    fn examine(&mut self, pid: u32, fd: u32) -> Referent {
        stopped::examine(pid, fd).map_or(Referent::Unknown, |file| self.objects.referent(pid, &file))
    }

    /// To what the first argument of a call refers, now that the call has changed that.
    pub(super) fn find_anew(&mut self, pid: u32, entered: &Entered) -> Referent {
        if self.by == RecordBy::Bpf {
            return self.referent(pid, entered, 0);
        }
        let fd = entered.arguments[0] as u32;
        if !self.may_examine(pid) {
            return self.table(pid).get(fd);
        }
        let found = self.examine(pid, fd);
        if found != Referent::Unknown {
            self.table(pid).learn(fd, found);
        }
        found
    }

    /// An eventfd was made.
    pub(super) fn eventfd(&mut self, pid: u32, fd: Option<u32>, closes: bool) {
        let Some(new) = fd.filter(|_| self.by != RecordBy::Bpf) else { return };
        let found = if self.may_examine(pid) { self.examine(pid, new) } else { Referent::Unknown };
        let referent = match found {
            Referent::OneWay(_) => found,
            _ => self.objects.nameless("eventfd", "an eventfd", Boundaries::Counted),
        };
        self.open(pid, fd, referent, closes);
    }

    /// A pipe was made.
    pub(super) fn made_pipe(&mut self, pid: u32, closes: bool) {
        let Some(fds) = self.table(pid).two_free() else { return };
        let found =
            if self.may_examine(pid) { fds.map(|fd| self.examine(pid, fd)) } else { [Referent::Unknown; 2] };
        let referent = match found {
            [one @ Referent::OneWay(_), other] if one == other => one,
            _ => self.objects.nameless("pipe", "a pipe", Boundaries::None),
        };
        fds.into_iter().for_each(|fd| self.open(pid, Some(fd), referent, closes));
    }

    /// A pair of Unix sockets of `kind` was made.
    pub(super) fn made_pair(&mut self, pid: u32, kind: u64, closes: bool) {
        let Some(fds) = self.table(pid).two_free() else { return };
        let found =
            if self.may_examine(pid) { fds.map(|fd| self.examine(pid, fd)) } else { [Referent::Unknown; 2] };
        let referents = match found {
            [Referent::Side(one, a), Referent::Side(other, b)] if one == other && a != b => found,
            _ => self.objects.nameless_pair(kind),
        };
        for (fd, referent) in fds.into_iter().zip(referents) {
            self.open(pid, Some(fd), referent, closes);
        }
    }

    /// A connection was accepted.
    pub(super) fn made_connection(
        &mut self,
        pid: u32,
        entered: &Entered,
        fd: Option<u32>,
        closes: bool,
    ) -> Referent {
        let Some(new) = fd else { return Referent::Unknown };
        if self.by == RecordBy::Bpf {
            return self.referent(pid, entered, 0);
        }
        let referent = if self.may_examine(pid) { self.examine(pid, new) } else { Referent::Unknown };
        self.open(pid, fd, referent, closes);
        referent
    }

    /// The word that a call of futex(2) is about, if it lies in memory that processes share.
    pub(super) fn word(&mut self, pid: u32, entered: &Entered) -> Option<u32> {
        let at = (pid, entered.arguments[0]);
        let [file, offset] = entered.files;
        if offset == PRIVATE_MEMORY {
            return None;
        }
        let told = self.files.get(&file).map(|(is, _)| SharedPlace { file: is.at, offset, name: is.name() });
        if told.is_none()
            && let Some(known) = self.words.get(&at)
        {
            return *known;
        }
        let found = if told.is_none() && self.may_examine(pid) {
            let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            place(&maps, entered.arguments[0])
        } else if told.is_some() {
            told
        } else {
            let text = "wake-ups through futexes are in no flow: it could not be found out what memory their words lie in";
            self.count(text, Some(1));
            return None;
        };
        let found = found.and_then(|place| self.objects.word(place));
        self.words.insert(at, found);
        found
    }

    /// The memory of the process `pid` is not what it was.
    pub(super) fn forget_words(&mut self, pid: u32) {
        self.words.retain(|(of, _), _| *of != pid);
    }

    /// A call of `kind` that moved `bytes`, or failed, through the descriptor that is an argument of it.
    pub(super) fn through(
        &mut self,
        pid: u32,
        (entered, argument): (&Entered, usize),
        kind: CommunicationKind,
        bytes: Option<u64>,
        call: &CommunicationCall,
    ) {
        let through = through(self.by, pid, entered, argument);
        let object = match self.referent(pid, entered, argument) {
            Referent::OneWay(object) => (object, None),
            Referent::Side(object, side) => (object, Some(side)),
            Referent::Unknown => {
                let pending = self.pending.entry(through).or_default();
                if bytes.is_some() && pending.len() < MOST_PENDING {
                    pending.push(CommunicationCall { kind, bytes, ..*call });
                }
                return;
            }
            Referent::Opened | Referent::Other | Referent::Process(_) => return,
        };
        for before in self.pending.remove(&through).unwrap_or_default() {
            self.pass(object, before.kind, before.bytes, &before);
        }
        self.pass(object, kind, bytes, call);
    }
}

/// Through what a call goes by this argument.
fn through(by: RecordBy, pid: u32, entered: &Entered, argument: usize) -> Through {
    match by {
        RecordBy::Bpf => Through::File(entered.files[usize::from(argument > 0)]),
        RecordBy::Tracepoints | RecordBy::Ptrace => {
            Through::Descriptor { pid, fd: entered.arguments[argument] as u32 }
        }
    }
}
