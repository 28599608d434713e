//! The subsystem in which a sample found the processor, by a list of functions, `subsystems.toml`.
//!
//! The list is data, because kernels rename functions more often than they change their purpose. Nothing here takes samples or
//! finds names for addresses.

use model::observation::subsystem::Subsystem;
use model::observation::{SampledStack, StackFrame};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// How many samples of `stacks` are in each subsystem, the one with the most first. Those without samples are left out.
pub fn samples_by_subsystem(stacks: &[SampledStack]) -> Vec<(Subsystem, u64)> {
    let mut samples: BTreeMap<Subsystem, u64> = BTreeMap::new();
    for stack in stacks {
        *samples.entry(subsystem_of(stack)).or_default() += stack.samples;
    }
    let mut subsystems: Vec<(Subsystem, u64)> =
        samples.into_iter().filter(|(_, samples)| *samples > 0).collect();
    subsystems.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    subsystems
}

/// The subsystem of one stack: from the innermost function outwards, the first that the list names decides.
///
/// The entry of system calls decides only where no other function was passed: it calls everything that the kernel does
/// for a program, and would claim whatever the list does not name.
pub fn subsystem_of(stack: &SampledStack) -> Subsystem {
    let table = &*TABLE;
    let kernel: Vec<&str> = stack.frames.iter().rev().map_while(kernel_name).collect();
    let interrupted = table.interrupted(&kernel);
    if table.ends_a_wake_up(interrupted) {
        return Subsystem::Waiting;
    }
    let mut unknown = false;
    for name in interrupted {
        match table.roles.get(name) {
            Some(FunctionRole::Is(Subsystem::Entry)) if unknown => return Subsystem::Unknown,
            Some(FunctionRole::Is(place)) => return place,
            Some(FunctionRole::Helps) => {}
            None => unknown = true,
        }
    }
    if interrupted.is_empty() { Subsystem::User } else { Subsystem::Unknown }
}

/// The name of a frame of the kernel, without what the compiler appended; empty if it has none.
fn kernel_name(frame: &StackFrame) -> Option<&str> {
    match frame {
        StackFrame::Kernel(name) => Some(name.split('.').next().unwrap_or_default()),
        StackFrame::KernelAddress(_) => Some(""),
        StackFrame::User(_) | StackFrame::FileOffset { .. } => None,
    }
}

/// The list as it is compiled in. A test shows that it can be read; else every subsystem would be unknown.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("subsystems.toml")).map(Table::from_file).unwrap_or_default()
});

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sampler: Vec<String>,
    interrupt_entry: Vec<String>,
    wake_up_unlock: Vec<String>,
    wakers: Vec<String>,
    helpers: Vec<String>,
    subsystems: BTreeMap<Subsystem, Vec<String>>,
}

/// What a function says of the subsystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FunctionRole {
    /// This is it.
    Is(Subsystem),
    /// Nothing: its caller decides.
    Helps,
}

/// The list, prepared for look-ups.
#[derive(Default)]
struct Table {
    sampler: Names<()>,
    interrupt_entry: Names<()>,
    wake_up_unlock: Names<()>,
    wakers: Names<()>,
    roles: Names<FunctionRole>,
}

impl Table {
    fn from_file(file: File) -> Self {
        let set = |names: Vec<String>| names.into_iter().map(|name| (name, ())).collect();
        let helpers = file.helpers.into_iter().map(|name| (name, FunctionRole::Helps));
        let subsystems = file.subsystems.into_iter();
        let subsystems = subsystems
            .flat_map(|(place, names)| names.into_iter().map(move |name| (name, FunctionRole::Is(place))));
        Self {
            sampler: set(file.sampler),
            interrupt_entry: set(file.interrupt_entry),
            wake_up_unlock: set(file.wake_up_unlock),
            wakers: set(file.wakers),
            roles: helpers.chain(subsystems).collect(),
        }
    }

