//! Whether programs that a thread starts have their memory where chance puts it (personality(2)). Not how they are started.

use crate::Errno;
use crate::libc_call::checked;
use libc::{ADDR_NO_RANDOMIZE, c_int, c_ulong, personality};
use std::marker::PhantomData;

/// While this lives, programs that the calling thread starts have their memory at the same addresses each time.
#[derive(Debug)]
pub struct FixedAddresses {
    before: c_int,
    /// The personality is the thread's own, so that this stays in the thread.
    of_thread: PhantomData<*const ()>,
}

impl FixedAddresses {
    /// Asks for it. `EPERM` where a filter of system calls refuses it, as that of some containers does.
    pub fn begin() -> Result<Self, Errno> {
        /// Changes nothing, and returns what is.
        const QUERY: c_ulong = 0xffff_ffff;
        let set = |persona: c_ulong| {
            // SAFETY: it takes a number and touches no memory.
            checked(unsafe { personality(persona) })
        };
        let before = set(QUERY)?;
        set((before | ADDR_NO_RANDOMIZE) as c_ulong)?;
        Ok(Self { before, of_thread: PhantomData })
    }
}

impl Drop for FixedAddresses {
    fn drop(&mut self) {
        // SAFETY: it takes a number and touches no memory. It was allowed a moment ago, and a failure changes nothing.
        unsafe { personality(self.before as c_ulong) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Where a program has its stack.
    fn stack() -> String {
        let maps = Command::new("cat").arg("/proc/self/maps").output().unwrap();
        let maps = String::from_utf8(maps.stdout).unwrap();
        maps.lines().find(|line| line.ends_with("[stack]")).unwrap().to_owned()
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no programs")]
    fn addresses_are_fixed_while_asked_for_and_random_again_after() {
        let fixed = {
            let _fixed = FixedAddresses::begin().unwrap();
            [stack(), stack(), stack()]
        };
        assert!(fixed.iter().all(|stack| *stack == fixed[0]), "{fixed:?}");
        let random = [stack(), stack(), stack()];
        assert!(random.iter().any(|stack| *stack != random[0]), "{random:?}");
    }
}
