//! Which threads the endpoints of a trial have, as the kernel lists them (proc(5), `/proc/PID/task`).

use crate::protocol::orders::{CLIENT_THREAD, Role, SERVER_THREAD};
use observe::cpu_trace::EndpointThreads;
use std::path::{Path, PathBuf};
use sys::{Failure, OrFail};

/// The threads of `endpoints`, which are processes with their roles: of one process with both endpoints, those two; of any other,
/// all that it has, for a mechanism may have helpers.
pub(super) fn endpoint_threads(
    endpoints: impl Iterator<Item = (Role, u32)>,
) -> Result<EndpointThreads, Failure> {
    let mut threads = EndpointThreads::default();
    for (role, pid) in endpoints {
        for (tid, path) in tasks(pid)? {
            let endpoint_tids = match role {
                Role::Client | Role::Alone => Some(&mut threads.client),
                Role::Server => Some(&mut threads.server),
                Role::Both => match name(&path)?.as_str() {
                    CLIENT_THREAD => Some(&mut threads.client),
                    SERVER_THREAD => Some(&mut threads.server),
                    // The thread that waits for both.
                    _ => None,
                },
            };
            endpoint_tids.into_iter().for_each(|tids| tids.push(tid));
        }
    }
    Ok(threads)
}

/// The threads of the process `pid`, each with where the kernel tells of it.
fn tasks(pid: u32) -> Result<Vec<(u32, PathBuf)>, Failure> {
    let directory = format!("/proc/{pid}/task");
    let entries = std::fs::read_dir(&directory).or_fail("list", &directory)?;
    let tid = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let tasks = entries.flatten().filter_map(|entry| Some((tid(&entry.path())?, entry.path())));
    Ok(tasks.collect())
}

fn name(task: &Path) -> Result<String, Failure> {
    let path = task.join("comm");
    let name = std::fs::read_to_string(&path).or_fail("read", path.display().to_string())?;
    Ok(name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;
    use std::sync::mpsc::channel;
    use std::thread::Builder;

    #[test]
    fn the_endpoints_of_one_process_are_told_apart_by_their_names() {
        let (say, heard) = channel();
        let (end, ended) = channel::<()>();
        let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
        let threads = [CLIENT_THREAD, SERVER_THREAD].map(|name| {
            let (say, ended) = (say.clone(), ended.clone());
            let body = move || {
                say.send((name, gettid().as_raw_nonzero().get().cast_unsigned())).unwrap();
                // Until the test is over.
                let _ = ended.lock().unwrap().recv();
            };
            Builder::new().name(name.to_owned()).spawn(body).unwrap()
        });
        let mut tids: Vec<(&str, u32)> = (0..2).map(|_| heard.recv().unwrap()).collect();
        tids.sort_unstable();
        let own = std::process::id();
        let both = endpoint_threads([(Role::Both, own)].into_iter()).unwrap();
        assert_eq!((both.client, both.server), (vec![tids[0].1], vec![tids[1].1]));
        let whole = endpoint_threads([(Role::Server, own)].into_iter()).unwrap();
        assert!(whole.client.is_empty());
        assert!(tids.iter().all(|(_, tid)| whole.server.contains(tid)) && whole.server.len() > 2);
        drop(end);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(endpoint_threads([(Role::Client, child.id())].into_iter()).is_err());
    }
}
