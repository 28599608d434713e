//! What lies where in this process's memory (/proc/self/maps).

use std::ops::Range;
use std::path::Path;
use sys::{Failure, OrFail};

const MAPS: &str = "/proc/self/maps";

/// The mappings of this process, as they were when this was read.
pub(crate) struct Mappings(Vec<Mapping>);

struct Mapping {
    addresses: Range<u64>,
    /// Where it begins in its file.
    offset: u64,
    /// The file's path, or what the kernel calls it, such as `[stack]`; empty for memory without a name.
    path: String,
    is_code: bool,
}

impl Mappings {
    pub(crate) fn read() -> Result<Self, Failure> {
        let text = std::fs::read_to_string(MAPS).or_fail("read", MAPS)?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mapping = |line: &str| -> Option<Mapping> {
            let mut fields = line.splitn(6, ' ');
            let (from, until) = fields.next()?.split_once('-')?;
            let is_code = fields.next()?.contains('x');
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            let offset = hex(fields.next()?)?;
            let path = fields.nth(2).unwrap_or_default().trim().to_owned();
            Some(Mapping { addresses: hex(from)?..hex(until)?, offset, path, is_code })
        };
        Self(text.lines().filter_map(mapping).collect())
    }

    fn at(&self, address: u64) -> Option<&Mapping> {
        self.0.iter().find(|mapping| mapping.addresses.contains(&address))
    }

    /// What lies at `address`, in a word or two.
    pub(crate) fn name(&self, address: u64) -> &str {
        match self.at(address) {
            None => "no longer mapped",
            Some(mapping) if mapping.is_code => "code",
            Some(mapping) if mapping.path.is_empty() => "memory without a name",
            Some(mapping) => match mapping.path.as_str() {
                "[heap]" => "heap",
                "[stack]" => "stack",
                path => Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path),
            },
        }
    }

    /// The file that the code at `address` comes from, and where in it.
    pub(crate) fn file_offset(&self, address: u64) -> Option<(&str, u64)> {
        let mapping = self.at(address).filter(|mapping| mapping.path.starts_with('/'))?;
        Some((&mapping.path, (address - mapping.addresses.start).checked_add(mapping.offset)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0a0000000-55d0a0010000 r--p 00000000 fe:00 11 /usr/bin/some tool
55d0a0010000-55d0a0020000 r-xp 00010000 fe:00 11 /usr/bin/some tool
55d0a1000000-55d0a1020000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000010000 rw-p 00000000 00:00 0 
7f0000020000-7f0000030000 rw-s 00000000 00:01 77 /memfd:ring (deleted)
";

    #[test]
    fn an_address_is_named_by_what_lies_there() {
        let mappings = Mappings::parse(TEXT);
        for (address, name) in [
            (0x55d0a0000010, "some tool"),
            (0x55d0a0010010, "code"),
            (0x55d0a1000000, "heap"),
            (0x7f0000000fff, "memory without a name"),
            (0x7f0000020000, "memfd:ring (deleted)"),
            (0x7f0000030000, "no longer mapped"),
        ] {
            assert_eq!(mappings.name(address), name);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "([0-9a-f]{1,16}-[0-9a-f]{1,16} r-xp [0-9a-f]{1,16} fe:00 1 /.{0,20}|.{0,60})", at: u64) {
            let mappings = Mappings::parse(&text);
            let _ = (mappings.name(at), mappings.file_offset(at));
        }
    }

    #[test]
    fn code_is_told_by_its_file() {
        let mappings = Mappings::parse(TEXT);
        assert_eq!(mappings.file_offset(0x55d0a0010010), Some(("/usr/bin/some tool", 0x10010)));
        assert_eq!(mappings.file_offset(0x55d0a1000000), None);
    }

    #[test]
    fn the_mappings_of_this_process_hold_its_code() {
        let here = (the_mappings_of_this_process_hold_its_code as fn()) as usize as u64;
        assert_eq!(Mappings::read().unwrap().name(here), "code");
    }
}
