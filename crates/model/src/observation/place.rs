//! In which part of the kernel the processor was found: stacks judged by a table of functions, `places.toml`.
//!
//! The table is data, for kernels rename functions more often than they change what these are for. Nothing here
//! samples or finds names for addresses.

use super::{Frame, Stack};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// A part of the kernel, or the program itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The way into the kernel and out of it, of system calls that do little else.
    Entry,
    /// Bytes copied to memory and from it.
    Copy,
    /// Choosing who runs, and switching to it.
    Scheduling,
    /// Wait queues: going to sleep on them, and waking who does.
    Waiting,
    /// Taking locks.
    Locking,
    /// Sockets and their buffers, Unix sockets whole.
    Sockets,
    /// Protocols and devices under the sockets.
    Network,
    /// Descriptors, files, pipes, terminals, eventfds.
    Files,
    /// Giving out memory and taking it back, and the tables of pages.
    Memory,
    /// Page faults.
    Faults,
    /// Interrupts, timers and what they put off.
    Interrupts,
    /// The queues of io_uring.
    IoUring,
    /// Queues and semaphores of System V and POSIX, and futexes.
    Ipc,
    /// Signals and their handlers' frames.
    Signals,
    /// Those who look on: probes, the one that samples among them.
    Tracing,
    /// The program and its libraries.
    User,
    /// The kernel, in a function that the table does not know.
    Unknown,
}

impl Place {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Place; 17] = [
        Place::Entry,
        Place::Copy,
        Place::Scheduling,
        Place::Waiting,
        Place::Locking,
        Place::Sockets,
        Place::Network,
        Place::Files,
        Place::Memory,
        Place::Faults,
        Place::Interrupts,
        Place::IoUring,
        Place::Ipc,
        Place::Signals,
        Place::Tracing,
        Place::User,
        Place::Unknown,
    ];

    /// The word by which suites and results files know it.
    pub fn word(self) -> &'static str {
        match self {
            Place::Entry => "entry",
            Place::Copy => "copy",
            Place::Scheduling => "scheduling",
            Place::Waiting => "waiting",
            Place::Locking => "locking",
            Place::Sockets => "sockets",
            Place::Network => "network",
            Place::Files => "files",
            Place::Memory => "memory",
            Place::Faults => "faults",
            Place::Interrupts => "interrupts",
            Place::IoUring => "io-uring",
            Place::Ipc => "ipc",
            Place::Signals => "signals",
            Place::Tracing => "tracing",
            Place::User => "user",
            Place::Unknown => "unknown",
        }
    }

    /// In words, as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            Place::Entry => "system call entry and exit",
            Place::Copy => "copying",
            Place::Scheduling => "scheduling",
            Place::Waiting => "wait queues",
            Place::Locking => "locking",
            Place::Sockets => "sockets",
            Place::Network => "network stack",
            Place::Files => "files and pipes",
            Place::Memory => "memory management",
            Place::Faults => "page faults",
            Place::Interrupts => "interrupts",
            Place::IoUring => "io_uring",
            Place::Ipc => "queues, semaphores, futexes",
            Place::Signals => "signals",
            Place::Tracing => "tracing",
            Place::User => "user code",
            Place::Unknown => "kernel, unknown",
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// How many samples of `stacks` lie in each place, the place with the most first. Places without samples are left out.
pub fn places(stacks: &[Stack]) -> Vec<(Place, u64)> {
    let mut samples: BTreeMap<Place, u64> = BTreeMap::new();
    for stack in stacks {
        *samples.entry(place(stack)).or_default() += stack.samples;
    }
    let mut places: Vec<(Place, u64)> = samples.into_iter().filter(|(_, samples)| *samples > 0).collect();
    places.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    places
}

/// The place of one stack: the first function that the table knows decides, from the innermost outwards.
///
/// Only the entry of system calls decides nothing about others: it is the caller of all that the kernel does for a
/// program, so that it would claim whatever the table does not know.
pub fn place(stack: &Stack) -> Place {
    let table = &*TABLE;
    let kernel: Vec<&str> = stack.frames.iter().rev().map_while(kernel_name).collect();
    let interrupted = table.interrupted(&kernel);
    if table.ends_a_wake_up(interrupted) {
        return Place::Waiting;
    }
    let mut unknown = false;
    for name in interrupted {
        match table.roles.get(name) {
            Some(Role::Is(Place::Entry)) if unknown => return Place::Unknown,
            Some(Role::Is(place)) => return place,
            Some(Role::Helps) => {}
            None => unknown = true,
        }
    }
    if interrupted.is_empty() { Place::User } else { Place::Unknown }
}

