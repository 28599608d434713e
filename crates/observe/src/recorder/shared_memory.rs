//! Where an address of a process lies in memory that processes share, from /proc/PID/maps. It reads no memory.

use super::described::Inode;

/// How many bits of a device the kernel has for the minor number.
const MINOR_BITS: u32 = 20;

/// A place in memory that several processes can have, each at an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SharedPlace {
    /// The file behind it, or what the kernel has in place of one.
    pub(super) file: Inode,
    /// How far from its beginning, in bytes.
    pub(super) offset: u64,
    /// What it is called.
    pub(super) name: String,
}

/// The place of `address`, by the text of /proc/PID/maps; `None` if that memory is private, or is not there.
pub(super) fn place(maps: &str, address: u64) -> Option<SharedPlace> {
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (first, end) = words.next()?.split_once('-')?;
        let (first, end) = (hexadecimal(first)?, hexadecimal(end)?);
        if !(first..end).contains(&address) {
            return None;
        }
        let is_shared = words.next()?.ends_with('s');
        let offset = hexadecimal(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = hexadecimal(major)?.checked_shl(MINOR_BITS)? | hexadecimal(minor)?;
        let number = words.next()?.parse().ok()?;
        let name = words.next().unwrap_or("nameless memory").to_owned();
        let file = Inode { device, number };
        is_shared.then_some(SharedPlace { file, offset: offset.checked_add(address - first)?, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
5581e0a00000-5581e0a21000 rw-p 00000000 00:00 0                          [heap]
7f2c10000000-7f2c10002000 rw-s 00001000 00:01 4711                       /memfd:ring (deleted)
7f2c20000000-7f2c20001000 rw-s 00000000 00:19 12                         /dev/shm/words
";

    #[test]
    fn a_word_of_shared_memory_has_a_place_and_one_of_private_memory_has_none() {
        let found = place(MAPS, 0x7f2c_1000_1008).unwrap();
        assert_eq!((found.file.number, found.offset, found.name.as_str()), (4711, 0x2008, "/memfd:ring"));
        // The same word where another process has it.
        let elsewhere = MAPS.replace("7f2c10000000-7f2c10002000", "6f0000000000-6f0000002000");
        assert_eq!(place(&elsewhere, 0x6f00_0000_1008), Some(found));
        assert_eq!(place(MAPS, 0x5581_e0a0_0010), None, "private");
        assert_eq!(place(MAPS, 0x1000), None, "not there");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", address in any::<u64>()) {
            let _ = place(&text, address);
            let _ = place(&format!("0-ffffffffffffffff rw-s {text}"), address);
        }
    }
}
