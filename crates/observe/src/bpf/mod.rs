//! What all programs for the kernel's BPF machine need: an assembler, and the kernel's description of its own types. It has no program:
//! those of recordings are in `recorder`, those of the events of CPUs in `cpu_programs`.

pub(crate) mod assembler;
pub(crate) mod btf;
