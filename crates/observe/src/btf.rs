//! The kernel's description of its own types (BTF): the numbers of tracepoints and of variables, and where members of structures lie.
//! It knows no more of the format than that takes (kernel: Documentation/bpf/btf.rst).

use std::collections::HashMap;
use sys::Failure;

const PATH: &str = "/sys/kernel/btf/vmlinux";
/// Kinds of types.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNCTION: u32 = 12;
const VARIABLE: u32 = 14;
/// The bytes of a member of a structure.
const MEMBER_BYTES: usize = 12;
/// Structures without a name that lie in each other.
const DEEPEST: usize = 8;
const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;

/// What is wanted of it.
#[derive(Debug, Default)]
pub(crate) struct Btf {
    /// The types of tracepoints, which are called `btf_trace_…`.
    tracepoints: HashMap<String, u32>,
    variables: HashMap<String, u32>,
    /// The functions that iterators run a program at, which are called `bpf_iter_…`.
    iterators: HashMap<String, u32>,
    /// Where members of structures begin, in bits, by the structure and the member. What a member without a name has counts as the
    /// structure's own, as in C.
    members: HashMap<(&'static str, String), u32>,
}

/// The sections of a description.
struct Sections<'a> {
    types: &'a [u8],
    names: &'a [u8],
    /// Where each type lies, by its number; nothing has number 0.
    places: Vec<usize>,
}

