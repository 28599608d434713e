//! Where the processor is at regular intervals, and the calls that led there.
//!
//! Samples are taken by the processor's cycles where they are counted, else by a timer of the kernel (`cpu-clock`). That timer
//! cannot interrupt code that keeps interrupts off: such code is sampled where it switches them on again.

use crate::instrument::ProbeInstrument;
use crate::mappings::Mappings;
use crate::perf::{on_this_thread, ring, switched};
use model::observation::{EndpointObservation, SampledStack, SamplingRate, StackFrame};
use perf_event::data::Record as Parsed;
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, SampleFlag, Sampler};
use rustix::thread::{CpuSet, gettid, sched_getaffinity};
use std::collections::BTreeMap;
use sys::{Failure, OrFail};

/// The time between two samples at the highest rate: no multiple of anything that iterations are likely to take.
const PERIOD_NS: u64 = 200_003;
/// About the same time in cycles, at some gigahertz.
const PERIOD_CYCLES: u64 = 250_007;
/// What a chain of calls says where the kernel's part begins, and the user's (`PERF_CONTEXT_KERNEL`, `PERF_CONTEXT_USER`).
const KERNEL_FOLLOWS: u64 = (-128_i64).cast_unsigned();
const USER_FOLLOWS: u64 = (-512_i64).cast_unsigned();
/// Addresses above are such marks.
const MARKS: u64 = (-4095_i64).cast_unsigned();

/// Opens it on every CPU on which the thread may run, where that is allowed: the timer then goes on while others run. On
/// the thread alone it is set anew at every switch, which on a virtual machine can take longer than an iteration.
pub(crate) fn open(rate: SamplingRate) -> Result<Sampling, Failure> {
    let cpus = sched_getaffinity(None).or_fail("sched_getaffinity", "this thread")?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| cpus.is_set(cpu));
    let of_cpus = cpus.map(|cpu| {
        let mut builder = samples(rate);
        builder.any_pid().one_cpu(cpu).include_kernel();
        ring_of(&mut builder)
    });
    if let Ok(rings) = of_cpus.collect() {
        return Ok(Sampling { rings, unavailable: Vec::new() });
    }
    let of_kernel = ring_of(samples(rate).include_kernel());
    let mut unavailable = Vec::new();
    let ring = of_kernel.or_else(|failure| {
        unavailable.push(format!("the kernel's own functions: {failure}"));
        ring_of(samples(rate).exclude_kernel(true).exclude_callchain_kernel(true))
    });
    Ok(Sampling { rings: vec![ring?], unavailable })
}

/// By cycles where they are counted, else by the clock.
fn samples<'a>(rate: SamplingRate) -> Builder<'a> {
    let mut by_cycles = on_this_thread(Hardware::CPU_CYCLES);
    by_cycles.sample_period(PERIOD_CYCLES * rate.periods());
    let mut by_clock = on_this_thread(Software::CPU_CLOCK);
    by_clock.sample_period(PERIOD_NS * rate.periods());
    let mut builder = if by_cycles.build().is_ok() { by_cycles } else { by_clock };
    builder.sample(SampleFlag::TID | SampleFlag::CALLCHAIN);
    builder
}

fn ring_of(builder: &mut Builder<'_>) -> Result<Sampler, Failure> {
    ring(builder, None, "samples of its own thread")
}

pub(crate) struct Sampling {
    rings: Vec<Sampler>,
    unavailable: Vec<String>,
}

impl ProbeInstrument for Sampling {
    fn begin(&mut self) -> Result<(), Failure> {
        self.rings.iter_mut().try_for_each(|ring| switched(ring.enable(), "sampling"))
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.rings.iter_mut().try_for_each(|ring| switched(ring.disable(), "sampling"))
    }

    /// The stacks, with addresses for names: the coordinator names them, once for all trials.
    fn observation(mut self: Box<Self>) -> Result<EndpointObservation, Failure> {
        let mut seen =
            EndpointObservation { unavailable: self.unavailable, ..EndpointObservation::default() };
        let mappings = Mappings::read()?;
        let tid = gettid().as_raw_nonzero().get().cast_unsigned();
        let mut stacks: BTreeMap<Vec<StackFrame>, u64> = BTreeMap::new();
        for ring in &mut self.rings {
            while let Some(record) = ring.next_record() {
                match record.parse_record() {
                    Ok(Parsed::Sample(sample)) if sample.tid() == Some(tid) => {
                        let chain = sample.callchain().unwrap_or_default();
                        *stacks.entry(frames(chain, &mappings)).or_default() += 1;
                    }
                    Ok(Parsed::Lost(lost)) => seen.lost += lost.lost,
                    Ok(Parsed::LostSamples(lost)) => seen.lost += lost.lost,
                    _ => {}
                }
            }
        }
        seen.stacks = stacks.into_iter().map(|(frames, samples)| SampledStack { frames, samples }).collect();
        Ok(seen)
    }
}

/// The frames of a chain, which the kernel gives from the innermost outward, from the outermost inward.
fn frames(chain: &[u64], mappings: &Mappings) -> Vec<StackFrame> {
    let mut in_kernel = false;
    let mut frames: Vec<StackFrame> = chain
        .iter()
        .filter_map(|&address| match address {
            KERNEL_FOLLOWS => {
                in_kernel = true;
                None
            }
            USER_FOLLOWS => {
                in_kernel = false;
                None
            }
            MARKS.. => None,
            _ if in_kernel => Some(StackFrame::KernelAddress(address)),
            _ => Some(match mappings.file_offset(address) {
                Some((path, offset)) => StackFrame::FileOffset { path: path.to_owned(), offset },
                None => StackFrame::User("[unknown]".to_owned()),
            }),
        })
        .collect();
    frames.reverse();
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_turned_outside_in_and_split_at_its_marks() {
        let mappings = Mappings::read().unwrap();
        let chain = [KERNEL_FOLLOWS, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020, USER_FOLLOWS, 1];
        let outside_in = [
            StackFrame::User("[unknown]".to_owned()),
            StackFrame::KernelAddress(0xffff_ffff_8100_0020),
            StackFrame::KernelAddress(0xffff_ffff_8100_0010),
        ];
        assert_eq!(frames(&chain, &mappings), outside_in);
    }
}