    /// `kernel`, from the innermost function outwards, without the interrupt by which the sample was taken.
    fn interrupted<'a, 'b>(&self, kernel: &'a [&'b str]) -> &'a [&'b str] {
        let Some(sampler) = kernel.iter().position(|name| self.sampler.has(name)) else { return kernel };
        let entry = kernel[sampler..].iter().position(|name| self.interrupt_entry.has(name));
        entry.map_or(kernel, |entry| &kernel[sampler + entry + 1..])
    }

    /// Whether `kernel`, from the innermost function outwards, ends a wake-up whose own function left no frame.
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

    /// Stacks that cpu-clock found in iterations over a pipe, over TCP and with a futex, the most frequent of each.
    const FOLDED: &str = include_str!("stacks.folded");

    /// A line `main;read;vfs_read_[k] 12`.
    fn stack(folded: &str) -> SampledStack {
        let (frames, samples) = folded.rsplit_once(' ').unwrap();
        let frame = |name: &str| match name.strip_suffix("_[k]") {
            Some(kernel) => StackFrame::Kernel(kernel.to_owned()),
            None => StackFrame::User(name.to_owned()),
        };
        SampledStack { frames: frames.split(';').map(frame).collect(), samples: samples.parse().unwrap() }
    }

    fn subsystem_of_folded(folded: &str) -> Subsystem {
        subsystem_of(&stack(&format!("{folded} 1")))
    }

    fn section(mechanism: &str) -> Vec<(Subsystem, u64)> {
        let section = FOLDED.split("# ").find(|section| section.starts_with(mechanism)).unwrap();
        samples_by_subsystem(&section.lines().skip(1).map(stack).collect::<Vec<_>>())
    }

    #[test]
    fn the_table_can_be_read_and_says_each_name_once() {
        let file: File = toml::from_str(include_str!("subsystems.toml")).unwrap();
        let in_the_table = Subsystem::ALL
            .iter()
            .copied()
            .filter(|place| !matches!(place, Subsystem::User | Subsystem::Unknown));
        assert_eq!(file.subsystems.keys().copied().collect::<Vec<_>>(), in_the_table.collect::<Vec<_>>());
        let mut seen = BTreeSet::new();
        for name in file.helpers.iter().chain(file.subsystems.values().flatten()) {
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
        use Subsystem::*;
        let pipe = vec![
            (Scheduling, 23_191),
            (Waiting, 11_427),
            (Files, 4_032),
            (User, 3_606),
            (Entry, 2_847),
            (Subsystem::Copy, 895),
        ];
        let tcp = vec![(User, 1_927), (Network, 224), (Scheduling, 158), (Waiting, 118)];
        let futex = vec![(Scheduling, 1_323), (Memory, 178), (Ipc, 108), (Locking, 20)];
        assert_eq!(["pipe", "tcp", "futex"].map(section), [pipe, tcp, futex]);
    }

    #[test]
    fn an_unlock_is_its_callers() {
        let write = "write;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];ksys_write_[k]";
        assert_eq!(
            subsystem_of_folded(&format!("{write};folios_put_refs_[k];_raw_spin_unlock_irq_[k]")),
            Subsystem::Memory
        );
        assert_eq!(
            subsystem_of_folded(&format!("{write};folios_put_refs_[k];_raw_spin_lock_irq_[k]")),
            Subsystem::Locking
        );
        assert_eq!(subsystem_of_folded(&format!("{write};anon_pipe_write_[k]")), Subsystem::Files);
        assert_eq!(
            subsystem_of_folded(&format!("{write};anon_pipe_write_[k];_raw_spin_unlock_irqrestore_[k]")),
            Subsystem::Waiting
        );
    }

    #[test]
    fn the_entry_claims_nothing_that_is_unknown() {
        let call = "getpid;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]";
        assert_eq!(subsystem_of_folded(call), Subsystem::Entry);
        assert_eq!(subsystem_of_folded(&format!("{call};__rcu_read_unlock_[k]")), Subsystem::Entry);
        assert_eq!(subsystem_of_folded(&format!("{call};of_another_kernel_[k]")), Subsystem::Unknown);
        assert_eq!(
            subsystem_of_folded(&format!("{call};vfs_read_[k];of_another_kernel_[k]")),
            Subsystem::Files
        );
        let address =
            SampledStack { frames: vec![StackFrame::KernelAddress(0xffff_ffff_8100_0000)], samples: 1 };
        assert_eq!(subsystem_of(&address), Subsystem::Unknown);
    }

    #[test]
    fn the_interrupt_that_samples_is_left_out() {
        let interrupt = "asm_sysvec_apic_timer_interrupt_[k];sysvec_apic_timer_interrupt_[k];\
                         __hrtimer_run_queues_[k]";
        let sampler = format!("{interrupt};perf_swevent_hrtimer_[k];perf_event_overflow_[k]");
        assert_eq!(subsystem_of_folded(&format!("main;{sampler}")), Subsystem::User);
        assert_eq!(
            subsystem_of_folded(&format!("main;do_syscall_64_[k];tcp_ack_[k];{sampler}")),
            Subsystem::Network
        );
        assert_eq!(subsystem_of_folded(&format!("main;{interrupt}")), Subsystem::Interrupts, "another timer");
        assert_eq!(
            subsystem_of_folded("perf_swevent_hrtimer_[k]"),
            Subsystem::Tracing,
            "no interrupt is to be seen"
        );
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
        assert_eq!(
            subsystem_of_folded("do_syscall_64_[k];unix_dgram_sendmsg.isra.0_[k]"),
            Subsystem::Sockets
        );
    }

    #[test]
    fn samples_are_added_up() {
        let stacks = ["main 2", "main;tcp_ack_[k] 3", "other 4", "main;ip_output_[k] 0"].map(stack);
        assert_eq!(samples_by_subsystem(&stacks), [(Subsystem::User, 6), (Subsystem::Network, 3)]);
        assert_eq!(samples_by_subsystem(&[]), []);
    }
}
