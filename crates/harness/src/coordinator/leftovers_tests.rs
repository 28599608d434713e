//! Attacks on `clean` and the janitor by whoever can write the directory for temporary files.

#[path = "../../../../xtask/src/test_notes.rs"]
mod test_notes;

use super::*;
use crate::coordinator::run_directory::remove_dead;
use rustix::fs::{mknodat, rename};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::name::ObjectName;
use sys::sysv::{SysvKey, SysvSemaphores};

const NOBODY: u32 = 65_534;

fn leftover(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("socket"), "").unwrap();
    path
}

fn held(path: &Path) -> OwnDirectory {
    match find(path).unwrap() {
        Found::Ours(own) => own,
        other => panic!("{other:?}"),
    }
}

fn in_use(path: &Path) -> bool {
    matches!(find(path), Ok(Found::InUse))
}

/// Gives the lock back. A child that another test has just forked holds a copy of the descriptor, and with it the lock,
/// until it executes its program: the lock is waited for.
fn release(own: OwnDirectory, path: &Path) {
    drop(own);
    let waited = crate::clock::Timer::start();
    while in_use(path) && waited.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
}

/// The paths that `clean` removed in `parent`, if it removed all of its own, and how many it left alone.
fn cleaned(parent: &Path) -> (Vec<PathBuf>, u64) {
    let Cleaned { own, foreign } = clean_in(parent).unwrap();
    let mut removed: Vec<PathBuf> = own
        .into_iter()
        .map(|(path, outcome)| {
            outcome.unwrap();
            path
        })
        .collect();
    removed.sort();
    (removed, foreign)
}

#[test]
fn what_a_dead_run_left_is_removed_and_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let dead = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    let alive = leftover(parent.path(), "ipcmark-run-2-0000abcd");
    let other = leftover(parent.path(), "ipcmark-run-of-somebody");
    let own = held(&alive);
    assert!(in_use(&alive));
    assert_eq!(cleaned(parent.path()), (vec![dead.clone()], 0));
    assert!(!dead.exists() && alive.exists() && other.exists());
    release(own, &alive);
    assert_eq!(cleaned(parent.path()), (vec![alive.clone()], 0));
    assert!(!alive.exists() && matches!(find(&alive), Ok(Found::Nothing)));
}

#[test]
fn only_names_that_a_run_gives_are_taken_for_runs() {
    assert!(is_name_of_run("ipcmark-run-17-00ff00ff"));
    for name in [
        "ipcmark",
        "ipcmark-run-17-00ff",
        "ipcmark-run-17-00FF00FF",
        "ipcmark-run--00ff00ff",
        "ipcmark-run-1-00ff00ff\n",
        "ipcmark-run-\u{1b}[2J-00ff00ff",
        "ipcmark-run-99999999999-00ff00ff",
    ] {
        assert!(!is_own_name(name), "{name:?}");
    }
    assert!(is_own_name("ipcmark-run-17-00ff00ff") && is_own_name("ipcmark-push-aZ09bc"));
    for name in [
        "ipcmark-push-",
        "ipcmark-push-aZ09b",
        "ipcmark-push-aZ09bcd",
        "ipcmark-push-aZ09b/",
        "ipcmark-push-aZ09b\n",
    ] {
        assert!(!is_own_name(name), "{name:?}");
    }
}

/// What stands at the name of a run and is no directory is neither opened nor removed.
#[test]
fn a_fifo_a_link_a_file_a_socket_or_a_device_at_the_name_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let at = |number: u32| parent.path().join(format!("ipcmark-run-{number}-0000abcd"));
    let precious = leftover(parent.path(), "precious");
    mknodat(CWD, at(1), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink(&precious, at(2)).unwrap();
    fs::write(at(3), "").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at(4)).unwrap();
    symlink("nowhere", at(5)).unwrap();
    // The terminal of who cleans, and one that never ends.
    symlink("/dev/tty", at(6)).unwrap();
    let zero = rustix::fs::makedev(1, 5);
    let devices =
        u64::from(mknodat(CWD, at(7), rustix::fs::FileType::CharacterDevice, Mode::RWXU, zero).is_ok());
    assert_eq!(cleaned(parent.path()), (vec![], 6 + devices));
    assert!((1..=6).all(|number| at(number).symlink_metadata().is_ok()) && precious.join("socket").exists());
    // The janitor has the same eyes.
    (1..=7).for_each(|number| remove_dead(&at(number)));
    assert!(at(1).exists() && precious.join("socket").exists());
}

#[test]
fn a_directory_that_others_may_write_is_not_believed() {
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    let key = SysvKey::hashed(&path);
    let set = SysvSemaphores::create(key, 1, false).unwrap();
    fs::write(path.join("1.name"), ObjectName::SysvSem(key).to_string()).unwrap();
    for mode in [0o777, 0o1777, 0o720] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let Cleaned { own, foreign } = clean_in(parent.path()).unwrap();
        assert_eq!((own.len(), foreign), (1, 0));
        let failure = own[0].1.as_ref().unwrap_err();
        assert!(failure.to_string().contains(&format!("its mode is {mode:04o}")), "{failure}");
        assert!(path.join("socket").exists() && set.add(0, 1) == Ok(()));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(cleaned(parent.path()), (vec![path], 0));
    assert_eq!(set.add(0, 1), Err(sys::Errno::PIPE), "what is recorded in our own directory is removed");
}