impl Btf {
    /// Reads the running kernel's, of which the members of `structures` are wanted.
    pub(crate) fn read(structures: &[&'static str]) -> Result<Self, Failure> {
        let failure = |answer: String| {
            Failure::new(
                "read",
                PATH,
                answer,
                "use a kernel with its types described (CONFIG_DEBUG_INFO_BTF)",
            )
        };
        let bytes = std::fs::read(PATH).map_err(|error| failure(error.to_string()))?;
        Self::parse(&bytes, structures).ok_or_else(|| failure("it is not as expected".to_owned()))
    }

    fn parse(bytes: &[u8], structures: &[&'static str]) -> Option<Self> {
        let at = |offset: usize| number(bytes, offset).map(|number| number as usize);
        if number(bytes, 0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header_bytes = at(4)?.max(HEADER_BYTES);
        let section = |from: usize, len: usize| bytes.get(header_bytes.checked_add(from)?..)?.get(..len);
        let (types, names) = (section(at(8)?, at(12)?)?, section(at(16)?, at(20)?)?);
        let mut sections = Sections { types, names, places: vec![0] };
        let mut btf = Self::default();
        let mut wanted = Vec::new();
        let mut offset = 0;
        while offset < types.len() {
            let (name_at, info) = (number(types, offset)?, number(types, offset + 4)?);
            let (kind, entries) = (info >> 24 & 0x1f, info as usize & 0xffff);
            let entry_bytes = entry_bytes(kind, entries)?;
            let of_type = u32::try_from(sections.places.len()).ok()?;
            match kind {
                TYPEDEF => {
                    if let Some(tracepoint) = sections.name(name_at)?.strip_prefix("btf_trace_") {
                        btf.tracepoints.insert(tracepoint.to_owned(), of_type);
                    }
                }
                FUNCTION => {
                    if let Some(iterator) = sections.name(name_at)?.strip_prefix("bpf_iter_") {
                        btf.iterators.insert(iterator.to_owned(), of_type);
                    }
                }
                VARIABLE => {
                    btf.variables.insert(sections.name(name_at)?.to_owned(), of_type);
                }
                STRUCT | UNION => {
                    let structure = sections.name(name_at)?;
                    wanted.extend(structures.iter().find(|of| **of == structure).map(|of| (*of, of_type)));
                }
                _ => {}
            }
            sections.places.push(offset);
            offset += TYPE_BYTES + entry_bytes;
        }
        for (structure, of_type) in wanted {
            btf.add_members(&sections, structure, of_type, 0, 0)?;
        }
        Some(btf)
    }

    /// The members of `structure` that the type `of_type`, so many bits from its beginning, has.
    fn add_members(
        &mut self,
        sections: &Sections<'_>,
        structure: &'static str,
        of_type: u32,
        from_bits: u32,
        depth: usize,
    ) -> Option<()> {
        let types = sections.types;
        let offset = *sections.places.get(of_type as usize).filter(|_| of_type > 0)?;
        let info = number(types, offset + 4)?;
        if ![STRUCT, UNION].contains(&(info >> 24 & 0x1f)) || depth > DEEPEST {
            return Some(());
        }
        // Of a structure with bit fields, the upper quarter is the width.
        let mask = if info >> 31 == 1 { 0x00ff_ffff } else { u32::MAX };
        for entry in 0..info as usize & 0xffff {
            let member = offset + TYPE_BYTES + entry * MEMBER_BYTES;
            let (name_at, inner) = (number(types, member)?, number(types, member + 4)?);
            let bits = from_bits.checked_add(number(types, member + 8)? & mask)?;
            match sections.name(name_at)? {
                "" => self.add_members(sections, structure, inner, bits, depth + 1)?,
                name => {
                    self.members.insert((structure, name.to_owned()), bits);
                }
            }
        }
        Some(())
    }

    /// The number of the tracepoint `name`'s type.
    pub(crate) fn tracepoint(&self, name: &str) -> Option<u32> {
        self.tracepoints.get(name).copied()
    }

    /// The number of a variable of the kernel.
    pub(crate) fn variable(&self, name: &str) -> Option<u32> {
        self.variables.get(name).copied()
    }

    /// The number of the function that has a program run for each of what it goes through.
    pub(crate) fn iterator(&self, name: &str) -> Option<u32> {
        self.iterators.get(name).copied()
    }

    /// Where `member` lies in `structure`, one of those that were wanted.
    pub(crate) fn member(&self, structure: &'static str, member: &str) -> Option<i16> {
        self.bits(structure, member).filter(|(_, bits)| *bits == 0).map(|(bytes, _)| bytes)
    }

    /// The same of a member of some bits: the byte, and the first of its bits.
    pub(crate) fn bits(&self, structure: &'static str, member: &str) -> Option<(i16, i32)> {
        let bits = *self.members.get(&(structure, member.to_owned()))?;
        Some((i16::try_from(bits / 8).ok()?, i32::try_from(bits % 8).ok()?))
    }

    /// Where `pt_regs`, one of those that were wanted, has the number of a call.
    pub(crate) fn number_of_call(&self) -> Option<i16> {
        self.member("pt_regs", "orig_ax").or_else(|| self.member("pt_regs", "syscallno"))
    }

    /// Where it has its four first arguments.
    pub(crate) fn arguments_of_call(&self) -> Option<[i16; 4]> {
        let register = |name: &str| self.member("pt_regs", name);
        let named = || {
            let [first, second, third, fourth] = ["di", "si", "dx", "r10"].map(register);
            Some([first?, second?, third?, fourth?])
        };
        // Where registers have numbers, arguments are the first of them.
        let numbered = || register("regs").map(|first| [0, 8, 16, 24].map(|at| first + at));
        named().or_else(numbered)
    }
}

/// How much more than others a type of this kind takes, with so many entries.
fn entry_bytes(kind: u32, entries: usize) -> Option<usize> {
    Some(match kind {
        // Integers, variables and tags of declarations.
        1 | VARIABLE | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, wide enumerations.
        STRUCT | UNION | 15 | 19 => entries * 12,
        // Enumerations and the parameters of functions.
        6 | 13 => entries * 8,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

impl Sections<'_> {
    fn name(&self, offset: u32) -> Option<&str> {
        let name = self.names.get(offset as usize..)?.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(name).ok()
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::bpf::{BpfInstruction, BpfProgram};

    /// A typedef, a variable, a structure of two members and one of bits in a union without a name, that union, and a function.
    fn example() -> Vec<u8> {
        let names = b"\0btf_trace_x\0variable\0task\0pid\0comm\0bpf_iter_y\0";
        let types = [
            [1, TYPEDEF << 24, 0].as_slice(),
            &[13, VARIABLE << 24, 0, 0],
            &[22, STRUCT << 24 | 3, 64, 27, 0, 32, 31, 0, 128, 0, 4, 192],
            &[0, 1 << 31 | UNION << 24 | 1, 1, 1, 0, 3 << 24 | 5],
            &[36, FUNCTION << 24, 0],
        ]
        .concat();
        let header = [0x0001_eb9f, 24, 0, types.len() as u32 * 4, types.len() as u32 * 4, names.len() as u32];
        let numbers = header.into_iter().chain(types).flat_map(u32::to_ne_bytes);
        numbers.chain(*names).collect()
    }

    #[test]
    fn what_is_wanted_is_found() {
        let btf = Btf::parse(&example(), &["task"]).unwrap();
        assert_eq!((btf.tracepoint("x"), btf.tracepoint("y")), (Some(1), None));
        assert_eq!((btf.variable("variable"), btf.member("task", "pid")), (Some(2), Some(4)));
        assert_eq!((btf.member("task", "comm"), btf.member("task", "other")), (Some(16), None));
        assert_eq!(Btf::parse(&example(), &[]).unwrap().member("task", "pid"), None);
        // What lies in a union without a name, from the fifth bit of a byte on.
        let of_union = "btf_trace_x";
        assert_eq!((btf.bits("task", of_union), btf.member("task", of_union)), (Some((24, 5)), None));
        assert_eq!((btf.iterator("y"), btf.iterator("x")), (Some(5), None));
    }

    #[test]
    fn the_kernels_own_is_understood_where_it_is() {
        if std::path::Path::new(PATH).exists() {
            let btf = Btf::read(&["task_struct"]).unwrap();
            assert!(btf.tracepoint("sched_switch").is_some() && btf.member("task_struct", "pid").is_some());
        }
    }

    #[test]
    fn a_program_is_of_the_tracepoint_of_its_type_and_the_kernel_says_what_is_wrong_with_one() {
        let Ok(btf) = Btf::read(&[]) else { return };
        let type_number = btf.tracepoint("sched_switch").unwrap();
        // `r0 = 0; exit`, and a jump to itself before it.
        let exit = [BpfInstruction::new(0xb7, 0, 0, 0, 0), BpfInstruction::new(0x95, 0, 0, 0, 0)];
        let endless = [BpfInstruction::new(0x05, 0, 0, -1, 0), exit[0], exit[1]];
        match BpfProgram::load("nothing", &exit, type_number, &[]) {
            Ok(program) => drop(program.attach().unwrap()),
            // Who may not use programs gets no further.
            Err(failure) => {
                return assert!(!rustix::process::geteuid().is_root(), "{failure}");
            }
        }
        let failure = BpfProgram::load("endless", &endless, type_number, &[]).unwrap_err();
        assert!(failure.next.contains("what the kernel said"), "{failure}");
        assert!(BpfProgram::load("untyped", &exit, 0, &[]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, at in 0..180_usize, byte: u8) {
            Btf::parse(&bytes, &[]);
            let mut changed = example();
            changed[at] = byte;
            Btf::parse(&changed, &["task"]);
        }
    }
}
