//! What a speed reading could time: the candidates of `cargo xtask bench speed`, each of some 5 to 7 µs at full speed on a
//! core of 2024. No clock is here.

use std::hint::black_box;

/// A candidate: what it is called in the table, and the work.
pub struct SpeedCandidate {
    pub name: &'static str,
    pub work: fn(&mut Arena),
}

/// All of them. `run_mix` is what ipcmark uses.
pub const CANDIDATES: [SpeedCandidate; 13] = [
    SpeedCandidate { name: "run_mix", work: |_| sys::speed::run_mix() },
    SpeedCandidate { name: "mix-1K", work: |_| mix_over_1_kib() },
    SpeedCandidate { name: "mix-apart", work: |_| mix_apart() },
    SpeedCandidate { name: "registers", work: |_| registers() },
    SpeedCandidate { name: "alu", work: |_| alu() },
    SpeedCandidate { name: "multiply", work: |_| multiply() },
    SpeedCandidate { name: "chain", work: |_| chain() },
    SpeedCandidate { name: "branches", work: branches },
    SpeedCandidate { name: "lines", work: lines },
    SpeedCandidate { name: "calls", work: calls },
    SpeedCandidate { name: "copy-16K", work: copy },
    SpeedCandidate { name: "getppid", work: |_| get_parent() },
    SpeedCandidate { name: "self-pipe", work: self_pipe },
];

const CHAINS: usize = 8;
const SEEDS: [u64; CHAINS] = [3, 5, 7, 11, 13, 17, 19, 23];
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The memory and the objects that candidates work on.
pub struct Arena {
    chains: [u64; CHAINS],
    words: Vec<u64>,
    from: Vec<u8>,
    to: Vec<u8>,
    pipe: (std::io::PipeReader, std::io::PipeWriter),
}

const WORDS: usize = 1024;
const COPY_BYTES: usize = 16 * 1024;

impl Arena {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            chains: SEEDS,
            words: vec![1; WORDS],
            from: vec![1; COPY_BYTES],
            to: vec![2; COPY_BYTES],
            pipe: std::io::pipe()?,
        })
    }
}

/// Multiplications, each of which needs the one before it.
#[inline(never)]
fn chain() {
    let mut value = black_box(3u64);
    for _ in 0..6_500 {
        // A square: multiplications by a constant would be made into fewer.
        value = value.wrapping_mul(value);
    }
    black_box(value);
}

/// Additions, shifts and exclusive ors in registers.
#[inline(never)]
fn alu() {
    let mut chains = black_box(SEEDS);
    for round in 0..3_400u64 {
        for chain in &mut chains {
            *chain = (*chain ^ (*chain >> 5)).wrapping_add(round).rotate_left(9);
        }
    }
    black_box(chains);
}

/// Multiplications and additions in registers.
#[inline(never)]
fn multiply() {
    let mut chains = black_box(SEEDS);
    for round in 0..4_000u64 {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(ODD).wrapping_add(round);
        }
    }
    black_box(chains);
}

/// As [`sys::speed::run_mix`], over 16 cache lines instead of two.
#[inline(never)]
fn mix_over_1_kib() {
    const WORDS: usize = 128;
    let mut words = black_box([1u64; WORDS]);
    let mut chains: [u64; CHAINS] = black_box(SEEDS);
    for round in 0..2_400 {
        let base = round * CHAINS % WORDS;
        let words = &mut words[base..base + CHAINS];
        for (index, (chain, word)) in chains.iter_mut().zip(words).enumerate() {
            let next = chain.rotate_left(7).wrapping_add(*word);
            *chain = if index % 2 == 0 { next.wrapping_mul(ODD) } else { next ^ (next >> 3) };
            *word = *chain;
        }
    }
    black_box((words, chains));
}

/// As [`sys::speed::run_mix`], with loads from one cache line and stores to another.
#[inline(never)]
fn mix_apart() {
    let from = black_box([1u64; CHAINS]);
    let mut to = [0u64; CHAINS];
    let mut chains: [u64; CHAINS] = black_box(SEEDS);
    for _ in 0..2_400 {
        let (from, to) = (black_box(&from), black_box(&mut to));
        for (index, chain) in chains.iter_mut().enumerate() {
            let next = chain.rotate_left(7).wrapping_add(from[index]);
            *chain = if index % 2 == 0 { next.wrapping_mul(ODD) } else { next ^ (next >> 3) };
            to[index] = *chain;
        }
    }
    black_box((to, chains));
}