/// A directory of another user with our prefix, whose records name the objects of whoever cleans.
#[test]
fn a_directory_of_another_user_is_left_alone_with_all_that_it_names() {
    if !geteuid().is_root() {
        // `restricted.rs` of the binary cleans as an ordinary user beside directories of root.
        return test_notes::skip(
            "the tests do not run as root; run `sudo cargo xtask test`",
            "root beside directories of other users",
        );
    }
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    let key = SysvKey::hashed(&path);
    fs::write(path.join("1.name"), ObjectName::SysvSem(key).to_string()).unwrap();
    let set = SysvSemaphores::create(key, 1, false).unwrap();
    chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    assert_eq!(cleaned(parent.path()), (vec![], 1));
    remove_dead(&path);
    assert!(path.join("socket").exists() && set.add(0, 1) == Ok(()));
    ObjectName::SysvSem(key).remove().unwrap();
}

/// A middleware's; what a link in it leads to is not the run's.
#[test]
fn a_directory_within_goes_and_what_links_in_it_lead_to_stays() {
    let parent = tempfile::tempdir().unwrap();
    let (path, precious) =
        (leftover(parent.path(), "ipcmark-run-1-0000abcd"), parent.path().join("precious"));
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "").unwrap();
    fs::create_dir_all(path.join("7.media/inner")).unwrap();
    fs::write(path.join("7.media/inner/log"), "").unwrap();
    symlink(&precious, path.join("7.media/link")).unwrap();
    clean_in(parent.path()).unwrap();
    assert!(!path.exists() && precious.join("file").exists());
}

#[test]
fn a_directory_within_that_is_too_deep_stays() {
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    let mut deep = path.clone();
    (0..50).for_each(|_| deep.push("d"));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("precious"), "").unwrap();
    let Cleaned { own, .. } = clean_in(parent.path()).unwrap();
    assert!(own[0].1.is_err() && deep.join("precious").exists() && !path.join("socket").exists());
}

#[test]
fn what_is_put_in_place_of_a_directory_between_check_and_removal_stays() {
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    let precious = leftover(parent.path(), "precious");
    for is_link in [true, false] {
        let own = held(&path);
        let moved = parent.path().join("moved");
        rename(&path, &moved).unwrap();
        if is_link {
            symlink(&precious, &path).unwrap();
        } else {
            rename(&precious, &path).unwrap();
        };
        own.remove().unwrap();
        assert!(path.join("socket").exists(), "what was put there was emptied");
        assert!(!moved.join("socket").exists(), "the files of the run stayed");
        drop(own);
        fs::remove_dir(&moved).unwrap();
        if is_link {
            fs::remove_file(&path).unwrap();
            leftover(parent.path(), "ipcmark-run-1-0000abcd");
        }
    }
}

/// A neighbour of the same user puts a link in place of the directory, and takes it away, all the time.
#[test]
fn a_race_for_the_name_is_never_won() {
    let parent = tempfile::tempdir().unwrap();
    let precious = leftover(parent.path(), "precious");
    let (path, aside) = (parent.path().join("ipcmark-run-1-0000abcd"), parent.path().join("aside"));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fs::create_dir(&path);
                let _ = fs::write(path.join("file"), "");
                let _ = rename(&path, &aside);
                let _ = symlink(&precious, &path);
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir_all(&aside);
            }
        });
        for _ in 0..300 {
            // It may fail, as when a file is made meanwhile.
            let _ = clean_in(parent.path());
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(precious.join("socket").exists());
}

#[test]
fn a_directory_that_is_just_being_made_is_not_cleaned_away() {
    let parent = tempfile::tempdir().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                clean_in(parent.path()).unwrap();
            }
        });
        for number in 0..200 {
            let path = parent.path().join(format!("ipcmark-run-{number}-0000abcd"));
            match make(&path) {
                Ok(own) => {
                    assert!(path.exists());
                    own.remove().unwrap();
                }
                Err(errno) => assert_eq!(errno, Errno::EXIST),
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_exists_is_never_taken_for_the_directory_of_a_new_run() {
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    assert_eq!(make(&path).unwrap_err(), Errno::EXIST);
    assert!(path.join("socket").exists());
}

/// By any number of entries, in the directory and in that of a run, memory does not grow: nothing is listed.
/// Slow: it measures again and again, or waits for what is silent.
#[test]
fn thousands_of_entries_are_removed() {
    let parent = tempfile::tempdir().unwrap();
    let path = leftover(parent.path(), "ipcmark-run-1-0000abcd");
    for number in 0..5_000 {
        fs::write(path.join(format!("{number}.name")), "sysv-shm x").unwrap();
        symlink("nowhere", parent.path().join(format!("ipcmark-run-{number}-11111111"))).unwrap();
    }
    assert_eq!(cleaned(parent.path()), (vec![path], 5_000));
}