/// The name of a frame of the kernel, without what the compiler appended; empty if it has none.
fn kernel_name(frame: &Frame) -> Option<&str> {
    match frame {
        Frame::Kernel(name) => Some(name.split('.').next().unwrap_or_default()),
        Frame::KernelAddress(_) => Some(""),
        Frame::User(_) | Frame::FileOffset { .. } => None,
    }
}

/// The table as it is compiled in. A test rules out that it cannot be read; every place would be unknown.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("places.toml")).map(Table::of).unwrap_or_default());

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sampler: Vec<String>,
    interrupt_entry: Vec<String>,
    wake_up_unlock: Vec<String>,
    wakers: Vec<String>,
    helpers: Vec<String>,
    places: BTreeMap<Place, Vec<String>>,
}

/// What a function says of the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// This is it.
    Is(Place),
    /// Nothing: its caller decides.
    Helps,
}

/// The file, made ready to be asked.
#[derive(Default)]
struct Table {
    sampler: Names<()>,
    interrupt_entry: Names<()>,
    wake_up_unlock: Names<()>,
    wakers: Names<()>,
    roles: Names<Role>,
}

impl Table {
    fn of(file: File) -> Self {
        let set = |names: Vec<String>| names.into_iter().map(|name| (name, ())).collect();
        let helpers = file.helpers.into_iter().map(|name| (name, Role::Helps));
        let places = file.places.into_iter();
        let places =
            places.flat_map(|(place, names)| names.into_iter().map(move |name| (name, Role::Is(place))));
        Self {
            sampler: set(file.sampler),
            interrupt_entry: set(file.interrupt_entry),
            wake_up_unlock: set(file.wake_up_unlock),
            wakers: set(file.wakers),
            roles: helpers.chain(places).collect(),
        }
    }

    /// `kernel`, from the innermost function outwards, without the interrupt by which the sample was taken.
    fn interrupted<'a, 'b>(&self, kernel: &'a [&'b str]) -> &'a [&'b str] {
        let Some(sampler) = kernel.iter().position(|name| self.sampler.has(name)) else { return kernel };
        let entry = kernel[sampler..].iter().position(|name| self.interrupt_entry.has(name));
        entry.map_or(kernel, |entry| &kernel[sampler + entry + 1..])
    }

    /// Whether `kernel`, from the innermost function outwards, is at the end of a wake-up that left no frame.
    fn ends_a_wake_up(&self, kernel: &[&str]) -> bool {
        matches!(kernel, [unlock, caller, ..] if self.wake_up_unlock.has(unlock) && self.wakers.has(caller))
    }
}

/// Names and patterns with what they stand for.
struct Names<T> {
    exact: HashMap<String, T>,
    /// What is before the `*` and what is after it, the longest first.
    patterns: Vec<(String, String, T)>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), patterns: Vec::new() }
    }
}

impl<T> FromIterator<(String, T)> for Names<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        let mut names = Self::default();
        for (name, value) in entries {
            match name.split_once('*') {
                Some((before, after)) => names.patterns.push((before.to_owned(), after.to_owned(), value)),
                None => {
                    names.exact.insert(name, value);
                }
            }
        }
        names.patterns.sort_by_key(|(before, after, _)| std::cmp::Reverse(before.len() + after.len()));
        names
    }
}

