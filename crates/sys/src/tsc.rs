//! The processor's time-stamp counter: read, and asked whether its rate is constant. Whether to use it as a clock,
//! and how long a tick is, `harness` decides.

/// Whether the processor says that the counter runs at one rate in every power state
/// (CPUID 80000007H, EDX bit 8; Intel SDM vol. 3, 19.17.1; AMD APM vol. 3, E.4.9).
pub fn is_invariant() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        const ADVANCED_POWER: u32 = 0x8000_0007;
        __cpuid(0x8000_0000).eax >= ADVANCED_POWER && __cpuid(ADVANCED_POWER).edx & (1 << 8) != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Reads the counter after all earlier loads and instructions have ended.
///
/// `LFENCE; RDTSC`, as the Intel SDM vol. 2B (RDTSC) advises. On AMD processors since Zen, LFENCE serialises in the
/// same way. Zero on other architectures, where [`is_invariant`] says not to use it.
#[inline(always)]
pub fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both instructions exist on every x86-64 processor and touch no memory.
    unsafe {
        use std::arch::x86_64::{_mm_lfence, _rdtsc};
        _mm_lfence();
        _rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}

/// Reads the counter without waiting for earlier instructions: the bare instruction, for an operation that times it.
#[inline(always)]
pub fn read_unordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        0
    }
}
