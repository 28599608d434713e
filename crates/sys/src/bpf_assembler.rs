//! Writes programs for the kernel's BPF machine: instructions with labels, and memory by the size of what lies there. Which
//! programs there are say those who write them, and what loads them is [`crate::bpf`].
//!
//! The machine has eleven registers: R0 has what a helper returned, R1 to R5 are its arguments and lost with each call, R6 to R9
//! stay, and R10 is the end of a stack of 512 bytes (kernel: Documentation/bpf/standardization/instruction-set.rst).

use crate::bpf::BpfInstruction;
use rustix::fd::{AsFd, AsRawFd};

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the machine's own names; what they are for is said above")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    /// The end of the stack.
    Stack,
}

/// How many bytes of memory are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// A word.
    Four,
    /// A register.
    Eight,
}

/// A condition on a register, as a number without a sign unless it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It is the same.
    Equal,
    /// It is another.
    NotEqual,
    /// It is as much or more.
    AtLeast,
    /// Some of these bits are set.
    AnyOf,
    /// It is less, as a number with a sign.
    SignedLess,
}

/// What a register is compared with, added to it, or put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// This number.
    Number(i32),
    /// What is in this register.
    Of(Register),
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Operand::Number(number)
    }
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Operand::Of(register)
    }
}

/// What the kernel does for a program (bpf-helpers(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// Finds a value of a map.
    MapLookup = 1,
    /// Sets one.
    MapUpdate = 2,
    /// Removes one.
    MapDelete = 3,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Time = 5,
    /// The CPU on which it runs.
    Cpu = 8,
    /// The process in the upper half, the thread in the lower.
    ProcessAndThread = 14,
    /// What the thread is called.
    Name = 16,
    /// The thread, as what its members can be loaded of.
    Task = 158,
    /// Reads memory of the kernel that may be there or not: it becomes zero if not.
    ReadKernel = 113,
    /// Puts a record into a ring.
    RingOutput = 130,
    /// Has a function told of the mapping in which an address of a thread lies.
    FindMapping = 180,
    /// Where a variable of each CPU lies on this one.
    OfThisCpu = 154,
    /// Puts the socket that the program is called for into a map of sockets.
    SocketUpdate = 70,
    /// Has a message go to a socket of such a map.
    MessageRedirect = 71,
    /// By which the kernel knows the network namespace of the socket.
    NetworkCookie = 122,
}

/// A place in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program that is being written.
#[derive(Debug, Default)]
pub struct Assembler {
    instructions: Vec<BpfInstruction>,
    /// Where each label is, once that is known.
    labels: Vec<Option<usize>>,
    /// Jumps, and where they go.
    jumps: Vec<(usize, Label)>,
    /// Where it is referred to functions, and which.
    references: Vec<(usize, Label)>,
}

/// Classes of instructions, and what is added to them.
const LOAD_IMMEDIATE: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE_IMMEDIATE: u8 = 0x62;
const STORE: u8 = 0x63;
const ATOMIC_ADD: u8 = 0xc3;
const ARITHMETIC: u8 = 0x07;
const JUMP: u8 = 0x05;
const OF_REGISTER: u8 = 0x08;
const EIGHT: u8 = 0x18;
const ADD: u8 = 0x00;
const SUBTRACT: u8 = 0x10;
const AND: u8 = 0x50;
const SHIFT_LEFT: u8 = 0x60;
const SHIFT_RIGHT: u8 = 0x70;
const MOVE: u8 = 0xb0;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// `BPF_END`, of big-endian numbers.
const FROM_NETWORK: u8 = 0xdc;
/// Of four bytes, the others become zero.
const MOVE_HALF: u8 = 0xbc;
/// The immediate that is loaded is the descriptor of a map, or that of a map whose only value is meant, or the number of a variable of
/// the kernel.
const IS_MAP: u8 = 1;
const IS_VALUE: u8 = 2;
const IS_VARIABLE: u8 = 3;
/// Or how far it is to a function.
const IS_FUNCTION: u8 = 4;
/// An atomic operation gives back what was there before.
const FETCH: i32 = 1;