impl<T: Copy> Names<T> {
    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn get(&self, name: &str) -> Option<T> {
        let fits =
            |before: &str, after: &str| name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after));
        let pattern = || self.patterns.iter().find(|(before, after, _)| fits(before, after));
        self.exact.get(name).or_else(|| pattern().map(|(_, _, value)| value)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Stacks that cpu-clock found in turns over a pipe, over TCP and with a futex, the most frequent of each.
    const FOLDED: &str = include_str!("stacks.folded");

    /// A line `main;read;vfs_read_[k] 12`.
    fn stack(folded: &str) -> Stack {
        let (frames, samples) = folded.rsplit_once(' ').unwrap();
        let frame = |name: &str| match name.strip_suffix("_[k]") {
            Some(kernel) => Frame::Kernel(kernel.to_owned()),
            None => Frame::User(name.to_owned()),
        };
        Stack { frames: frames.split(';').map(frame).collect(), samples: samples.parse().unwrap() }
    }

    fn judged(folded: &str) -> Place {
        place(&stack(&format!("{folded} 1")))
    }

    fn section(mechanism: &str) -> Vec<(Place, u64)> {
        let section = FOLDED.split("# ").find(|section| section.starts_with(mechanism)).unwrap();
        places(&section.lines().skip(1).map(stack).collect::<Vec<_>>())
    }

    #[test]
    fn the_table_can_be_read_and_says_each_name_once() {
        let file: File = toml::from_str(include_str!("places.toml")).unwrap();
        let in_the_table =
            Place::ALL.into_iter().filter(|place| !matches!(place, Place::User | Place::Unknown));
        assert_eq!(file.places.keys().copied().collect::<Vec<_>>(), in_the_table.collect::<Vec<_>>());
        let mut seen = BTreeSet::new();
        for name in file.helpers.iter().chain(file.places.values().flatten()) {
            assert!(seen.insert(name), "{name} stands in the table twice");
        }
        for name in seen.into_iter().chain(&file.sampler).chain(&file.wakers) {
            let letters = name.replacen('*', "", 1);
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            assert!(letters.len() > 1 && letters.chars().all(is_letter), "{name} is no name");
        }
    }

    #[test]
    fn stacks_as_they_were_found_are_judged() {
        use Place::*;
        let pipe = vec![
            (Scheduling, 23_191),
            (Waiting, 11_427),
            (Files, 4_032),
            (User, 3_606),
            (Entry, 2_847),
            (Place::Copy, 895),
        ];
        let tcp = vec![(User, 1_927), (Network, 224), (Scheduling, 158), (Waiting, 118)];
        let futex = vec![(Scheduling, 1_323), (Memory, 178), (Ipc, 108), (Locking, 20)];
        assert_eq!(["pipe", "tcp", "futex"].map(section), [pipe, tcp, futex]);
    }

    #[test]
    fn an_unlock_is_its_callers() {
        let write = "write;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_write_[k]";
        assert_eq!(judged(&format!("{write};folios_put_refs_[k];_raw_spin_unlock_irq_[k]")), Place::Memory);
        assert_eq!(judged(&format!("{write};folios_put_refs_[k];_raw_spin_lock_irq_[k]")), Place::Locking);
        assert_eq!(judged(&format!("{write};anon_pipe_write_[k]")), Place::Files);
        assert_eq!(
            judged(&format!("{write};anon_pipe_write_[k];_raw_spin_unlock_irqrestore_[k]")),
            Place::Waiting
        );
    }

    #[test]
    fn the_entry_claims_nothing_that_is_unknown() {
        let call = "getpid;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]";
        assert_eq!(judged(call), Place::Entry);
        assert_eq!(judged(&format!("{call};__rcu_read_unlock_[k]")), Place::Entry);
        assert_eq!(judged(&format!("{call};of_another_kernel_[k]")), Place::Unknown);
        assert_eq!(judged(&format!("{call};vfs_read_[k];of_another_kernel_[k]")), Place::Files);
        let address = Stack { frames: vec![Frame::KernelAddress(0xffff_ffff_8100_0000)], samples: 1 };
        assert_eq!(place(&address), Place::Unknown);
    }

    #[test]
    fn the_interrupt_that_samples_is_looked_through() {
        let interrupt = "asm_sysvec_apic_timer_interrupt_[k];sysvec_apic_timer_interrupt_[k];\
                         __hrtimer_run_queues_[k]";
        let sampler = format!("{interrupt};perf_swevent_hrtimer_[k];perf_event_overflow_[k]");
        assert_eq!(judged(&format!("main;{sampler}")), Place::User);
        assert_eq!(judged(&format!("main;do_syscall_64_[k];tcp_ack_[k];{sampler}")), Place::Network);
        assert_eq!(judged(&format!("main;{interrupt}")), Place::Interrupts, "another timer");
        assert_eq!(judged("perf_swevent_hrtimer_[k]"), Place::Tracing, "no interrupt is to be seen");
    }

    #[test]
    fn longer_patterns_go_before_shorter_ones() {
        let names: Names<u8> = [("a*", 1), ("ab*", 2), ("*c", 3), ("abc", 4)]
            .map(|(name, at)| (name.to_owned(), at))
            .into_iter()
            .collect();
        assert_eq!(
            ["a", "abx", "xc", "abc", "b"].map(|name| names.get(name)),
            [Some(1), Some(2), Some(3), Some(4), None]
        );
        assert_eq!(judged("do_syscall_64_[k];unix_dgram_sendmsg.isra.0_[k]"), Place::Sockets);
    }

    #[test]
    fn samples_are_added_up() {
        let stacks = ["main 2", "main;tcp_ack_[k] 3", "other 4", "main;ip_output_[k] 0"].map(stack);
        assert_eq!(places(&stacks), [(Place::User, 6), (Place::Network, 3)]);
        assert_eq!(places(&[]), []);
    }
}
