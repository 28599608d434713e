//! The kernel's list of tracepoints (tracefs): the number of each, and where its fields lie in a record.
//!
//! Where tracefs is not mounted it is read through a mount of this process that is attached nowhere: nothing need be mounted
//! beforehand, and nothing is left.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// Where tracefs is usually mounted, the newer place first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The number of the first PID namespace, whose threads have the numbers that tracepoints use (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// What grants the use of tracepoints.
pub(crate) const REMEDY: &str = "run as root, or grant it: sudo setcap cap_perfmon,cap_dac_read_search+ep on the \
                                 program, and mount tracefs: sudo mount -t tracefs tracefs /sys/kernel/tracing";

/// Tracefs, held open.
pub(crate) struct Tracefs {
    root: PathBuf,
    /// The mount of this process, if it made one: it is gone when this is closed.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Opens it where it is mounted, or mounts it for this process alone (fsopen(2), fsmount(2)).
    pub(crate) fn open() -> Result<Self, Failure> {
        let found = PLACES.into_iter().map(Path::new).find(|place| place.join("events").is_dir());
        if let Some(place) = found {
            return Ok(Self { root: place.to_owned(), _mount: None });
        }
        let mount = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).and_then(|context| {
            fsconfig_create(&context)?;
            fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
        });
        let mount = mount.map_err(|errno| Failure::new("mount", "tracefs", errno.to_string(), REMEDY))?;
        Ok(Self { root: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), _mount: Some(mount) })
    }

    /// Whether there is a tracepoint `name`: some are of one architecture only.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.root.join("events").join(name).join("id").exists()
    }

    /// The tracepoint `name`, as `group/event`.
    pub(crate) fn tracepoint(&self, name: &str) -> Result<Tracepoint, Failure> {
        let directory = self.root.join("events").join(name);
        let read = |file: &str| {
            let path = directory.join(file);
            std::fs::read_to_string(&path).map_err(|error| {
                Failure::new("read", format!("the tracepoint {name}"), error.to_string(), REMEDY)
            })
        };
        let id = read("id")?;
        let id = id.trim().parse().map_err(|_| unknown_form(name, "its number"))?;
        Ok(Tracepoint { name: name.to_owned(), id, fields: fields(&read("format")?) })
    }
}

/// A tracepoint, and where the fields of its records lie.
pub(crate) struct Tracepoint {
    pub(crate) name: String,
    pub(crate) id: u64,
    fields: HashMap<String, Field>,
}

/// Where a field lies in a record, and how wide it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    offset: usize,
    size: usize,
}

impl Tracepoint {
    /// The field `name`.
    pub(crate) fn field(&self, name: &str) -> Result<Field, Failure> {
        self.fields.get(name).copied().ok_or_else(|| unknown_form(&self.name, name))
    }
}

impl Field {
    /// Its value in `record`, without its sign; 0 if the record ends before.
    pub(crate) fn read_from(self, record: &[u8]) -> u64 {
        self.element(record, 0, self.size)
    }

    /// Element `at` of an array whose elements have `size` bytes.
    pub(crate) fn element(self, record: &[u8], at: usize, size: usize) -> u64 {
        let start = self.offset.saturating_add(at * size.min(8));
        let mut bytes = [0; 8];
        let Some(found) = record.get(start..start.saturating_add(size.min(8))) else { return 0 };
        bytes[..found.len()].copy_from_slice(found);
        u64::from_ne_bytes(bytes)
    }

    /// The text in it, which ends with a zero byte or with the field; empty if the record ends before.
    pub(crate) fn text(self, record: &[u8]) -> String {
        let field = record.get(self.offset..self.offset.saturating_add(self.size)).unwrap_or_default();
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}

/// Tracepoints number threads as the first PID namespace does; in another, a filter would let those of strangers pass.
pub(crate) fn in_first_pid_namespace() -> Result<(), Failure> {
    const NAMESPACE: &str = "/proc/self/ns/pid";
    let namespace = std::fs::read_link(NAMESPACE).or_fail("readlink", NAMESPACE)?;
    if namespace.as_os_str() == FIRST_PID_NAMESPACE {
        return Ok(());
    }
    Err(Failure::new(
        "find",
        "the threads",
        format!(
            "the kernel's events number threads otherwise than this PID namespace ({})",
            namespace.display()
        ),
        "run outside of the container, or share its PID namespace with the host (docker run --pid host)",
    ))
}

fn unknown_form(tracepoint: &str, what: &str) -> Failure {
    Failure::new(
        "read",
        format!("the tracepoint {tracepoint}"),
        format!("this kernel does not say {what} as expected"),
        "report this bug with the output of 'uname -a'",
    )
}

/// The fields that a `format` file lists, by name: lines of a declaration, an offset and a size, separated by semicolons.
fn fields(format: &str) -> HashMap<String, Field> {
    let field = |line: &str| -> Option<(String, Field)> {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        let name = declared.split_whitespace().last()?.split('[').next()?.trim_start_matches('*');
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
        Some((name.to_owned(), Field { offset: number("offset:")?, size: number("size:")? }))
    };
    format.lines().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sys_enter\nID: 443\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\n\
        print fmt: \"NR %ld\", REC->id\n";

    #[test]
    fn fields_are_found_where_the_kernel_says() {
        let fields = fields(FORMAT);
        assert_eq!(fields.len(), 4);
        assert_eq!(fields["args"], Field { offset: 16, size: 48 });
        let mut record = vec![0; 64];
        record[2] = 8;
        record[8] = 7;
        record[32] = 5;
        assert_eq!((fields["common_flags"].read_from(&record), fields["id"].read_from(&record)), (8, 7));
        assert_eq!(fields["args"].element(&record, 2, 8), 5);
    }

    #[test]
    fn a_record_that_is_too_short_says_nothing() {
        assert_eq!(Field { offset: 16, size: 8 }.read_from(&[1; 20]), 0);
        assert_eq!(Field { offset: 16, size: 8 }.text(b"too short"), "");
    }

    #[test]
    fn a_text_ends_with_a_zero_byte_or_with_its_field() {
        let record = b"####kworker/0:1\0 and more";
        assert_eq!(Field { offset: 4, size: 16 }.text(record), "kworker/0:1");
        assert_eq!(Field { offset: 4, size: 7 }.text(record), "kworker");
    }

    proptest::proptest! {
        #[test]
        fn no_text_and_no_record_panics(text in ".{0,80}", record: Vec<u8>) {
            for line in [text.clone(), format!("field:{text};offset:{};size:{};", usize::MAX, usize::MAX)] {
                fields(&line).values().for_each(|field| assert!(field.read_from(&record) == 0 || !record.is_empty()));
            }
        }
    }

    #[test]
    fn what_is_no_field_is_left_out() {
        let odd =
            "field:\nfield:int x;\nfield:int y;\toffset:z;\tsize:4;\n\tfield:int ok;\toffset:4;\tsize:4;";
        assert_eq!(fields(odd).into_keys().collect::<Vec<_>>(), ["ok"]);
    }
}