impl Width {
    fn code(self) -> u8 {
        match self {
            Width::Four => 0,
            Width::Eight => EIGHT,
        }
    }
}

impl Assembler {
    /// A place to which can be jumped, and which is put somewhere later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn put(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// `to = operand`.
    pub fn set(&mut self, to: Register, operand: impl Into<Operand>) {
        self.arithmetic(MOVE, to, operand.into());
    }

    /// `to += operand`.
    pub fn add(&mut self, to: Register, operand: impl Into<Operand>) {
        self.arithmetic(ADD, to, operand.into());
    }

    /// `to -= operand`.
    pub fn subtract(&mut self, to: Register, operand: impl Into<Operand>) {
        self.arithmetic(SUBTRACT, to, operand.into());
    }

    /// `to &= operand`.
    pub fn and(&mut self, to: Register, operand: impl Into<Operand>) {
        self.arithmetic(AND, to, operand.into());
    }

    /// `to = base[offset]`.
    pub fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        self.push(LOAD | width.code(), to as u8, base as u8, offset, 0);
    }

    /// `base[offset] = value`.
    pub fn store(&mut self, width: Width, base: Register, offset: i16, value: impl Into<Operand>) {
        match value.into() {
            Operand::Number(number) => {
                self.push(STORE_IMMEDIATE | width.code(), base as u8, 0, offset, number);
            }
            Operand::Of(from) => self.push(STORE | width.code(), base as u8, from as u8, offset, 0),
        }
    }

    /// `base[offset] += value`, of eight bytes, whatever other CPUs do to it.
    pub fn atomic_add(&mut self, base: Register, offset: i16, value: Register) {
        self.push(ATOMIC_ADD | EIGHT, base as u8, value as u8, offset, 0);
    }

    /// `base[offset] += value`, of eight bytes, and `value` is what was there before.
    pub fn fetch_add(&mut self, base: Register, offset: i16, value: Register) {
        self.push(ATOMIC_ADD | EIGHT, base as u8, value as u8, offset, FETCH);
    }

    /// `to` is the lower half of `from`.
    pub fn lower_half(&mut self, to: Register, from: Register) {
        self.push(MOVE_HALF, to as u8, from as u8, 0, 0);
    }

    /// `to <<= bits`.
    pub fn shift_left(&mut self, to: Register, bits: i32) {
        self.arithmetic(SHIFT_LEFT, to, bits.into());
    }

    /// `to >>= bits`.
    pub fn shift_right(&mut self, to: Register, bits: i32) {
        self.arithmetic(SHIFT_RIGHT, to, bits.into());
    }

    /// `to` is a number of eight bytes.
    pub fn set_long(&mut self, to: Register, number: u64) {
        self.push(LOAD_IMMEDIATE, to as u8, 0, 0, (number as u32).cast_signed());
        self.push(0, 0, 0, 0, ((number >> 32) as u32).cast_signed());
    }

    /// The four lower bytes of `of`, from the network's order to this machine's; the others become zero.
    pub fn swap_from_network(&mut self, of: Register) {
        const BITS: i32 = 32;
        self.push(FROM_NETWORK, of as u8, 0, 0, BITS);
    }

    /// `to` refers to the function that begins at `label`.
    pub fn refer_to_function(&mut self, to: Register, label: Label) {
        self.references.push((self.instructions.len(), label));
        self.push(LOAD_IMMEDIATE, to as u8, IS_FUNCTION, 0, 0);
        self.push(0, 0, 0, 0, 0);
    }

    /// `to` is where the memory of `buffer` begins.
    pub fn refer_to_memory(&mut self, to: Register, buffer: &impl AsFd) {
        self.push(LOAD_IMMEDIATE, to as u8, IS_VALUE, 0, buffer.as_fd().as_raw_fd());
        self.push(0, 0, 0, 0, 0);
    }

    /// `to` is a variable of the kernel, by its number in the kernel's description of its types.
    pub fn refer_to_variable(&mut self, to: Register, number: u32) {
        self.push(LOAD_IMMEDIATE, to as u8, IS_VARIABLE, 0, number.cast_signed());
        self.push(0, 0, 0, 0, 0);
    }

    /// `to` refers to `map`.
    pub fn refer(&mut self, to: Register, map: &impl AsFd) {
        self.push(LOAD_IMMEDIATE, to as u8, IS_MAP, 0, map.as_fd().as_raw_fd());
        self.push(0, 0, 0, 0, 0);
    }

    /// R0 is what `helper` says of R1 to R5, which are lost.
    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, 0, 0, 0, helper as i32);
    }

    /// Goes on at `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(JUMP, 0, 0, 0, 0);
    }

    /// Goes on at `label` if `register` is as the condition says.
    pub fn jump_if(
        &mut self,
        register: Register,
        condition: Condition,
        operand: impl Into<Operand>,
        label: Label,
    ) {
        let condition = match condition {
            Condition::Equal => 0x10,
            Condition::AtLeast => 0x30,
            Condition::AnyOf => 0x40,
            Condition::NotEqual => 0x50,
            Condition::SignedLess => 0xc0,
        };
        self.jumps.push((self.instructions.len(), label));
        self.operation(JUMP | condition, register, operand.into());
    }

    /// Ends the program.
    pub fn exit(&mut self) {
        // Where it is attached to a tracepoint by a perf event, zero would take the record from whoever else records that tracepoint.
        self.exit_with(1);
    }

    /// Ends the program, or a function of it, with `value`.
    pub fn exit_with(&mut self, value: i32) {
        self.set(Register::R0, value);
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// The program, and where functions begin that it refers to.
    pub fn finish(mut self) -> (Vec<BpfInstruction>, Vec<usize>) {
        let place = |label: Label| self.labels[label.0].expect("every label that is used was put somewhere");
        let distance = |at: usize, label| place(label).cast_signed() - at.cast_signed() - 1;
        for (at, label) in self.jumps {
            self.instructions[at].offset = i16::try_from(distance(at, label)).expect("programs are short");
        }
        let mut functions = Vec::new();
        for (at, label) in self.references {
            self.instructions[at].immediate = i32::try_from(distance(at, label)).expect("programs are short");
            functions.push(place(label));
        }
        (self.instructions, functions)
    }

    fn arithmetic(&mut self, code: u8, to: Register, operand: Operand) {
        self.operation(ARITHMETIC | code, to, operand);
    }

    fn operation(&mut self, code: u8, to: Register, operand: Operand) {
        match operand {
            Operand::Number(number) => self.push(code, to as u8, 0, 0, number),
            Operand::Of(from) => self.push(code | OF_REGISTER, to as u8, from as u8, 0, 0),
        }
    }

    fn push(&mut self, code: u8, destination: u8, source: u8, offset: i16, immediate: i32) {
        self.instructions.push(BpfInstruction::new(code, destination, source, offset, immediate));
    }
}

#[cfg(test)]
mod tests {
    use super::Register::{R0, R1, Stack};
    use super::*;

    #[test]
    fn instructions_are_those_of_the_specification() {
        let mut code = Assembler::default();
        let end = code.label();
        code.load(Width::Eight, R0, R1, 16);
        code.jump_if(R0, Condition::SignedLess, 0, end);
        code.store(Width::Four, Stack, -4, R0);
        code.atomic_add(R1, 8, R0);
        code.put(end);
        code.exit();
        let written: Vec<(u8, i16, i32)> =
            code.finish().0.iter().map(|of| (of.code, of.offset, of.immediate)).collect();
        assert_eq!(
            written,
            [(0x79, 16, 0), (0xc5, 2, 0), (0x63, -4, 0), (0xdb, 8, 0), (0xb7, 0, 1), (0x95, 0, 0)]
        );
    }
}
