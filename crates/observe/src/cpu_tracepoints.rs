//! The tracepoints of which each set of events is made: which records of them are wanted, and what a record says.

use crate::tracefs::{Field, Tracefs, Tracepoint};
use model::observation::{CpuEventKind, EventSet};
use sys::Failure;

/// The flags of a tracepoint's record that an interrupt, or a softirq, was being served (`TRACE_FLAG_HARDIRQ`,
/// `TRACE_FLAG_SOFTIRQ`).
const IN_INTERRUPT: u64 = 1 << 3 | 1 << 4;
/// The states of a thread that sleeps or has ended (`TASK_REPORT`). The bits above say that it was preempted.
const NOT_RUNNABLE: u64 = 0xff;
/// What `cpu_idle` says of a CPU that ends to idle (`PWR_EVENT_EXIT`).
const IDLE_ENDS: u64 = u32::MAX as u64;
/// The interrupts between CPUs and of the local timer, which x86 does not report as `irq_handler`.
const VECTORS: [&str; 4] = ["local_timer", "reschedule", "call_function_single", "call_function"];

/// A tracepoint of a set.
pub(crate) struct Source {
    pub(crate) tracepoint: Tracepoint,
    /// Fields of which one must name an endpoint's thread; every record is wanted where there are none.
    pub(crate) of_endpoints: &'static [&'static str],
    form: Form,
    /// The thread that ran.
    tid: Field,
}

/// Of what form its records are.
enum Form {
    Enter { number: Field, arguments: Field },
    Exit { number: Field, value: Field },
    Switch { state: Field, next: Field, next_name: Field },
    Waking { woken: Field, flags: Field },
    InterruptIn,
    InterruptOut,
    SoftirqIn { vector: Field },
    SoftirqOut,
    Idle { state: Field },
}

/// What a record says.
pub(crate) struct Said {
    /// The thread that ran.
    pub(crate) tid: u32,
    pub(crate) what: CpuEventKind,
    /// A thread that is named, and where.
    pub(crate) name: Option<(u32, Field)>,
}

/// The tracepoints of `set`; none of one that is no tracepoint.
pub(crate) fn sources(set: EventSet, tracefs: &Tracefs) -> Result<Vec<Source>, Failure> {
    let tracepoint = |name: &str| tracefs.tracepoint(name);
    match set {
        EventSet::Switches => {
            let switch = tracepoint("sched/sched_switch")?;
            let form = Form::Switch {
                state: switch.field("prev_state")?,
                next: switch.field("next_pid")?,
                next_name: switch.field("next_comm")?,
            };
            // Of all threads: who has the CPU while an endpoint waits for it is to be known.
            Ok(vec![Source::opened(switch, &[], form)?])
        }
        EventSet::WakeUps => {
            let waking = tracepoint("sched/sched_waking")?;
            let form = Form::Waking { woken: waking.field("pid")?, flags: waking.field("common_flags")? };
            Ok(vec![Source::opened(waking, &["pid"], form)?])
        }
        EventSet::Calls => {
            let enter = tracepoint("raw_syscalls/sys_enter")?;
            let exit = tracepoint("raw_syscalls/sys_exit")?;
            let enters = Form::Enter { number: enter.field("id")?, arguments: enter.field("args")? };
            let exits = Form::Exit { number: exit.field("id")?, value: exit.field("ret")? };
            let of_endpoints = &["common_pid"];
            Ok(vec![Source::opened(enter, of_endpoints, enters)?, Source::opened(exit, of_endpoints, exits)?])
        }
        EventSet::Interrupts => {
            let mut ends = vec![("irq/irq_handler_entry".to_owned(), "irq/irq_handler_exit".to_owned())];
            let vector = |name| (format!("irq_vectors/{name}_entry"), format!("irq_vectors/{name}_exit"));
            let vectors = VECTORS.into_iter().map(vector);
            ends.extend(vectors.filter(|(entry, exit)| tracefs.has(entry) && tracefs.has(exit)));
            let (entry, exit) = (tracepoint("irq/softirq_entry")?, tracepoint("irq/softirq_exit")?);
            let softirq = Form::SoftirqIn { vector: entry.field("vec")? };
            let mut sources =
                vec![Source::opened(entry, &[], softirq)?, Source::opened(exit, &[], Form::SoftirqOut)?];
            for (entry, exit) in ends {
                sources.push(Source::opened(tracepoint(&entry)?, &[], Form::InterruptIn)?);
                sources.push(Source::opened(tracepoint(&exit)?, &[], Form::InterruptOut)?);
            }
            Ok(sources)
        }
        EventSet::Idle => {
            let idle = tracepoint("power/cpu_idle")?;
            let form = Form::Idle { state: idle.field("state")? };
            Ok(vec![Source::opened(idle, &[], form)?])
        }
        EventSet::Faults => Ok(Vec::new()),
    }
}

impl Source {
    fn opened(
        tracepoint: Tracepoint,
        of_endpoints: &'static [&'static str],
        form: Form,
    ) -> Result<Self, Failure> {
        let tid = tracepoint.field("common_pid")?;
        Ok(Self { tracepoint, of_endpoints, form, tid })
    }

    /// The filter that lets the records of the threads `tids` pass, if not all are wanted.
    pub(crate) fn filter(&self, tids: &[u32]) -> Option<String> {
        let terms = self.of_endpoints.iter().flat_map(|field| tids.iter().map(move |tid| (field, tid)));
        let terms: Vec<String> = terms.map(|(field, tid)| format!("{field}=={tid}")).collect();
        (!terms.is_empty()).then(|| terms.join("||"))
    }

    /// What `fields`, a record of the tracepoint, says.
    pub(crate) fn read(&self, fields: &[u8]) -> Option<Said> {
        let short = |field: &Field| u32::try_from(field.read_from(fields)).ok();
        let tid = short(&self.tid)?;
        let mut name = None;
        let what = match &self.form {
            Form::Enter { number, arguments } => {
                CpuEventKind::Enter { number: short(number)?, first: arguments.element(fields, 0, 8) }
            }
            Form::Exit { number, value } => {
                CpuEventKind::Exit { number: short(number)?, value: value.read_from(fields).cast_signed() }
            }
            Form::Switch { state, next, next_name } => {
                let next = short(next)?;
                name = (next != 0).then_some((next, *next_name));
                let preempted = tid != 0 && state.read_from(fields) & NOT_RUNNABLE == 0;
                CpuEventKind::Switch { from: tid, to: Some(next), preempted }
            }
            Form::Waking { woken, flags } => CpuEventKind::Waking {
                woken: short(woken)?,
                by_interrupt: flags.read_from(fields) & IN_INTERRUPT != 0,
            },
            Form::InterruptIn => CpuEventKind::InterruptIn,
            Form::InterruptOut => CpuEventKind::InterruptOut,
            Form::SoftirqIn { vector } => CpuEventKind::SoftirqIn { vector: short(vector)? },
            Form::SoftirqOut => CpuEventKind::SoftirqOut,
            Form::Idle { state } if state.read_from(fields) == IDLE_ENDS => CpuEventKind::IdleOut,
            Form::Idle { .. } => CpuEventKind::IdleIn,
        };
        Some(Said { tid, what, name })
    }
}
