//! A fixed run of instructions whose time says how much of its core this CPU has at the moment.
//!
//! A neighbour on the sibling thread of the core takes execution units, and the kernel of a guest is not told of it. Work that
//! keeps the units busy slows down with it; a chain of dependent instructions leaves them idle and does not.
//! There is no clock here: the caller times the run.

use std::hint::black_box;

/// Independent chains: enough that the longest latency of an instruction (a multiplication, then a store and its load) is filled
/// by the others, few enough to stay in the registers of x86-64.
const CHAINS: usize = 8;

/// The words that are read and written. They fill two cache lines: what was measured before has driven them out of the first-level
/// cache, and with 1 KiB the misses made the time vary by more than the core did.
const WORDS: usize = 16;

/// Chosen so that a run takes some 5 to 7 µs on a core of 2024.
const ROUNDS: usize = 2_300;

/// Does the work once: additions, shifts, multiplications, loads and stores in chains that are independent of each other.
///
/// It does not depend on data, makes no system call and allocates nothing. What it takes is the sum of what each instruction
/// takes of the core, so that it takes longer when somebody else uses the core too.
#[inline(never)]
pub fn run_mix() {
    let mut words = black_box([1u64; WORDS]);
    let mut chains: [u64; CHAINS] = black_box([3, 5, 7, 11, 13, 17, 19, 23]);
    for round in 0..ROUNDS {
        let base = round * CHAINS % WORDS;
        let words = &mut words[base..base + CHAINS];
        for (index, (chain, word)) in chains.iter_mut().zip(words).enumerate() {
            let next = chain.rotate_left(7).wrapping_add(*word);
            *chain =
                if index % 2 == 0 { next.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { next ^ (next >> 3) };
            *word = *chain;
        }
    }
    black_box((words, chains));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_a_whole_number_of_rounds() {
        assert_eq!(WORDS % CHAINS, 0);
        run_mix();
    }
}