/// What [`sys::speed::run_mix`] does, without memory.
#[inline(never)]
fn registers() {
    let mut chains = black_box(SEEDS);
    for round in 0..3_200u64 {
        for (index, chain) in chains.iter_mut().enumerate() {
            let next = chain.rotate_left(7).wrapping_add(round);
            *chain = if index % 2 == 0 { next.wrapping_mul(ODD) } else { next ^ (next >> 3) };
        }
    }
    black_box(chains);
}

/// Branches in an order that repeats with every run and is too long to be learned wholly.
#[inline(never)]
fn branches(arena: &mut Arena) {
    let mut state = black_box(ODD);
    for _ in 0..4_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = (state >> 32) as usize % 512;
        // Arms that write to memory are not made into conditional moves.
        if state & 3 == 0 {
            arena.words[at] = arena.words[at].wrapping_add(state);
        } else if state & 4 == 0 {
            arena.words[at ^ 7] ^= state;
            arena.chains[1] = arena.chains[1].rotate_left(3);
        } else {
            arena.chains[2] = arena.chains[2].wrapping_mul(ODD);
        }
    }
    black_box(state);
}

/// A line of code that is like no other.
#[inline(always)]
fn line<const N: usize>(arena: &mut Arena) {
    let chain = &mut arena.chains[N % CHAINS];
    let word = &mut arena.words[N * 11 % WORDS];
    *chain = chain.rotate_left(N as u32 % 63 + 1).wrapping_add(*word) ^ (0x1_0001 * N as u64 + 7);
    *word = *chain;
    if *chain == 0xdead_0000 + N as u64 {
        unlikely(N);
    }
    arena.chains[(N + 3) % CHAINS] =
        arena.chains[(N + 3) % CHAINS].wrapping_sub(arena.chains[N % CHAINS] >> 3);
}

#[cold]
#[inline(never)]
fn unlikely(line: usize) {
    black_box(line);
}

#[inline(never)]
fn call<const N: usize>(arena: &mut Arena) {
    line::<N>(arena);
}

macro_rules! eight {
    ($do:ident, $arena:ident, $base:expr) => {
        $do::<{ $base }>($arena);
        $do::<{ $base + 1 }>($arena);
        $do::<{ $base + 2 }>($arena);
        $do::<{ $base + 3 }>($arena);
        $do::<{ $base + 4 }>($arena);
        $do::<{ $base + 5 }>($arena);
        $do::<{ $base + 6 }>($arena);
        $do::<{ $base + 7 }>($arena);
    };
}

macro_rules! of_64 {
    ($do:ident, $arena:ident, $base:expr) => {
        eight!($do, $arena, $base);
        eight!($do, $arena, $base + 8);
        eight!($do, $arena, $base + 16);
        eight!($do, $arena, $base + 24);
        eight!($do, $arena, $base + 32);
        eight!($do, $arena, $base + 40);
        eight!($do, $arena, $base + 48);
        eight!($do, $arena, $base + 56);
    };
}

/// 512 different lines of code, one after the other.
#[inline(never)]
fn lines(arena: &mut Arena) {
    for _ in 0..9 {
        of_64!(line, arena, 0);
        of_64!(line, arena, 64);
        of_64!(line, arena, 128);
        of_64!(line, arena, 192);
        of_64!(line, arena, 256);
        of_64!(line, arena, 320);
        of_64!(line, arena, 384);
        of_64!(line, arena, 448);
    }
}

/// 256 small functions, called one after the other.
#[inline(never)]
fn calls(arena: &mut Arena) {
    for _ in 0..14 {
        of_64!(call, arena, 512);
        of_64!(call, arena, 576);
        of_64!(call, arena, 640);
        of_64!(call, arena, 704);
    }
}

/// Copies within the first-level cache, or nearly.
#[inline(never)]
fn copy(arena: &mut Arena) {
    for _ in 0..44 {
        black_box(&mut arena.to).copy_from_slice(black_box(&arena.from));
    }
}

/// The shortest system call.
fn get_parent() {
    for _ in 0..50 {
        black_box(rustix::process::getppid());
    }
}

/// A byte written to a pipe and read by the same process.
fn self_pipe(arena: &mut Arena) {
    let mut byte = [0u8];
    for _ in 0..8 {
        let _ = black_box(rustix::io::write(&arena.pipe.1, &byte));
        let _ = black_box(rustix::io::read(&arena.pipe.0, &mut byte));
    }
}
