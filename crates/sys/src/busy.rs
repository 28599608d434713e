//! Work of a fixed number of steps that takes the same time whatever a neighbour does on the other thread of the core. It
//! reads no clock: how long a step takes is for the user to find out.

/// Multiplies `steps` times, each time what the multiplication before gave.
///
/// Each step waits for the one before: its time is the multiplier's latency, which a thread that shares the core does not
/// change as long as it leaves some of the multiplier's slots.
///
/// What comes after it begins when the last product is there: a processor that executes out of order would else hide the last
/// multiplications behind the code after them (seen: a delay of 1% before a send by `pipe` made a round trip 0.4 to 0.7% longer, and 1.0 to
/// 1.2% with the wait).
///
/// It is never inlined: calibrated in one place and used in another, it must be the same code in both.
#[inline(never)]
pub fn multiply(steps: u64) {
    let mut product = 3_u64;
    for _ in 0..steps {
        product = dependent(product);
    }
    std::hint::black_box(product);
    wait_for_instructions();
}

/// Waits until the instructions before it have been executed, where the processor has an instruction for that.
#[inline(always)]
fn wait_for_instructions() {
    // SAFETY: both touch neither memory nor registers.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn dependent(factor: u64) -> u64 {
    let mut product = factor;
    // SAFETY: it touches one register and the flags. In assembly, because the compiler would make one multiplication of
    // several.
    unsafe { std::arch::asm!("imul {0}, {0}", inout(reg) product, options(nomem, nostack)) };
    product
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline(always)]
fn dependent(factor: u64) -> u64 {
    std::hint::black_box(factor.wrapping_mul(factor))
}
