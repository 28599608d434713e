//! What others may have written where ipcmark reads: records of names, lists of CPUs, delays and names of formats.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Inject;
use model::cpu_list::{format_cpulist, parse_cpulist};
use report::Format;
use sys::name::ObjectName;

fuzz_target!(|text: &str| {
    if let Ok(name) = text.parse::<ObjectName>() {
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        // No record leads out of the directory that the kernel has for such names.
        assert_eq!(text.matches('/').count(), usize::from(text.starts_with("posix")));
    }
    if let Ok(cpus) = parse_cpulist(text) {
        assert!(cpus.is_sorted_by(|a, b| a < b));
        assert_eq!(parse_cpulist(&format_cpulist(&cpus)), Ok(cpus));
    }
    if let Ok(inject) = text.parse::<Inject>() {
        assert_eq!(inject.to_string().parse(), Ok(inject));
    }
    if let Ok(format) = text.parse::<Format>() {
        assert_eq!(format.to_string(), text);
    }
});
