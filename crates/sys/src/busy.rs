//! Work of a fixed number of steps that takes the same time whatever a neighbour does on the other thread of the core. It
//! reads no clock: how long a step takes is for the user to find out.

/// Multiplies `steps` times, each time what the multiplication before gave.
///
/// Each step waits for the one before: its time is the multiplier's latency, which a thread that shares the core does not
/// change as long as it leaves some of the multiplier's slots.
///
/// It is never inlined: calibrated in one place and used in another, it must be the same code in both.
#[inline(never)]
pub fn multiply(steps: u64) {
    let mut product = 3_u64;
    for _ in 0..steps {
        product = dependent(product);
    }
    std::hint::black_box(product);
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
