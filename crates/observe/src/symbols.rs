//! Names for the addresses of stacks: of the kernel from its own list, of programs from their files.

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use model::observation::{EndpointObservation, Observation, StackFrame};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The note for observations where the kernel lists no addresses of its functions (proc(5), kptr_restrict).
const HIDDEN: &str = "the kernel does not name its own functions: /proc/kallsyms has no addresses (as root: sudo sysctl \
                      kernel.kptr_restrict=1)";

/// Names what stacks are made of. It remembers what it has read: the kernel's list is long.
pub struct Names {
    symbolizer: Symbolizer,
    known: HashMap<StackFrame, StackFrame>,
    /// Why the kernel's functions have no names.
    refusal: Option<String>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

impl Default for Names {
    fn default() -> Self {
        Self { symbolizer: Symbolizer::new(), known: HashMap::new(), refusal: None }
    }
}

impl Names {
    /// Replaces the addresses in the stacks of both endpoints by names, as far as there are any, and notes there if the kernel
    /// does not name its own functions.
    pub fn name(&mut self, observation: &mut Observation) {
        self.name_end(&mut observation.client);
        observation.server.iter_mut().for_each(|server| self.name_end(server));
    }

    fn name_end(&mut self, seen: &mut EndpointObservation) {
        self.learn(seen);
        if !seen.stacks.is_empty() {
            seen.unavailable.extend(self.refusal.clone());
        }
        for frame in seen.stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
            if let Some(name) = self.known.get(frame) {
                *frame = name.clone();
            }
        }
    }

    fn learn(&mut self, seen: &EndpointObservation) {
        let frames = || seen.stacks.iter().flat_map(|stack| &stack.frames);
        let unknown =
            || frames().filter(|frame| !self.known.contains_key(frame)).cloned().collect::<BTreeSet<_>>();
        let (mut kernel, mut files): (Vec<u64>, BTreeMap<String, Vec<u64>>) = Default::default();
        for frame in unknown() {
            match frame {
                StackFrame::KernelAddress(address) => kernel.push(address),
                StackFrame::FileOffset { path, offset } => files.entry(path).or_default().push(offset),
                StackFrame::Kernel(_) | StackFrame::User(_) => {}
            }
        }
        if !kernel.is_empty() {
            let names = self.names(&Source::Kernel(Kernel::default()), Input::AbsAddr(&kernel));
            if names.iter().all(Option::is_none) && self.refusal.is_none() {
                self.refusal = Some(HIDDEN.to_owned());
            }
            let frame = |name: Option<String>, address| {
                StackFrame::Kernel(name.unwrap_or_else(|| format!("{address:#x}")))
            };
            let named =
                kernel.iter().zip(names).map(|(&at, name)| (StackFrame::KernelAddress(at), frame(name, at)));
            self.known.extend(named.collect::<Vec<_>>());
        }
        for (path, offsets) in files {
            let names = self.names(&Source::Elf(Elf::new(&path)), Input::FileOffset(&offsets));
            let file = path.rsplit('/').next().unwrap_or(&path);
            let frame = |name: Option<String>| StackFrame::User(name.unwrap_or_else(|| format!("[{file}]")));
            let at = |offset| StackFrame::FileOffset { path: path.clone(), offset };
            self.known.extend(offsets.iter().zip(names).map(|(&offset, name)| (at(offset), frame(name))));
        }
    }

    /// A name for each address of `input`, where there is one. A file that cannot be read gives none: its functions are
    /// called by its name.
    fn names(&self, source: &Source<'_>, input: Input<&[u64]>) -> Vec<Option<String>> {
        let (Input::AbsAddr(of) | Input::VirtOffset(of) | Input::FileOffset(of)) = input;
        let name = |symbolized: Symbolized<'_>| symbolized.into_sym().map(|symbol| symbol.name.into_owned());
        match self.symbolizer.symbolize(source, input) {
            Ok(found) => found.into_iter().map(name).collect(),
            Err(_) => vec![None; of.len()],
        }
    }
}
